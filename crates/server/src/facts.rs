//! Conversations, history, search, state and the event log.

use crate::accept::AcceptLanguage;
use crate::access::Caller;
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::State;
use axum::http::StatusCode;
use greenroom_host::{HistoryQuery, Page, StateQuery};
use greenroom_protocol::ErrorCode;
use greenroom_protocol::payload::StateScope;
use greenroom_store::reads::Direction;
use greenroom_store::reads::conversations::Reach;
use greenroom_store::reads::search::SearchQuery;
use serde_json::Value;

pub(crate) async fn conversations(
    State(app): State<App>,
    caller: Caller,
    params: Params,
) -> ApiResult {
    let params = params.only(&["workspace_id", "cursor", "limit"])?;
    let (workspace, readable) = (params.workspace(), caller.readable());
    let page =
        app.host.conversations(workspace, readable, params.cursor(), params.limit()?).await?;
    caller.ok(page.ok_or_else(Problem::foreign_cursor)?)
}

pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(conversation): Id,
    AcceptLanguage(language): AcceptLanguage,
) -> ApiResult {
    let params = params.only(&["workspace_id", "cursor", "limit", "direction"])?;
    let direction = match params.text("direction") {
        None | Some("backward") => Direction::Backward,
        Some("forward") => Direction::Forward,
        Some(_) => {
            return Err(Problem::invalid("`direction` is `backward` or `forward`"));
        }
    };
    let cursor = params.cursor().map(str::to_owned);
    let query =
        HistoryQuery { cursor, direction, limit: params.limit()?, language, hidden: Vec::new() };
    let readable = caller.readable();
    let conversation = stored_id(&app, &caller, params.workspace(), conversation).await?;
    let page = app.host.history(params.workspace(), &conversation, readable, query).await?;
    let page = page.ok_or_else(Problem::foreign_cursor)?;
    caller.ok(page.ok_or_else(|| Problem::not_found("conversation"))?)
}

pub(crate) async fn search(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(conversation): Id,
    AcceptLanguage(language): AcceptLanguage,
) -> ApiResult {
    let params = params.only(&["workspace_id", "q", "limit"])?;
    let text = params.text("q").filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Problem::invalid("`q` is missing"))?;
    let conversation = stored_id(&app, &caller, params.workspace(), conversation).await?;
    let query = SearchQuery {
        workspace: params.workspace().to_owned(),
        text: text.to_owned(),
        conversation: Some(conversation),
        reach: caller.readable(),
        top_k: params.limit()?,
        ..SearchQuery::default()
    };
    let page = app.host.search(query, language).await?;
    caller.ok(page.ok_or_else(|| Problem::not_found("conversation"))?)
}

/// Roles of transcript items.
pub(crate) const ROLES: [&str; 5] = ["user", "assistant", "tool", "system", "event"];

/// Search in all conversations.
pub(crate) async fn search_all(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    AcceptLanguage(language): AcceptLanguage,
) -> ApiResult {
    let known = [
        "workspace_id",
        "q",
        "conversation_id",
        "role",
        "event_type",
        "actor_id",
        "since",
        "until",
        "limit",
    ];
    let params = params.only(&known)?;
    let text = params.text("q").filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Problem::invalid("`q` is missing"))?;
    let owned = |name| params.text(name).map(str::to_owned);
    if params.text("role").is_some_and(|role| !ROLES.contains(&role)) {
        return Err(Problem::invalid(format!("`role` is one of {}", ROLES.join(", "))));
    }
    let conversation =
        stored_filter(&app, &caller, params.workspace(), params.text("conversation_id")).await?;
    let query = SearchQuery {
        workspace: params.workspace().to_owned(),
        text: text.to_owned(),
        conversation,
        reach: caller.readable(),
        roles: owned("role").into_iter().collect(),
        event_types: owned("event_type").into_iter().collect(),
        actor_id: owned("actor_id"),
        after_ms: params.time("since")?,
        before_ms: params.time("until")?,
        top_k: params.limit()?,
        ..SearchQuery::default()
    };
    caller.ok(app.host.search_all(query, language).await?)
}

