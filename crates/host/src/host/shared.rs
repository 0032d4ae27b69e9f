//! State that all parts of the host share, and reads that several of them need.

use crate::approvals::Approvals;
use crate::artifacts::{Artifacts, Links};
use crate::budget::Budgets;
use crate::context::{Envelope, Identity};
use crate::credentials::Credentials;
use crate::cursor::Cursors;
use crate::delivery::Mailbox;
use crate::feed::Feeds;
use crate::grant::{Grant, GrantCache};
use crate::granted_files::GrantedFiles;
use crate::ids::now_ms;
use crate::live::{Live, LiveRun};
use crate::metrics::Metrics;
use crate::proxy::audit::Auditor;
use crate::proxy::meter::PluginBuckets;
use crate::redaction::Redactor;
use crate::resources::Resources;
use crate::settings::Settings;
use crate::statics::ReferenceCache;
use crate::tasks::Tasks;
use crate::telemetry::Telemetry;
use crate::tool_vectors::ToolVectors;
use crate::ungranted::Ungranted;
use arc_swap::ArcSwap;
use greenroom_protocol::payload::StateScope;
use greenroom_protocol::{AgentRunState, Object, StateLeftOut};
use greenroom_runtime::Runtime;
use greenroom_store::commands::{RecordDiagnostics, Terminal};
use greenroom_store::reads::sessions::has_before;
use greenroom_store::reads::state::StateSpan;
use greenroom_store::sql::Tx;
use greenroom_store::types::{Diagnostic, RunRow, StateRow};
use greenroom_store::{Store, StoreError, reads};
use greenroom_surfaces::{Clients, Surface};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Grants cached in memory, so that a run does not read the one it was accepted with.
const GRANTS_CACHED: usize = 1024;
/// Values of one scope in `ctx.state`, at most.
const STATE_SNAPSHOT_VALUES: i64 = 200;
/// Keys of one scope that `ctx.state` names without their values, at most.
const LEFT_OUT_KEYS: i64 = 1000;
/// Bytes of one scope in `ctx.state`, at most.
const STATE_SNAPSHOT_BYTES: i64 = 256 * 1024;

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) cursors: Cursors,
    pub(crate) feeds: Feeds,
    pub(crate) live: Live,
    pub(crate) metrics: Metrics,
    pub(crate) tasks: Tasks,
    pub(crate) deliveries: Mailbox,
    pub(crate) approvals: Approvals,
    pub(crate) artifacts: Artifacts,
    pub(crate) wake_indexing: Notify,
    pub(crate) surface_clients: Clients,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) plugin_buckets: PluginBuckets,
    pub(crate) redactor: Redactor,
    pub(crate) resources: ArcSwap<Resources>,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) tool_vectors: ToolVectors,
    pub(crate) grant_cache: GrantCache,
    pub(crate) reference_cache: ReferenceCache,
    pub(crate) granted_files: GrantedFiles,
    pub(crate) ungranted: Ungranted,
    pub(crate) telemetry: Telemetry,
    /// Unix milliseconds.
    pub(crate) started_at: i64,
    pub(super) grants: Mutex<HashMap<String, Arc<Grant>>>,
}

impl Shared {
    pub(crate) async fn envelope(&self, run: &RunRow) -> Option<Arc<Envelope>> {
        let (workspace, seq) = (run.workspace_id.clone(), run.event_seq);
        let row = self.store.read(move |tx| reads::events::load(tx, &workspace, seq)).await;
        let body = row.ok().flatten().and_then(|row| row.body)?;
        serde_json::from_str(&body).ok().map(Arc::new)
    }

    /// The identity of a run, with the capabilities of its surface.
    pub(crate) fn identity(&self, run: &RunRow, envelope: &Envelope) -> Identity {
        let mut identity = Identity::new(run, envelope);
        let settings = self.settings.load();
        let surface = identity.surface.as_ref().and_then(|name| settings.surfaces.get(name));
        identity.capabilities = surface.map(Surface::capabilities);
        identity.links = surface
            .map(|_| Links { cursors: self.cursors.clone(), base: settings.public_url.clone() });
        identity
    }

    /// Logs and measures the end of a run.
    pub(crate) fn log_end(&self, run: &RunRow, envelope: &Envelope, terminal: &Terminal) {
        let started_at = run.started_at.unwrap_or(run.created_at);
        let took_ms = (now_ms() - started_at).max(0);
        self.metrics.run_wait.observe_ms(started_at - run.created_at);
        self.metrics.run_duration.observe_ms(took_ms);
        if self.is_tracing() {
            let took = Duration::from_millis(u64::try_from(took_ms).unwrap_or(0));
            self.trace_run(&Identity::new(run, envelope), terminal, took);
        }
        let code = terminal.error.as_ref().map_or("", |error| error.code.as_str());
        tracing::info!(run.id = %run.run_id, event.id = %run.event_id, agent = %run.agent,
            status = terminal.status.as_str(), code, took_ms, "run ended");
    }

