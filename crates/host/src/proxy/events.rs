//! `events.*`: the event log within the run's reach.
//!
//! Invariant: an event out of reach looks like a missing one; events after the run's own are visible, since
//! the log also holds what the run itself did.

use super::call::{Answer, Call, answer, failed, not_found};
use super::fit;
use crate::query::event_view;
use crate::settings::Reach;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::events::{EventGetParams, EventPageParams};
use greenroom_store::sql::Tx;
use greenroom_store::types::EventRow;
use greenroom_store::{StoreError, reads};
use serde_json::json;

/// Rows per read.
const WINDOW_ROWS: i64 = 32;
/// Reads per page; then the page is cut short.
const WINDOWS_MAX: usize = 200;

pub(super) async fn get(call: &mut Call<'_>) -> Answer {
    let params: EventGetParams = call.params()?;
    call.about(Some(&params.event_id), Some(reach_name(call.rights.grant.events.reach).into()));
    let workspace = call.workspace().to_owned();
    let read = call
        .shared
        .store
        .read_inline(move |tx| reads::events::by_id(tx, &workspace, &params.event_id));
    let rows = read.await.map_err(|error| failed(&error))?;
    let row = rows.into_iter().find(|row| is_in_reach(call, row));
    let mut event = event_view(row.ok_or_else(|| not_found("event"))?);
    fit::shorten(&mut event, fit::bytes_max(call));
    answer(&event)
}

pub(super) async fn page(call: &mut Call<'_>) -> Answer {
    let params: EventPageParams = call.params()?;
    let reach = call.rights.grant.events.reach;
    call.about(params.conversation_id.as_deref(), Some(reach_name(reach).into()));
    let conversation = conversation_in_reach(call, reach, params.conversation_id)?;
    let session = session_in_reach(call, reach);
    let workspace = call.workspace().to_owned();
    let domain = [
        "run-events".to_owned(),
        workspace.clone(),
        conversation.clone().unwrap_or_default(),
        params.event_types.join("\n"),
    ];
    let domain = domain.each_ref().map(String::as_str);
    let before = match &params.before_cursor {
        Some(cursor) => call.position(&domain, cursor)?.parse().unwrap_or(i64::MAX),
        None => i64::MAX,
    };
    let limit = call.page_size(params.limit);
    // The fields around an event may not double its size.
    let bytes_max = call.settings.limits.response_bytes / 2;
    let read = call.shared.store.read(move |tx| {
        if !exists(tx, &workspace, conversation.as_deref())? {
            return Ok(None);
        }
        let wanted = |row: &EventRow| {
            let is_of_type =
                params.event_types.is_empty() || params.event_types.contains(&row.event_type);
            is_of_type && session.as_ref().is_none_or(|own| *own == row.session)
        };
        let span = SliceSpan { before, limit, bytes_max };
        read_slice(tx, (&workspace, conversation.as_deref()), &span, wanted).map(Some)
    });
    let found = read.await.map_err(|error| failed(&error))?;
    let Slice { rows, mut before, mut has_more } =
        found.ok_or_else(|| not_found("conversation"))?;
    let places: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    let mut items: Vec<_> = rows.into_iter().map(event_view).collect();
    fit::first_of(&mut items, fit::bytes_max(call));
    if items.len() < places.len() {
        (before, has_more) = (places[items.len() - 1], true);
    }
    let next_cursor = has_more.then(|| call.shared.cursors.seal(&domain, &before.to_string()));
    answer(&json!({"items": items, "next_cursor": next_cursor, "has_more": has_more}))
}

/// How much of the log is read.
struct SliceSpan {
    before: i64,
    limit: usize,
    bytes_max: usize,
}

/// The events that are wanted, newest first.
fn read_slice(
    tx: &mut dyn Tx,
    (workspace, conversation): (&str, Option<&str>),
    span: &SliceSpan,
    wanted: impl Fn(&EventRow) -> bool,
) -> Result<Slice, StoreError> {
    let mut found = Slice { rows: Vec::new(), before: span.before, has_more: true };
    let mut bytes = 0;
    // One row more than requested shows whether there are more; the search for a rare type is bounded.
    for _ in 0..WINDOWS_MAX {
        let window = reads::events::page(tx, workspace, conversation, found.before, WINDOW_ROWS)?;
        let is_last = window.len() < WINDOW_ROWS as usize;
        for row in window {
            bytes += row.body.as_ref().map_or(0, String::len);
            let is_full = found.rows.len() == span.limit && wanted(&row);
            if is_full || (bytes > span.bytes_max && found.before != span.before) {
                return Ok(found);
            }
            found.before = row.seq;
            if wanted(&row) {
                found.rows.push(row);
            }
        }
        if is_last {
            found.has_more = false;
            break;
        }
    }
    Ok(found)
}

/// A part of the log, and where it continues.
struct Slice {
    rows: Vec<EventRow>,
    before: i64,
    has_more: bool,
}

fn is_in_reach(call: &Call<'_>, row: &EventRow) -> bool {
    let identity = &call.rights.identity;
    // The run's own event is visible even without a conversation.
    let is_own = row.event_id == identity.event_id && row.run_id.as_ref() == Some(&identity.run_id);
    match call.rights.grant.events.reach {
        Reach::None => false,
        Reach::Conversation => {
            is_own || identity.is_own(row.conversation_id.as_deref(), &row.session)
        }
        Reach::Workspace => true,
    }
}

/// The conversation of a list: the run's own, or the one named if the grant reaches that far; absent for the
/// whole workspace.
pub(super) fn conversation_in_reach(
    call: &Call<'_>,
    reach: Reach,
    named: Option<String>,
) -> Result<Option<String>, AgentAPIError> {
    let own = call.rights.identity.conversation_id.clone();
    match (reach, named) {
        (Reach::Workspace, named) => Ok(named),
        (_, Some(named)) if Some(&named) != own.as_ref() => Err(not_found("conversation")),
        (_, _) => own.map(Some).ok_or_else(|| not_found("conversation")),
    }
}

/// The session that a list is limited to; none if the grant reaches further.
pub(super) fn session_in_reach(call: &Call<'_>, reach: Reach) -> Option<String> {
    let session = call.rights.identity.own_session().filter(|_| reach == Reach::Conversation);
    session.map(str::to_owned)
}

/// Checks that a named conversation exists.
pub(super) fn exists(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: Option<&str>,
) -> Result<bool, StoreError> {
    match conversation {
        Some(id) => Ok(reads::conversations::get(tx, workspace, id)?.is_some()),
        None => Ok(true),
    }
}

pub(super) fn reach_name(reach: Reach) -> &'static str {
    match reach {
        Reach::None => "none",
        Reach::Conversation => "conversation",
        Reach::Workspace => "workspace",
    }
}
