//! Conversations, their history, and the event log.

use crate::access::Caller;
use crate::answer::{Answer, Problem, ok};
use crate::id::Id;
use crate::query::Params;
use crate::router::App;
use axum::extract::State;
use axum::http::StatusCode;
use greenroom_host::HistoryQuery;
use greenroom_protocol::ErrorCode;
use greenroom_store::reads::Direction;

pub(crate) async fn conversations(
    State(app): State<App>,
    caller: Caller,
    params: Params,
) -> Answer {
    caller.reader()?;
    let params = params.only(&["workspace_id", "cursor", "limit"])?;
    let page = app.host.conversations(params.workspace(), params.cursor(), params.limit()?).await?;
    ok(page.ok_or_else(Problem::foreign_cursor)?)
}

pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(conversation): Id,
) -> Answer {
    caller.reader()?;
    let params = params.only(&["workspace_id", "cursor", "limit", "direction"])?;
    let direction = match params.text("direction") {
        None | Some("backward") => Direction::Backward,
        Some("forward") => Direction::Forward,
        Some(_) => {
            return Err(Problem::invalid("`direction` is `backward` or `forward`"));
        }
    };
    let cursor = params.cursor().map(str::to_owned);
    let query = HistoryQuery { cursor, direction, limit: params.limit()? };
    let page = app.host.history(params.workspace(), &conversation, query).await?;
    let page = page.ok_or_else(Problem::foreign_cursor)?;
    ok(page.ok_or_else(|| Problem::not_found("conversation"))?)
}

pub(crate) async fn search(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(conversation): Id,
) -> Answer {
    caller.reader()?;
    let params = params.only(&["workspace_id", "q", "limit"])?;
    let text = params.text("q").filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Problem::invalid("`q` says what to look for"))?;
    let page = app.host.search(params.workspace(), &conversation, text, params.limit()?).await?;
    ok(page.ok_or_else(|| Problem::not_found("conversation"))?)
}

pub(crate) async fn events(State(app): State<App>, caller: Caller, params: Params) -> Answer {
    caller.reader()?;
    let params = params.only(&["workspace_id", "conversation_id", "cursor", "limit"])?;
    let conversation = params.text("conversation_id");
    let limit = params.limit()?;
    let page = app.host.events(params.workspace(), conversation, params.cursor(), limit).await?;
    ok(page.ok_or_else(Problem::foreign_cursor)?)
}

pub(crate) async fn event(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(event_id): Id,
) -> Answer {
    caller.reader()?;
    let params = params.only(&["workspace_id", "source"])?;
    let mut found = app.host.events_by_id(params.workspace(), &event_id).await?;
    if let Some(source) = params.text("source") {
        found.retain(|event| event["source"] == source);
    }
    match found.len() {
        0 => Err(Problem::not_found("event")),
        1 => ok(&found[0]),
        _ => {
            let message = "several sources used this event id: name one with `source`";
            Err(Problem::new(StatusCode::CONFLICT, ErrorCode::InvalidArgument, message))
        }
    }
}
