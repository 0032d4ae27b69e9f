//! The event log.

use super::conversations;
use crate::records::TOKEN_MARK;
use crate::sql::{Row, Tx};
use crate::types::EventRow;
use crate::{StoreError, params};
use std::borrow::Cow;

macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT seq, source, event_id, event_type, conversation_id, conversation_seq, run_id,
                 body, created_at, session
             FROM events ",
            $tail
        )
    };
}

/// The event with this position in the log.
pub fn load(tx: &mut dyn Tx, workspace: &str, seq: i64) -> Result<Option<EventRow>, StoreError> {
    let row =
        tx.query_opt(select!("WHERE seq = ?1 AND workspace_id = ?2"), params![seq, workspace])?;
    row.map(read).transpose()
}

/// The event of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub seq: i64,
    pub body_hash: Vec<u8>,
    /// The run it led to, or the one that it steers.
    pub run_id: Option<String>,
}

/// The column `source`: with the limited token that sent the event, so that its event ids are its own.
pub(crate) fn stored_source<'a>(source: &'a str, sender: Option<&str>) -> Cow<'a, str> {
    match sender {
        Some(sender) => format!("{source}{TOKEN_MARK}{sender}").into(),
        None => source.into(),
    }
}

/// The key of an event as its sender knows it.
#[derive(Debug, Clone, Copy)]
pub struct EventKey<'a> {
    pub source: &'a str,
    /// The limited token that sent it.
    pub sender: Option<&'a str>,
    pub event_id: &'a str,
}

/// The event that was accepted with a key. Events of a limited token that were stored before its event ids were
/// its own are recognised by their body and conversation.
pub fn known(
    tx: &mut dyn Tx,
    workspace: &str,
    key: EventKey<'_>,
    body_hash: &[u8],
) -> Result<Option<Known>, StoreError> {
    let source = stored_source(key.source, key.sender);
    if let Some(known) = by_key(tx, workspace, &source, key.event_id)? {
        return Ok(Some(known));
    }
    let Some(sender) = key.sender else { return Ok(None) };
    let Some(older) = by_key(tx, workspace, key.source, key.event_id)? else { return Ok(None) };
    if older.body_hash != body_hash {
        return Ok(None);
    }
    let event = load(tx, workspace, older.seq)?;
    let Some(conversation) = event.and_then(|event| event.conversation_id) else { return Ok(None) };
    let begun_by = conversations::get(tx, workspace, &conversation)?.and_then(|row| row.begun_by);
    Ok(Some(older).filter(|_| begun_by.as_deref() == Some(sender)))
}

/// The event with a key.
fn by_key(
    tx: &mut dyn Tx,
    workspace: &str,
    source: &str,
    event_id: &str,
) -> Result<Option<Known>, StoreError> {
    let row = tx.query_opt(
        "SELECT seq, body_hash, run_id FROM events
         WHERE workspace_id = ?1 AND source = ?2 AND event_id = ?3",
        params![workspace, source, event_id],
    )?;
    let read = |mut row: Row| {
        Ok(Known { seq: row.int()?, body_hash: row.blob()?, run_id: row.opt_text()? })
    };
    row.map(read).transpose()
}

/// All events with this id: ids are the sender's, so two sources may use the same one.
pub fn by_id(
    tx: &mut dyn Tx,
    workspace: &str,
    event_id: &str,
) -> Result<Vec<EventRow>, StoreError> {
    let rows = tx.query(
        select!("WHERE workspace_id = ?1 AND event_id = ?2 ORDER BY seq LIMIT 16"),
        params![workspace, event_id],
    )?;
    rows.into_iter().map(read).collect()
}

/// Events whose ids begin so, in the order of their ids.
pub fn by_id_prefix(
    tx: &mut dyn Tx,
    workspace: &str,
    prefix: &str,
    limit: i64,
) -> Result<Vec<EventRow>, StoreError> {
    let end = format!("{prefix}\u{10ffff}");
    let rows = tx.query(
        select!(
            "WHERE workspace_id = ?1 AND event_id >= ?2 AND event_id < ?3
             ORDER BY event_id, source LIMIT ?4"
        ),
        params![workspace, prefix, &end, limit],
    )?;
    rows.into_iter().map(read).collect()
}

/// A page of the log, newest first, older than `before`.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: Option<&str>,
    before: i64,
    limit: i64,
) -> Result<Vec<EventRow>, StoreError> {
    let rows = match conversation {
        Some(conversation) => tx.query(
            select!(
                "WHERE workspace_id = ?1 AND conversation_id = ?2 AND seq < ?3
                 ORDER BY seq DESC LIMIT ?4"
            ),
            params![workspace, conversation, before, limit],
        )?,
        // `|| ''` lets SQLite go down the log itself instead of sorting an index of the workspace.
        None => tx.query(
            select!("WHERE workspace_id || '' = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3"),
            params![workspace, before, limit],
        )?,
    };
    rows.into_iter().map(read).collect()
}

fn read(mut row: Row) -> Result<EventRow, StoreError> {
    let (seq, stored) = (row.int()?, row.text()?);
    let (source, sender) = match stored.split_once(TOKEN_MARK) {
        Some((source, sender)) => (source.to_owned(), Some(sender.to_owned())),
        None => (stored, None),
    };
    Ok(EventRow {
        seq,
        source,
        sender,
        event_id: row.text()?,
        event_type: row.text()?,
        conversation_id: row.opt_text()?,
        conversation_seq: row.opt_int()?,
        run_id: row.opt_text()?,
        body: row.opt_text()?,
        created_at: row.int()?,
        session: row.text()?,
    })
}
