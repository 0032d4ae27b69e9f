//! Calls that LangBot's plugins make beside those of the contract: about their own run, and about others of the
//! same agent in the same conversation.
//!
//! Invariant: known on the LangBot wire alone. They pass the same checks as every call and show nothing that
//! the run's own conversation does not; a run that is over may ask for one thing, which is why.

use super::call::{Answer, answer, failed, not_found, refuse};
use super::{NO_RUN_COST, Trail, no_run, over_rate, too_large};
use crate::context::Identity;
use crate::host::Shared;
use crate::ids::{now_ms, rfc3339};
use crate::live::{LiveRun, Rights};
use crate::query::run_view;
use greenroom_protocol::api::{PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX};
use greenroom_protocol::{AgentAPIError, ErrorCode, RunStatus};
use greenroom_runtime::{ProxyCall, Standing, Wire};
use greenroom_store::reads;
use greenroom_store::reads::runs::RunFilter;
use greenroom_store::types::{ResultRecord, RunRow};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What a look-up takes out of the buckets, and what a page does.
const LOOK_UP: u64 = 1;
const PAGE: u64 = 10;
/// How long a run that cancels itself waits for its end.
const END_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Prompt,
    ConfigFile,
    RunGet,
    RunList,
    RunEvents,
    RunCancel,
    /// Results go over the run's own stream.
    Result,
}

/// The fields of all these calls.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Params {
    target_run_id: Option<String>,
    conversation_id: Option<String>,
    statuses: Option<Vec<String>>,
    before_cursor: Option<String>,
    after_cursor: Option<String>,
    limit: Option<u32>,
    direction: Option<String>,
    reason: Option<String>,
}

impl Extra {
    /// The call by its name, where it is one of these.
    pub(super) fn of(call: &ProxyCall) -> Option<Self> {
        let name = call.method.strip_prefix("langbot.").filter(|_| call.wire == Wire::Langbot)?;
        Some(match name {
            "get_prompt" => Extra::Prompt,
            "get_config_file" => Extra::ConfigFile,
            "run_get" => Extra::RunGet,
            "run_list" => Extra::RunList,
            "run_events_page" => Extra::RunEvents,
            "run_cancel" => Extra::RunCancel,
            "run_append_result" | "run_finalize" => Extra::Result,
            _ => return None,
        })
    }

    fn cost(self) -> u64 {
        match self {
            Extra::RunList | Extra::RunEvents => PAGE,
            _ => LOOK_UP,
        }
    }
}

/// Checks a call as every call is checked, and serves it.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    call: &ProxyCall,
    extra: Extra,
    run: Option<(&Arc<LiveRun>, &Rights)>,
    trail: &mut Trail,
) -> Answer {
    let settings = shared.settings.load_full();
    let limits = &settings.limits;
    // Without a run a refusal is a commit of its own, as for every call.
    let is_stranger = run.is_none() && call.standing == Standing::Foreign;
    let cost = extra.cost() + if is_stranger { NO_RUN_COST } else { 0 };
    let taken = shared.plugin_buckets.of(&call.runner).take(cost, limits.calls_per_s_plugin);
    taken.map_err(|wait| over_rate("plugin", wait))?;
    let bytes = call.params.get().len();
    if bytes > limits.call_bytes {
        return Err(too_large("call", bytes, limits.call_bytes));
    }
    let params: Params = serde_json::from_str(call.params.get())
        .map_err(|error| refuse(ErrorCode::InvalidArgument, error.to_string()))?;
    trail.about(params.target_run_id.as_deref(), Some("run".into()));
    let Some((live, rights)) = run else {
        return match extra {
            Extra::RunGet => ended_run(shared, call, &params).await,
            _ => Err(no_run(shared, call)),
        };
    };
    let taken = live.bucket.take(extra.cost(), limits.calls_per_s_run);
    taken.map_err(|wait| over_rate("run", wait))?;
    shared.auditor.room().await;
    live.wait_for_applied(call.results_before).await;
    let asking = Asking { shared, live, identity: &rights.identity, params };
    match extra {
        Extra::Prompt => answer(&json!({"prompt": prompt(rights.grant.config.get("prompt"))})),
        Extra::ConfigFile => Err(not_found("file")),
        Extra::RunGet => answer(&record(asking.target().await?)),
        Extra::RunList => asking.runs().await,
        Extra::RunEvents => asking.results(limits.response_bytes / 2).await,
        Extra::RunCancel => asking.cancel().await,
        Extra::Result => {
            let message = "a run's results go over its own stream, and it ends with them";
            Err(refuse(ErrorCode::Unauthorized, message).detail("reason", "not_granted"))
        }
    }
}

