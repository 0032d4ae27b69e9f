//! Methods that only LangBot's wire has: its history, about a plugin's own run, and about other runs of the same
//! agent in the same conversation.
//!
//! Invariant: they have rows in the table of methods and pass its checks; they show nothing that the run's own
//! conversation does not.

use super::call::{Answer, Call, answer, failed, not_found, refuse};
use super::{Trail, artifacts, history, no_run};
use crate::granted_files::RunFile;
use crate::host::Shared;
use crate::ids::{now_ms, rfc3339};
use crate::query::run_view;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::api::{PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX};
use greenroom_protocol::{AgentAPIError, ErrorCode, RunStatus};
use greenroom_runtime::ProxyCall;
use greenroom_store::reads;
use greenroom_store::reads::runs::RunFilter;
use greenroom_store::types::{ResultRecord, RunRow};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a run that cancels itself waits for its end.
const END_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LangbotMethod {
    GetPrompt,
    GetConfigFile,
    HistoryPage,
    RunGet,
    RunList,
    RunEventsPage,
    RunCancel,
    /// `run_append_result` and `run_finalize`, which are refused.
    RunResult,
}

impl LangbotMethod {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("langbot.")? {
            "get_prompt" => Self::GetPrompt,
            "get_config_file" => Self::GetConfigFile,
            "history_page" => Self::HistoryPage,
            "run_get" => Self::RunGet,
            "run_list" => Self::RunList,
            "run_events_page" => Self::RunEventsPage,
            "run_cancel" => Self::RunCancel,
            "run_append_result" | "run_finalize" => Self::RunResult,
            _ => return None,
        })
    }
}

/// The fields of all these methods.
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
    file_key: Option<String>,
}

impl Params {
    fn parse(params: &RawValue) -> Result<Self, AgentAPIError> {
        serde_json::from_str(params.get())
            .map_err(|error| refuse(ErrorCode::InvalidArgument, error.to_string()))
    }
}

pub(super) async fn serve(call: &mut Call<'_>, method: LangbotMethod) -> Answer {
    if method == LangbotMethod::HistoryPage {
        return history::page(call, history::View::Messages).await;
    }
    let params = Params::parse(call.params)?;
    call.about(params.target_run_id.as_deref(), Some("run".into()));
    match method {
        LangbotMethod::GetPrompt => {
            answer(&json!({"prompt": prompt(call.rights.grant.config.get("prompt"))}))
        }
        LangbotMethod::GetConfigFile => config_file(call, &params).await,
        LangbotMethod::HistoryPage => Err(not_found("file")),
        LangbotMethod::RunGet => answer(&record(target(call, &params).await?)),
        LangbotMethod::RunList => runs(call, &params).await,
        LangbotMethod::RunEventsPage => results(call, &params).await,
        LangbotMethod::RunCancel => cancel(call, &params).await,
        LangbotMethod::RunResult => {
            let message = "a run's results go over its own stream, and it ends with them";
            Err(refuse(ErrorCode::Unauthorized, message).detail("reason", "not_granted"))
        }
    }
}

/// A granted file, by its id or by the name that the configuration gives it.
async fn config_file(call: &mut Call<'_>, params: &Params) -> Answer {
    let key = params.file_key.as_deref().unwrap_or_default();
    call.about(Some(key), Some("file".into()));
    let is_named = |file: &&RunFile| file.granted.file_id == key || file.granted.name == key;
    let file = call.rights.files.iter().find(is_named).ok_or_else(|| not_found("file"))?;
    // In base64, within one response.
    let bytes_max = call.settings.limits.response_bytes as u64 / 4 * 3 - 1024;
    let (_, bytes) = artifacts::read_whole(call, &file.granted.file_id, bytes_max).await?;
    answer(&json!({"file_base64": STANDARD.encode(&bytes)}))
}