/// State of all owners.
pub(crate) async fn state(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    let filters = ["scope", "agent", "conversation_id", "actor_id", "prefix"];
    let params = params.only(&[&["workspace_id", "cursor", "limit"][..], &filters].concat())?;
    let scope = params.text("scope").map(|text| {
        let scope = StateScope::ALL.into_iter().find(|scope| scope.as_str() == text);
        scope.ok_or_else(|| Problem::invalid("`scope` is not a scope of state"))
    });
    let owned = |name| params.text(name).map(str::to_owned);
    let query = StateQuery {
        scope: scope.transpose()?,
        agent: owned("agent"),
        conversation_id: owned("conversation_id"),
        actor_id: owned("actor_id"),
        prefix: owned("prefix").unwrap_or_default(),
    };
    let page = app.host.state(params.workspace(), query, params.cursor(), params.limit()?).await?;
    ok(page.ok_or_else(Problem::foreign_cursor)?)
}

pub(crate) async fn events(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    let params = params.only(&["workspace_id", "conversation_id", "cursor", "limit"])?;
    let conversation = params.text("conversation_id");
    caller.require_reader_of(conversation)?;
    let limit = params.limit()?;
    let stored = stored_filter(&app, &caller, params.workspace(), conversation).await?;
    let conversation = stored.as_deref();
    if !can_read(&app, &caller, params.workspace(), conversation).await? {
        return ok(empty_page());
    }
    let page = app.host.events(params.workspace(), conversation, params.cursor(), limit).await?;
    caller.ok(page.ok_or_else(Problem::foreign_cursor)?)
}

pub(crate) async fn event(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(event_id): Id,
) -> ApiResult {
    let params = params.only(&["workspace_id", "source", "sent_by"])?;
    let mut found = Vec::new();
    for event in app.host.events_by_id(params.workspace(), &event_id).await? {
        let conversation = event["conversation_id"].as_str();
        let is_own = caller.limited().is_some() && event["sent_by"] == caller.name();
        if is_own || can_read(&app, &caller, params.workspace(), conversation).await? {
            found.push(event);
        }
    }
    if let Some(source) = params.text("source") {
        found.retain(|event| event["source"] == source);
    }
    // Limited tokens have event ids of their own: without `sent_by` a caller means those of its own kind.
    let own = caller.limited().map(|own| own.begun_by.as_str());
    let sent_by = params.text("sent_by").or(own);
    if params.text("sent_by").is_some() || found.iter().any(|e| e["sent_by"].as_str() == sent_by) {
        found.retain(|event| event["sent_by"].as_str() == sent_by);
    }
    match found.len() {
        0 => Err(Problem::not_found("event")),
        1 => caller.ok(&found[0]),
        _ => {
            let message =
                "several senders used this event id: choose one with `source` or `sent_by`";
            Err(Problem::new(StatusCode::CONFLICT, ErrorCode::InvalidArgument, message))
        }
    }
}

/// The stored id of the conversation that a caller calls `id`.
pub(crate) async fn stored_id(
    app: &App,
    caller: &Caller,
    workspace: &str,
    id: String,
) -> Result<String, Problem> {
    match caller.limited() {
        Some(own) => Ok(app.host.stored_conversation(workspace, own, &id).await?),
        None => Ok(id),
    }
}

/// The same, for the filter of a list.
pub(crate) async fn stored_filter(
    app: &App,
    caller: &Caller,
    workspace: &str,
    id: Option<&str>,
) -> Result<Option<String>, Problem> {
    match id {
        Some(id) => stored_id(app, caller, workspace, id.to_owned()).await.map(Some),
        None => Ok(None),
    }
}

/// Whether a caller may read what belongs to a conversation; without a conversation it must be able to read all.
pub(crate) async fn can_read(
    app: &App,
    caller: &Caller,
    workspace: &str,
    conversation: Option<&str>,
) -> Result<bool, Problem> {
    let readable = caller.readable();
    match conversation {
        Some(conversation) => Ok(app.host.reaches(workspace, conversation, &readable).await?),
        None => Ok(readable == Reach::All),
    }
}

pub(crate) fn empty_page() -> Page<Value> {
    Page { items: Vec::new(), next_cursor: None, has_more: false }
}