    /// A run that the store says is running; none if it has ended since. One commit may start the run and
    /// another cancel it before the first is followed up: then this waits until the run is entered.
    pub(crate) async fn live_run(&self, workspace: &str, run_id: &str) -> Option<Arc<LiveRun>> {
        loop {
            let changed = self.live.changed();
            if let Some(live) = self.live.get(run_id) {
                return Some(live);
            }
            if self.has_ended(workspace, run_id).await {
                return None;
            }
            tokio::select! {
                () = changed => {}
                () = self.tasks.stopping().cancelled() => return None,
            }
        }
    }

    async fn has_ended(&self, workspace: &str, run_id: &str) -> bool {
        let (workspace, run_id) = (workspace.to_owned(), run_id.to_owned());
        let run = self.store.read(move |tx| reads::runs::get(tx, &workspace, &run_id)).await;
        run.is_ok_and(|run| run.is_none_or(|run| !run.status.is_open()))
    }

    pub(crate) async fn record(&self, run_id: &str, diagnostics: Vec<Diagnostic>) {
        let command = RecordDiagnostics { run_id: run_id.to_owned(), diagnostics };
        if let Err(error) = self.store.commit(command).await {
            tracing::warn!(%error, run.id = run_id, "cannot store diagnostics");
        }
    }

    /// A frozen grant by its hash.
    pub(crate) async fn grant(&self, hash: &str) -> Result<Arc<Grant>, StoreError> {
        if let Some(grant) = self.grants().get(hash) {
            return Ok(Arc::clone(grant));
        }
        let wanted = hash.to_owned();
        let body = self.store.read(move |tx| reads::runs::grant(tx, &wanted)).await?;
        let grant: Grant = body
            .and_then(|body| serde_json::from_str(&body).ok())
            .ok_or_else(|| StoreError::Refused(format!("grant {hash} does not exist")))?;
        let grant = Arc::new(grant);
        self.keep_grant(hash, &grant);
        Ok(grant)
    }

    /// Caches a grant that the store holds.
    pub(crate) fn keep_grant(&self, hash: &str, grant: &Arc<Grant>) {
        let mut grants = self.grants();
        if grants.len() >= GRANTS_CACHED {
            grants.clear();
        }
        grants.insert(hash.to_owned(), Arc::clone(grant));
    }

    fn grants(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Grant>>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current state that a run may read, and whether its session has items before its event.
    pub(crate) async fn snapshot(
        &self,
        identity: &Identity,
        grant: &Grant,
    ) -> Result<(AgentRunState, bool), StoreError> {
        let mut snapshot = AgentRunState::default();
        let owners: Vec<(StateScope, String)> = grant
            .state
            .iter()
            .filter_map(|scope| Some((*scope, identity.state_owner(*scope)?)))
            .collect();
        let place = identity.conversation_id.clone().zip(identity.conversation_seq);
        let place = place.filter(|(_, event_seq)| *event_seq > 1);
        if owners.is_empty() && place.is_none() {
            return Ok((snapshot, false));
        }
        let (workspace, now) = (identity.workspace_id.clone(), now_ms());
        let session = identity.own_session().map(str::to_owned);
        let read = self.store.read_inline(move |tx| {
            let list = |(scope, owner): &(StateScope, String)| {
                let rows = scope_snapshot(tx, &workspace, owner, now)?;
                Ok((*scope, rows))
            };
            let scopes = owners.iter().map(list).collect::<Result<Vec<_>, StoreError>>()?;
            let has_before = match &place {
                Some((conversation, event_seq)) => {
                    let session = session.as_deref();
                    has_before(tx, &workspace, conversation, session, *event_seq)?
                }
                None => false,
            };
            Ok((scopes, has_before))
        });
        let (scopes, has_history_before) = read.await?;
        for (scope, (rows, left_out)) in scopes {
            if !left_out.keys.is_empty() {
                snapshot.left_out.insert(scope.as_str().to_owned(), left_out);
            }
            let values: &mut Object = match scope {
                StateScope::Conversation => &mut snapshot.conversation,
                StateScope::Actor => &mut snapshot.actor,
                StateScope::Subject => &mut snapshot.subject,
                StateScope::Runner => &mut snapshot.runner,
                StateScope::Binding => &mut snapshot.binding,
            };
            for row in rows {
                values.insert(row.name, serde_json::from_str(&row.value).unwrap_or_default());
            }
        }
        Ok((snapshot, has_history_before))
    }
}

/// The values of one owner that have room in a snapshot, and the keys of the others.
fn scope_snapshot(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &str,
    now_ms: i64,
) -> Result<(Vec<StateRow>, StateLeftOut), StoreError> {
    let span = StateSpan {
        prefix: String::new(),
        after: String::new(),
        values_max: STATE_SNAPSHOT_VALUES,
        bytes_max: STATE_SNAPSHOT_BYTES,
    };
    let (rows, is_cut) = reads::state::list(tx, workspace, owner, &span, now_ms)?;
    let Some(last) = rows.last().filter(|_| is_cut) else {
        return Ok((rows, StateLeftOut::default()));
    };
    let keys =
        reads::state::names_after(tx, workspace, owner, &last.name, LEFT_OUT_KEYS + 1, now_ms);
    let mut keys = keys?;
    let has_more = i64::try_from(keys.len()).is_ok_and(|count| count > LEFT_OUT_KEYS);
    keys.truncate(usize::try_from(LEFT_OUT_KEYS).unwrap_or(usize::MAX));
    Ok((rows, StateLeftOut { keys, has_more }))
}