/// `run_get` of a run that has ended, about itself: how a runner without a stop request learns of its end.
pub(super) async fn get_ended_run(
    shared: &Arc<Shared>,
    call: &ProxyCall,
    trail: &mut Trail,
) -> Answer {
    let params = Params::parse(&call.params)?;
    trail.about(params.target_run_id.as_deref(), Some("run".into()));
    let is_own = |id: &&str| params.target_run_id.as_deref().is_none_or(|target| target == *id);
    let run_id = call.run_id.as_deref().filter(is_own);
    let found = run_id.and_then(|run_id| Some((run_id, shared.live.workspace_of(run_id)?)));
    let Some((run_id, workspace)) = found else { return Err(no_run(shared, call)) };
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

/// A run as the API shows it, and when its cancellation was requested.
fn record(row: RunRow) -> Value {
    let cancel_requested = row.cancel_requested;
    let mut view = serde_json::to_value(run_view(row)).unwrap_or_default();
    view["cancel_requested_at"] = match cancel_requested {
        true => (now_ms() / 1000).into(),
        false => Value::Null,
    };
    view
}

/// The prompt in the agent's configuration as messages; the host itself writes none.
fn prompt(configured: Option<&Value>) -> Value {
    match configured {
        Some(Value::Array(messages)) => messages.clone().into(),
        Some(Value::String(text)) if !text.is_empty() => {
            json!([{"role": "system", "content": text}])
        }
        _ => json!([]),
    }
}

/// The run that the call is about: its own, or another of the same agent in the same conversation.
async fn target(call: &Call<'_>, params: &Params) -> Result<RunRow, AgentAPIError> {
    let identity = &call.rights.identity;
    let run_id = params.target_run_id.as_deref().unwrap_or(&identity.run_id);
    let row = run_row(call.shared, &identity.workspace_id, run_id).await?;
    let in_scope = |row: &RunRow| {
        let is_own = row.run_id == identity.run_id;
        let is_same_conversation =
            row.conversation_id.is_some() && row.conversation_id == identity.conversation_id;
        is_own || (is_same_conversation && row.agent == identity.agent)
    };
    row.filter(in_scope).ok_or_else(|| not_found("run"))
}

fn page_size(call: &Call<'_>, params: &Params) -> usize {
    call.page_size(params.limit.unwrap_or(PAGE_LIMIT_DEFAULT).min(PAGE_LIMIT_MAX))
}

async fn runs(call: &Call<'_>, params: &Params) -> Answer {
    let identity = &call.rights.identity;
    let own = identity.conversation_id.as_ref().ok_or_else(|| not_found("conversation"))?;
    if params.conversation_id.as_ref().is_some_and(|named| named != own) {
        return Err(not_found("conversation"));
    }
    let statuses = statuses(params)?;
    let workspace = identity.workspace_id.clone();
    let domain = ["langbot-runs", &workspace, own, &identity.agent];
    let cursor = params.before_cursor.as_ref();
    let before = cursor.map(|cursor| call.position(&domain, cursor)).transpose()?;
    let filter = RunFilter {
        conversation_id: Some(own.clone()),
        agent: Some(identity.agent.clone()),
        status: if let [only] = statuses[..] { Some(only) } else { None },
        ..RunFilter::default()
    };
    let limit = page_size(call, params);
    let owner = workspace.clone();
    let read = call.shared.store.read(move |tx| {
        reads::runs::page(tx, &owner, &filter, before.as_deref(), limit as i64 + 1)
    });
    let mut rows = read.await.map_err(|error| failed(&error))?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| has_more).map(|row| row.run_id.clone());
    let next_cursor = last.map(|last| call.shared.cursors.seal(&domain, &last));
    rows.retain(|row| statuses.is_empty() || statuses.contains(&row.status));
    let items: Vec<Value> = rows.into_iter().map(record).collect();
    answer(&json!({"items": items, "next_cursor": next_cursor, "has_more": has_more}))
}

fn statuses(params: &Params) -> Result<Vec<RunStatus>, AgentAPIError> {
    let parse = |name: &String| {
        RunStatus::parse(name).ok_or_else(|| {
            let message = format!("`{}` is no status of a run", name.escape_debug());
            refuse(ErrorCode::InvalidArgument, message)
        })
    };
    params.statuses.iter().flatten().map(parse).collect()
}

async fn results(call: &Call<'_>, params: &Params) -> Answer {
    let row = target(call, params).await?;
    let number = |cursor: &Option<String>| match cursor {
        Some(text) => text.parse::<i64>().map(Some).map_err(|_| {
            let message = "a cursor of results is the number of one";
            refuse(ErrorCode::InvalidArgument, message).detail("reason", "foreign_cursor")
        }),
        None => Ok(None),
    };
    let after = number(&params.after_cursor)?.unwrap_or(0);
    let before = number(&params.before_cursor)?.unwrap_or(i64::MAX);
    let limit = page_size(call, params);
    let backward = params.direction.as_deref() == Some("backward");
    // Numbers have gaps: going back, a page may hold fewer results than asked for.
    let below = before.min(row.last_seq.saturating_add(1));
    let from = if backward { after.max(below.saturating_sub(limit as i64 + 1)) } else { after };
    let run_id = row.run_id.clone();
    let read = call.shared.store.read(move |tx| reads::results::page(tx, &run_id, from, limit + 1));
    let found = read.await.map_err(|error| failed(&error))?;
    let mut found: Vec<ResultRecord> =
        found.into_iter().filter(|record| record.sequence < before).collect();
    let mut has_more = if backward { from > after } else { found.len() > limit };
    found.truncate(limit);
    let read_count = found.len();
    let bytes_max = call.settings.limits.response_bytes / 2;
    let edge = if backward {
        let left_out = found.len() - fitting(found.iter().rev(), bytes_max);
        found.drain(..left_out);
        if left_out == 0 { Some(from + 1) } else { found.first().map(|first| first.sequence) }
    } else {
        found.truncate(fitting(found.iter(), bytes_max));
        found.last().map(|last| last.sequence)
    };
    has_more |= found.len() < read_count;
    let next_cursor = edge.filter(|_| has_more).map(|number| number.to_string());
    if backward {
        // Newest first, as everywhere on this wire.
        found.reverse();
    }
    let prev_cursor = found.first().map(|first| first.sequence.to_string());
    let items: Vec<Value> = found.iter().map(|record| result(&row.run_id, record)).collect();
    answer(&json!({"items": items, "next_cursor": next_cursor, "prev_cursor": prev_cursor,
        "has_more": has_more}))
}

/// A run cancels itself and no other.
async fn cancel(call: &Call<'_>, params: &Params) -> Answer {
    let identity = &call.rights.identity;
    if params.target_run_id.as_ref().is_some_and(|target| *target != identity.run_id) {
        let message = "a run cancels itself and no other";
        return Err(refuse(ErrorCode::Unauthorized, message).detail("reason", "not_granted"));
    }
    let reason = params.reason.as_deref().unwrap_or("cancelled by its runner");
    call.live.cancel(&reason.chars().take(200).collect::<String>());
    let _ = tokio::time::timeout(END_WAIT, call.live.wait_for_end()).await;
    let row = run_row(call.shared, &identity.workspace_id, &identity.run_id).await?;
    answer(&record(row.ok_or_else(|| not_found("run"))?))
}

/// How many results go into one answer, the first whatever its size.
fn fitting<'a>(found: impl Iterator<Item = &'a ResultRecord>, bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fits = found.take_while(|record| {
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
