//! Runs: list, follow, cancel, replay.

use crate::accept::{language, wants_stream};
use crate::access::Caller;
use crate::events::{check_type, read_body};
use crate::facts::{can_read, empty_page, stored_filter};
use crate::id::Id;
use crate::query::{Params, number};
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use crate::stream;
use crate::stream_access::StreamAccess;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use greenroom_host::Audience;
use greenroom_protocol::{RunStatus, RunView};
use greenroom_store::reads::runs::RunFilter;
use serde::Deserialize;

/// Filters of the run list.
pub(crate) const FILTERS: [&str; 8] = [
    "conversation_id",
    "agent",
    "status",
    "runner_id",
    "event_type",
    "error_code",
    "since",
    "until",
];

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    let params = params.only(&[&["workspace_id", "cursor", "limit"][..], &FILTERS].concat())?;
    let (workspace, conversation) = (params.workspace(), params.text("conversation_id"));
    caller.require_reader_of(conversation)?;
    let stored = stored_filter(&app, &caller, workspace, conversation).await?;
    let conversation = stored.as_deref();
    let status = params.text("status").map(|text| {
        RunStatus::parse(text).ok_or_else(|| Problem::invalid("`status` is not a status of runs"))
    });
    let text = |name| params.text(name).map(str::to_owned);
    let filter = RunFilter {
        conversation_id: stored.clone(),
        agent: text("agent"),
        status: status.transpose()?,
        runner_id: text("runner_id"),
        event_type: text("event_type"),
        error_code: text("error_code"),
        since_ms: params.time("since")?,
        until_ms: params.time("until")?,
        ..RunFilter::default()
    };
    if !can_read(&app, &caller, workspace, conversation).await? {
        return ok(empty_page());
    }
    let page = app.host.runs(workspace, filter, params.cursor(), params.limit()?).await?;
    let mut page = page.ok_or_else(Problem::foreign_cursor)?;
    page.items.retain(|run| caller.require_agent(&run.agent).is_ok());
    caller.ok(page)
}

pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    caller.ok(load(&app, &caller, params.workspace(), &run_id).await?)
}

/// A run's event, routing, grant, calls, deliveries, approvals and replays.
pub(crate) async fn story(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    let audience = match caller.require_reader() {
        Ok(()) => Audience::Operator,
        Err(_) => Audience::Sender,
    };
    let story = app.host.story(workspace, &run_id, audience).await?;
    caller.ok(story.ok_or_else(|| Problem::not_found("run"))?)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayBody {
    /// The agent to use; default: the agent of the run.
    agent: Option<String>,
}

pub(crate) async fn replay(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
    request: Request,
) -> ApiResult {
    let sender = caller.require_sender()?;
    let params = params.only(&["workspace_id"])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let ReplayBody { agent } = match body.is_empty() {
        true => ReplayBody::default(),
        false => serde_json::from_slice(&body).map_err(|error| {
            Problem::invalid(format!("the body must be `{{}}` or `{{\"agent\"}}`: {error}"))
        })?,
    };
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    let answer = app.host.replay(&sender, workspace, &run_id, agent).await?;
    let answer = answer.ok_or_else(|| Problem::not_found("run"))?;
    Ok((StatusCode::ACCEPTED, Json(answer)).into_response())
}

pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    caller.require_cancel()?;
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    app.host.cancel(workspace, &run_id).await?;
    caller.ok(load(&app, &caller, workspace, &run_id).await?)
}

pub(crate) async fn results(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
    headers: HeaderMap,
) -> ApiResult {
    let params = params.only(&["workspace_id", "after", "limit"])?;
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    let after = params.number("after")?.unwrap_or(0);
    let last = last_event_id(&headers)?;
    let language = language(&headers);
    if wants_stream(&headers) {
        let after = last.unwrap_or(after);
        let access = StreamAccess::new(&app, &caller);
        return stream::follow(&app, access, workspace, &run_id, after, language).await;
    }
    let page = app.host.results(workspace, &run_id, after, params.limit()?, language).await?;
    ok(page.ok_or_else(|| Problem::not_found("run"))?)
}

/// A run that the caller may see.
pub(crate) async fn load(
    app: &App,
    caller: &Caller,
    workspace: &str,
    run_id: &str,
) -> Result<RunView, Problem> {
    let run = app.host.run(workspace, run_id).await?;
    let run = run.ok_or_else(|| Problem::not_found("run"))?;
    caller.require_agent(&run.agent)?;
    require_run(app, caller, workspace, run_id).await?;
    Ok(run)
}

/// Requires that a limited caller reaches the run; one that it does not is reported as missing.
pub(crate) async fn require_run(
    app: &App,
    caller: &Caller,
    workspace: &str,
    run_id: &str,
) -> Result<(), Problem> {
    let Some(own) = caller.limited() else { return Ok(()) };
    match app.host.reaches_run(workspace, own, run_id).await? {
        true => Ok(()),
        false => Err(Problem::not_found("run")),
    }
}

pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    match value.to_str().ok().and_then(|text| number(text.trim())) {
        Some(number) => Ok(Some(number)),
        None => Err(Problem::invalid("`Last-Event-ID` must be the sequence number of a result")),
    }
}
