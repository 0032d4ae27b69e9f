//! Runs: look at them, follow them, end them.

use crate::accept::wants_stream;
use crate::access::Caller;
use crate::answer::{Answer, Problem, ok};
use crate::id::Id;
use crate::query::{Params, number};
use crate::router::App;
use crate::stream;
use axum::extract::State;
use axum::http::HeaderMap;
use greenroom_protocol::{RunStatus, RunView};
use greenroom_store::reads::runs::RunFilter;

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> Answer {
    caller.reader()?;
    let known = ["workspace_id", "conversation_id", "agent", "status", "cursor", "limit"];
    let params = params.only(&known)?;
    let status = params.text("status").map(|text| {
        RunStatus::parse(text).ok_or_else(|| Problem::invalid("`status` is not a status of runs"))
    });
    let filter = RunFilter {
        conversation_id: params.text("conversation_id").map(str::to_owned),
        agent: params.text("agent").map(str::to_owned),
        status: status.transpose()?,
    };
    let page = app.host.runs(params.workspace(), filter, params.cursor(), params.limit()?).await?;
    ok(page.ok_or_else(Problem::foreign_cursor)?)
}

pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
) -> Answer {
    let params = params.only(&["workspace_id"])?;
    ok(load(&app, &caller, params.workspace(), &run_id).await?)
}

pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
) -> Answer {
    let params = params.only(&["workspace_id"])?;
    caller.may_cancel()?;
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    app.host.cancel(workspace, &run_id).await?;
    ok(load(&app, &caller, workspace, &run_id).await?)
}

pub(crate) async fn results(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(run_id): Id,
    headers: HeaderMap,
) -> Answer {
    let params = params.only(&["workspace_id", "after", "limit"])?;
    let workspace = params.workspace();
    load(&app, &caller, workspace, &run_id).await?;
    let after = params.number("after")?.unwrap_or(0);
    if wants_stream(&headers) {
        let after = last_event_id(&headers)?.unwrap_or(after);
        return stream::follow(&app, workspace, &run_id, after).await;
    }
    let page = app.host.results(workspace, &run_id, after, params.limit()?).await?;
    ok(page.ok_or_else(|| Problem::not_found("run"))?)
}

/// A run that the caller may see.
async fn load(
    app: &App,
    caller: &Caller,
    workspace: &str,
    run_id: &str,
) -> Result<RunView, Problem> {
    let run = app.host.run(workspace, run_id).await?;
    let run = run.ok_or_else(|| Problem::not_found("run"))?;
    caller.sees(&run.agent)?;
    Ok(run)
}

pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    match value.to_str().ok().and_then(|text| number(text.trim())) {
        Some(number) => Ok(Some(number)),
        None => Err(Problem::invalid("`Last-Event-ID` must be the number of a result")),
    }
}