/// A run that is over asks what became of it: that is how a runner that cannot be told to stop finds out.
async fn ended_run(shared: &Arc<Shared>, call: &ProxyCall, params: &Params) -> Answer {
    let run_id = call.run_id.as_deref().filter(|_| call.standing != Standing::Foreign);
    let own = |id: &&str| params.target_run_id.as_deref().is_none_or(|target| target == *id);
    let Some(run_id) = run_id.filter(own) else { return Err(no_run(shared, call)) };
    let Some(workspace) = shared.live.workspace_of(run_id) else {
        return Err(no_run(shared, call));
    };
    let row = run_row(shared, &workspace, run_id).await?;
    answer(&record(row.ok_or_else(|| no_run(shared, call))?))
}

async fn run_row(
    shared: &Arc<Shared>,
    workspace: &str,
    run_id: &str,
) -> Result<Option<RunRow>, AgentAPIError> {
    let (workspace, run_id) = (workspace.to_owned(), run_id.to_owned());
    let read = shared.store.read_inline(move |tx| reads::runs::get(tx, &workspace, &run_id));
    read.await.map_err(|error| failed(&error))
}

/// A run as it is told, with what only a runner that looks for it wants to know.
fn record(row: RunRow) -> Value {
    let cancel_requested = row.cancel_requested;
    let mut view = serde_json::to_value(run_view(row)).unwrap_or_default();
    view["cancel_requested_at"] = match cancel_requested {
        true => (now_ms() / 1000).into(),
        false => Value::Null,
    };
    view
}

/// What the configuration of the agent says, as messages: the host itself writes no prompt.
fn prompt(configured: Option<&Value>) -> Value {
    match configured {
        Some(Value::Array(messages)) => messages.clone().into(),
        Some(Value::String(text)) if !text.is_empty() => {
            json!([{"role": "system", "content": text}])
        }
        _ => json!([]),
    }
}

/// One call of a live run.
struct Asking<'a> {
    shared: &'a Arc<Shared>,
    live: &'a Arc<LiveRun>,
    identity: &'a Identity,
    params: Params,
}

