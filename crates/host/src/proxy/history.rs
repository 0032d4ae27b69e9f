//! `history.*`: the transcript within the run's reach.
//!
//! Invariant: in its own conversation a run sees items of earlier events, never of its own event or a later
//! one, unless it has pulled it; a conversation out of reach looks like a missing one.
//! LangBot's wire also shows the message of the run's own event, as LangBot does, and messages only.

use super::call::{Answer, Call, answer, failed, not_found};
use super::events::{conversation_in_reach, exists, reach_name, session_in_reach};
use super::fit;
use crate::query::{hit_view, item_view};
use crate::settings::Reach;
use greenroom_protocol::api::history::{Direction, HistoryPageParams, HistorySearchParams};
use greenroom_protocol::{AgentAPIError, TranscriptRole};
use greenroom_store::reads::conversations::{Position, Span};
use greenroom_store::reads::search::SearchQuery;
use greenroom_store::types::ItemRow;
use greenroom_store::{StoreError, reads};
use greenroom_tools::ui::Language;
use serde_json::{Value, json};

/// Which items of the transcript a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// All of earlier events.
    Earlier,
    /// Messages, with that of the run's own event.
    Messages,
}

pub(super) async fn page(call: &mut Call<'_>, view: View) -> Answer {
    let params: HistoryPageParams = call.params()?;
    let reach = call.rights.grant.history.reach;
    call.about(params.conversation_id.as_deref(), Some(reach_name(reach).into()));
    let named = params.conversation_id.clone().or_else(|| own_conversation(call));
    let conversation = conversation_in_reach(call, reach, named)?;
    let conversation = conversation.ok_or_else(|| not_found("conversation"))?;
    let workspace = call.workspace().to_owned();
    let domain = ["history", &workspace, &conversation];
    let after = place(call, &domain, params.after_cursor.as_deref())?.unwrap_or(Position::START);
    let before = place(call, &domain, params.before_cursor.as_deref())?.unwrap_or(Position::END);
    let limit = call.page_size(params.limit);
    let (session, event_seq_before) = bounds(call, reach, &conversation);
    let hidden = superseded(call, &conversation);
    let (event_seq_before, roles): (_, &[_]) = match view {
        View::Earlier => (event_seq_before, &[]),
        View::Messages => (event_seq_before.map(|own| own + 1), &["user", "assistant"]),
    };
    let direction = match params.direction {
        Direction::Backward => reads::Direction::Backward,
        Direction::Forward => reads::Direction::Forward,
    };
    let limit = limit as i64;
    let span = Span { after, before, direction, limit, session, event_seq_before, roles, hidden };
    let (owner, id) = (workspace.clone(), conversation.clone());
    // The fields around an item may not double its size.
    let bytes_max = call.settings.limits.response_bytes / 2;
    let read = call.shared.store.read(move |tx| {
        let exists = reads::conversations::get(tx, &owner, &id)?.is_some();
        let page = reads::conversations::history_within(tx, &owner, &id, &span, bytes_max)?;
        Ok::<_, StoreError>(exists.then_some(page))
    });
    let rows = read.await.map_err(|error| failed(&error))?;
    let (rows, has_more) = rows.ok_or_else(|| not_found("conversation"))?;
    let places: Vec<Position> = rows.iter().map(Position::of).collect();
    let seal = |place: &Position| call.shared.cursors.seal(&domain, &place.to_string());
    let cursors = places.iter().map(seal);
    let mut items: Vec<Value> = rows
        .into_iter()
        .zip(cursors)
        .map(|(row, cursor)| item(row, cursor, params.include_artifacts))
        .collect();
    fit::first_of(&mut items, fit::bytes_max(call));
    let has_more = has_more || items.len() < places.len();
    let next_cursor = places[..items.len()].last().filter(|_| has_more).map(seal);
    let prev_cursor = places.first().map(seal);
    if direction == reads::Direction::Backward {
        items.reverse();
    }
    answer(&json!({"items": items, "next_cursor": next_cursor, "prev_cursor": prev_cursor,
        "has_more": has_more}))
}

