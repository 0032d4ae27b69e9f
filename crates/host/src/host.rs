//! The host's handle: start, reload, stop, cancel.

mod shared;

pub(crate) use shared::Shared;

use crate::approvals::{self, Approvals};
use crate::artifacts::{Artifacts, collect_regularly};
use crate::budget::Budgets;
use crate::cursor::Cursors;
use crate::delivery::Mailbox;
use crate::feed::Feeds;
use crate::follow_up::FollowUp;
use crate::grant::GrantCache;
use crate::granted_files::GrantedFiles;
use crate::ids::now_ms;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::proxy::ProxyGate;
use crate::proxy::audit::Auditor;
use crate::proxy::meter::PluginBuckets;
use crate::redaction::Redactor;
use crate::resources::{ResourceSettings, Resources};
use crate::settings::Settings;
use crate::statics::ReferenceCache;
use crate::tasks::Tasks;
use crate::telemetry::{self, Telemetry};
use crate::tool_vectors::{self, ToolVectors};
use crate::ungranted::Ungranted;
use crate::{delivery, indexing, retention};
use arc_swap::ArcSwap;
use greenroom_runtime::{Cleaner, RunnerSpec, Runtime, Settings as RuntimeSettings};
use greenroom_store::commands::{CancelQueued, CancelRequest};
use greenroom_store::{Store, StoreError};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// How long the caller of a cancellation waits for the end of the run.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("store operation failed")]
    Store(#[from] StoreError),
    #[error("agents `{0}` and `{1}` match the same events")]
    Tie(String, String),
    #[error("cannot set up the models")]
    Models(#[from] greenroom_models::ModelError),
    #[error("cannot set up the tools")]
    Tools(#[from] greenroom_tools::ToolsError),
}

pub struct HostOptions {
    pub store: Store,
    /// The bytes of artifacts.
    pub objects: greenroom_objects::Objects,
    pub settings: Settings,
    pub runners: Vec<RunnerSpec>,
    pub runtime: RuntimeSettings,
    /// Knows the secrets in use; the log shares it.
    pub redactor: Redactor,
    /// Models and tools.
    pub resources: ResourceSettings,
}

#[derive(Clone)]
pub struct Host {
    pub(crate) shared: Arc<Shared>,
}

impl Host {
    /// Starts runners, settles runs that an earlier start left open, and is then ready for events.
    pub async fn start(options: HostOptions) -> Result<Host, HostError> {
        check(&options.settings)?;
        let budgets = Budgets::load(&options.store, now_ms()).await?;
        let gate = Arc::new(ProxyGate::default());
        let redactor = options.redactor.clone();
        let cleaner = Cleaner::new(move |text| redactor.quote(text));
        let runtime = Runtime::new(RuntimeSettings { cleaner, ..options.runtime }, gate.clone());
        let resources = Resources::build(options.resources, &runtime, None, &options.redactor)?;
        let shared = Arc::new(Shared {
            cursors: Cursors::new(options.store.cursor_key()),
            store: options.store,
            runtime,
            settings: ArcSwap::from_pointee(options.settings),
            feeds: Feeds::default(),
            live: Live::default(),
            metrics: Metrics::default(),
            tasks: Tasks::default(),
            deliveries: Mailbox::default(),
            approvals: Approvals::default(),
            artifacts: Artifacts::new(options.objects),
            wake_indexing: Notify::new(),
            surface_clients: greenroom_surfaces::Clients::default(),
            auditor: Arc::new(Auditor::new(options.redactor.clone())),
            plugin_buckets: PluginBuckets::default(),
            redactor: options.redactor,
            resources: ArcSwap::from_pointee(resources),
            credentials: Arc::default(),
            budgets: Arc::new(budgets),
            tool_vectors: ToolVectors::default(),
            grant_cache: GrantCache::default(),
            reference_cache: ReferenceCache::default(),
            granted_files: GrantedFiles::default(),
            ungranted: Ungranted::default(),
            telemetry: Telemetry::default(),
            started_at: now_ms(),
            grants: Mutex::default(),
        });
        gate.open(&shared);
        let auditor = Arc::clone(&shared.auditor);
        let stopping = shared.tasks.stopping().clone();
        shared.tasks.spawn("audit", auditor.keep(shared.store.clone(), stopping));
        shared.runtime.apply(options.runners).await;
        let follow_ups = crate::recovery::recover(&shared).await?;
        shared.follow_up(follow_ups).await;
        let worker = Arc::clone(&shared);
        shared.tasks.spawn("delivery", delivery::deliver(worker));
        shared.tasks.spawn("approvals", approvals::expire(Arc::clone(&shared)));
        shared.tasks.spawn("collection", collect_regularly(Arc::clone(&shared)));
        shared.tasks.spawn("indexing", indexing::keep(Arc::clone(&shared)));
        shared.tasks.spawn("retention", retention::keep(Arc::clone(&shared)));
        shared.tasks.spawn("telemetry", telemetry::keep(Arc::clone(&shared)));
        shared.tasks.spawn("tool vectors", tool_vectors::keep(Arc::clone(&shared)));
        Ok(Host { shared })
    }

    /// Applies a new configuration as a whole. Active runs keep the one they started with.
    pub async fn reload(
        &self,
        settings: Settings,
        runners: Vec<RunnerSpec>,
        resources: ResourceSettings,
    ) -> Result<(), HostError> {
        check(&settings)?;
        let before = self.shared.resources.load_full();
        let resources = {
            let Shared { runtime, redactor, .. } = &*self.shared;
            Resources::build(resources, runtime, Some(&before), redactor)?
        };
        self.shared.runtime.apply(runners).await;
        self.shared.settings.store(Arc::new(settings));
        self.shared.resources.store(Arc::new(resources));
        self.shared.deliveries.serve_all_now();
        self.shared.tool_vectors.look_again();
        self.shared.ungranted.clear();
        Ok(())
    }

    /// Shuts down: runs that do not end within `grace` are left to the next start.
    pub async fn stop(&self, grace: Duration) {
        let ended = async {
            loop {
                let changed = self.shared.live.changed();
                if self.shared.live.count() == 0 {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(grace, ended).await;
        self.shared.tasks.stop(Duration::from_secs(5)).await;
        let resources = self.shared.resources.load_full();
        // The runtime waits for tool processes as well.
        let grace = Duration::from_secs(2);
        tokio::join!(resources.tools.stop(), self.shared.runtime.shutdown(grace));
    }

    /// Cancels a run: a queued one at once, a running one through its own task.
    pub async fn cancel(&self, workspace: &str, run_id: &str) -> Result<CancelRequest, StoreError> {
        let host = self.clone();
        let (workspace, run_id) = (workspace.to_owned(), run_id.to_owned());
        // In a task of its own: the commit is followed up even if the caller goes away.
        let work = async move { host.cancel_now(&workspace, &run_id).await };
        let cancelled = self.shared.tasks.spawn("cancel", work);
        cancelled.await.map_err(|error| StoreError::Refused(error.to_string()))?
    }

    /// Cancels a run without waiting for its end.
    pub fn cancel_later(&self, workspace: &str, run_id: &str) {
        let host = self.clone();
        let (workspace, run_id) = (workspace.to_owned(), run_id.to_owned());
        self.shared.tasks.spawn("cancel", async move {
            if let Err(error) = host.cancel_now(&workspace, &run_id).await {
                tracing::warn!(%error, run.id = run_id, "cannot cancel a run whose reader disconnected");
            }
        });
    }

    async fn cancel_now(&self, workspace: &str, run_id: &str) -> Result<CancelRequest, StoreError> {
        let shared = &self.shared;
        let command = CancelQueued {
            workspace_id: workspace.to_owned(),
            run_id: run_id.to_owned(),
            epoch_now: shared.store.epoch(),
            now_ms: now_ms(),
        };
        let outcome = shared.store.commit(command).await?;
        shared.follow_up(FollowUp::cancelled(workspace, run_id, &outcome)).await;
        if outcome == CancelRequest::Running {
            let ended = async {
                if let Some(live) = shared.live_run(workspace, run_id).await {
                    live.wait_for_end().await;
                }
            };
            let _ = tokio::time::timeout(CANCEL_WAIT, ended).await;
        }
        Ok(outcome)
    }

    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// The run and attempt of a run token, while that attempt is active.
    pub fn run_by_token(&self, token: &str) -> Option<(String, i64)> {
        self.shared.live.run_of_token(token)
    }

    /// The models and tools of the current configuration.
    pub fn resources(&self) -> Arc<Resources> {
        self.shared.resources.load_full()
    }

    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
    }

    pub fn tasks(&self) -> &Tasks {
        &self.shared.tasks
    }
}

fn check(settings: &Settings) -> Result<(), HostError> {
    match crate::binding::ties(&settings.agents).first() {
        Some((one, other)) => Err(HostError::Tie((*one).to_owned(), (*other).to_owned())),
        None => Ok(()),
    }
}