impl Asking<'_> {
    fn target_id(&self) -> &str {
        self.params.target_run_id.as_deref().unwrap_or(&self.identity.run_id)
    }

    /// The run that is asked about: the own one, or another of the same agent in the same conversation.
    async fn target(&self) -> Result<RunRow, AgentAPIError> {
        let row = run_row(self.shared, &self.identity.workspace_id, self.target_id()).await?;
        let in_scope = |row: &RunRow| {
            let is_own = row.run_id == self.identity.run_id;
            let same_place = row.conversation_id.is_some()
                && row.conversation_id == self.identity.conversation_id;
            is_own || (same_place && row.agent == self.identity.agent)
        };
        row.filter(in_scope).ok_or_else(|| not_found("run"))
    }

    fn limit(&self) -> usize {
        let asked = self.params.limit.unwrap_or(PAGE_LIMIT_DEFAULT).clamp(1, PAGE_LIMIT_MAX);
        let most = self.shared.settings.load().limits.page_size;
        usize::try_from(asked).unwrap_or(most).min(most)
    }

    async fn runs(&self) -> Answer {
        let own =
            self.identity.conversation_id.as_ref().ok_or_else(|| not_found("conversation"))?;
        if self.params.conversation_id.as_ref().is_some_and(|named| named != own) {
            return Err(not_found("conversation"));
        }
        let statuses = self.statuses()?;
        let workspace = self.identity.workspace_id.clone();
        let domain = ["langbot-runs", &workspace, own, &self.identity.agent];
        let before = match &self.params.before_cursor {
            Some(cursor) => Some(self.shared.cursors.open(&domain, cursor).ok_or_else(|| {
                let error = refuse(ErrorCode::InvalidArgument, "the cursor does not belong here");
                error.detail("reason", "foreign_cursor")
            })?),
            None => None,
        };
        let filter = RunFilter {
            conversation_id: Some(own.clone()),
            agent: Some(self.identity.agent.clone()),
            status: if let [only] = statuses[..] { Some(only) } else { None },
            ..RunFilter::default()
        };
        let limit = self.limit();
        let owner = workspace.clone();
        let read = self.shared.store.read(move |tx| {
            reads::runs::page(tx, &owner, &filter, before.as_deref(), limit as i64 + 1)
        });
        let mut rows = read.await.map_err(|error| failed(&error))?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| has_more).map(|row| row.run_id.clone());
        let next_cursor = last.map(|last| self.shared.cursors.seal(&domain, &last));
        rows.retain(|row| statuses.is_empty() || statuses.contains(&row.status));
        let items: Vec<Value> = rows.into_iter().map(record).collect();
        answer(&json!({"items": items, "next_cursor": next_cursor, "has_more": has_more}))
    }

    fn statuses(&self) -> Result<Vec<RunStatus>, AgentAPIError> {
        let named = self.params.statuses.iter().flatten();
        let parse = |name: &String| {
            RunStatus::parse(name).ok_or_else(|| {
                let message = format!("`{}` is no status of a run", name.escape_debug());
                refuse(ErrorCode::InvalidArgument, message)
            })
        };
        named.map(parse).collect()
    }

    async fn results(&self, bytes_max: usize) -> Answer {
        let row = self.target().await?;
        let number = |cursor: &Option<String>| match cursor {
            Some(text) => text.parse::<i64>().map(Some).map_err(|_| {
                let message = "a cursor of results is the number of one";
                refuse(ErrorCode::InvalidArgument, message).detail("reason", "foreign_cursor")
            }),
            None => Ok(None),
        };
        let after = number(&self.params.after_cursor)?.unwrap_or(0);
        let before = number(&self.params.before_cursor)?.unwrap_or(i64::MAX);
        let limit = self.limit();
        let backward = self.params.direction.as_deref() == Some("backward");
        // Numbers have gaps: going back, a page may hold fewer results than asked for.
        let below = before.min(row.last_seq.saturating_add(1));
        let from = if backward { after.max(below.saturating_sub(limit as i64 + 1)) } else { after };
        let run_id = row.run_id.clone();
        let read =
            self.shared.store.read(move |tx| reads::results::page(tx, &run_id, from, limit + 1));
        let found = read.await.map_err(|error| failed(&error))?;
        let mut found: Vec<ResultRecord> =
            found.into_iter().filter(|record| record.sequence < before).collect();
        let mut has_more = if backward { from > after } else { found.len() > limit };
        found.truncate(limit);
        let fitting = fitting(&found, bytes_max);
        has_more |= !backward && fitting < found.len();
        if !backward {
            found.truncate(fitting);
        }
        let edge = if backward { Some(from + 1) } else { found.last().map(|last| last.sequence) };
        let next_cursor = edge.filter(|_| has_more).map(|number| number.to_string());
        let items: Vec<Value> = found.iter().map(|record| result(&row.run_id, record)).collect();
        answer(&json!({"items": items, "next_cursor": next_cursor, "has_more": has_more}))
    }

    /// A runner ends its own run and no other.
    async fn cancel(&self) -> Answer {
        if self.target_id() != self.identity.run_id {
            let message = "a run cancels itself and no other";
            return Err(refuse(ErrorCode::Unauthorized, message).detail("reason", "not_granted"));
        }
        let reason = self.params.reason.as_deref().unwrap_or("cancelled by its runner");
        self.live.cancel(&reason.chars().take(200).collect::<String>());
        let _ = tokio::time::timeout(END_WAIT, self.live.wait_for_end()).await;
        let row = run_row(self.shared, &self.identity.workspace_id, &self.identity.run_id).await?;
        answer(&record(row.ok_or_else(|| not_found("run"))?))
    }
}

/// How many results go into one answer, the first whatever its size.
fn fitting(found: &[ResultRecord], bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fits = found.iter().take_while(|record| {
        let first = bytes == 0;
        bytes += record.data.get().len();
        first || bytes <= bytes_max
    });
    fits.count()
}

fn result(run_id: &str, record: &ResultRecord) -> Value {
    json!({"run_id": run_id, "sequence": record.sequence, "type": record.kind, "data": record.data,
        "usage": record.usage, "created_at": rfc3339(record.at_ms)})
}