pub(super) async fn search(call: &mut Call<'_>) -> Answer {
    let params: HistorySearchParams = call.params()?;
    let reach = call.rights.grant.history.reach;
    let filters = params.filters;
    call.about(filters.conversation_id.as_deref(), Some(reach_name(reach).into()));
    let conversation = conversation_in_reach(call, reach, filters.conversation_id)?;
    let identity = &call.rights.identity;
    let (session, _) = bounds(call, reach, conversation.as_deref().unwrap_or_default());
    if session.is_some() && filters.thread_id.is_some() && identity.thread_id != filters.thread_id {
        return Err(not_found("thread"));
    }
    let query = SearchQuery {
        workspace: identity.workspace_id.clone(),
        text: params.query,
        conversation,
        thread: filters.thread_id,
        session,
        event_types: filters.event_types,
        roles: filters.roles.iter().map(|role| role_name(*role).to_owned()).collect(),
        actor_id: filters.actor_id,
        after_ms: filters.after.map(|moment| moment.unix_ms),
        before_ms: filters.before.map(|moment| moment.unix_ms),
        event_seq_before: identity.conversation_id.clone().zip(end_of_view(call)),
        hidden: identity.superseded.clone(),
        top_k: usize::try_from(params.top_k).unwrap_or(usize::MAX),
        ..SearchQuery::default()
    };
    let read = call.shared.store.read(move |tx| {
        let exists = exists(tx, &query.workspace, query.conversation.as_deref())?;
        Ok(if exists { Some(reads::search::search(tx, &query)?) } else { None })
    });
    let hits = read.await.map_err(|error| failed(&error))?;
    let hits = hits.ok_or_else(|| not_found("conversation"))?;
    let mut items: Vec<Value> =
        hits.into_iter().map(|hit| hit_view(hit, Language::default())).collect();
    fit::all_of(&mut items, fit::bytes_max(call));
    answer(&json!({"items": items}))
}

fn role_name(role: TranscriptRole) -> &'static str {
    match role {
        TranscriptRole::User => "user",
        TranscriptRole::Assistant => "assistant",
        TranscriptRole::Tool => "tool",
        TranscriptRole::System => "system",
        TranscriptRole::Event => "event",
    }
}

fn own_conversation(call: &Call<'_>) -> Option<String> {
    call.rights.identity.conversation_id.clone()
}

/// The position of a cursor in the conversation.
fn place(
    call: &Call<'_>,
    domain: &[&str],
    cursor: Option<&str>,
) -> Result<Option<Position>, AgentAPIError> {
    let Some(cursor) = cursor else { return Ok(None) };
    Ok(Position::parse(&call.position(domain, cursor)?))
}

/// The session that a run is restricted to, and the event before which its view of a conversation ends.
fn bounds(call: &Call<'_>, reach: Reach, conversation: &str) -> (Option<String>, Option<i64>) {
    let identity = &call.rights.identity;
    let is_own = identity.conversation_id.as_deref() == Some(conversation);
    (session_in_reach(call, reach), end_of_view(call).filter(|_| is_own))
}

/// What the client of the run's event has replaced in its own conversation.
fn superseded(call: &Call<'_>, conversation: &str) -> Vec<[i64; 2]> {
    let identity = &call.rights.identity;
    match identity.conversation_id.as_deref() == Some(conversation) {
        true => identity.superseded.clone(),
        false => Vec::new(),
    }
}

/// The event before which a run's view of its own conversation ends: its own, or the one after the last that
/// it has pulled.
fn end_of_view(call: &Call<'_>) -> Option<i64> {
    call.rights.identity.conversation_seq.map(|own| own.max(call.live.pulled_seq() + 1))
}

/// An item with its own cursor, from which a reader goes on later.
fn item(row: ItemRow, cursor: String, with_artifacts: bool) -> Value {
    let mut item = item_view(row, Language::default());
    item["cursor"] = cursor.into();
    if !with_artifacts {
        item["artifacts"] = json!([]);
    }
    item
}
