//! Counters of a conversation, and the items that are numbered by them.

use crate::search::index;
use crate::sql::{Tx, prose};
use crate::types::NewItem;
use crate::{StoreError, params};

/// Buckets that conversations are hashed into; never changes.
const BUCKETS: u64 = 1024;

/// Counts one more event, with its item if it has one, and returns both counters.
pub(super) fn count_event(
    tx: &mut dyn Tx,
    (workspace, conversation): (&str, &str),
    items: i64,
    sent_by: &Option<String>,
    now_ms: i64,
) -> Result<(i64, i64), StoreError> {
    let row = tx.query_opt(
        "INSERT INTO conversations (workspace_id, conversation_id, bucket, event_seq,
             transcript_seq, created_at, updated_at, begun_by)
         VALUES (?1, ?2, ?3, 1, ?4, ?5, ?5, ?6)
         ON CONFLICT (workspace_id, conversation_id) DO UPDATE SET
             event_seq = conversations.event_seq + 1,
             transcript_seq = conversations.transcript_seq + excluded.transcript_seq,
             updated_at = excluded.updated_at
         RETURNING event_seq, transcript_seq",
        params![workspace, conversation, bucket(workspace, conversation), items, now_ms, sent_by],
    )?;
    let mut row = row.ok_or_else(no_counter)?;
    Ok((row.int()?, row.int()?))
}

/// Sets how many items a conversation has. `updated_at` is the time of its last event: an answer does not change
/// it, which saves a write to that index.
pub(super) fn set_items(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    items: i64,
) -> Result<(), StoreError> {
    let changed = tx.execute(
        "UPDATE conversations SET transcript_seq = ?3
         WHERE workspace_id = ?1 AND conversation_id = ?2",
        params![workspace, conversation, items],
    )?;
    if changed == 1 { Ok(()) } else { Err(no_counter()) }
}

fn no_counter() -> StoreError {
    StoreError::Refused("no conversation counter".to_owned())
}

/// The event that an item belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemPosition<'a> {
    pub(super) workspace: &'a str,
    pub(super) conversation: &'a str,
    /// The conversation's event that the item belongs to.
    pub(super) event_seq: i64,
    /// The type of that event for the item that came with it.
    pub(super) event_type: Option<&'a str>,
}

pub(super) fn insert_item(
    tx: &mut dyn Tx,
    position: ItemPosition<'_>,
    seq: i64,
    item: &NewItem,
    now_ms: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO transcript (workspace_id, conversation_id, event_seq, seq, item_id, thread_id,
             role, event_type, actor_id, event_id, run_id, text, body, created_at, session)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            position.workspace,
            position.conversation,
            position.event_seq,
            seq,
            &item.item_id,
            &item.thread_id,
            item.role,
            position.event_type,
            &item.actor_id,
            &item.event_id,
            &item.run_id,
            &item.text.as_deref().map(prose),
            &item.body,
            now_ms,
            &item.session,
        ],
    )?;
    Ok(())
}

/// Removes items from the transcript and from the index. The index mark never exceeds the newest item: a
/// number may be used again.
pub(super) fn remove_items(tx: &mut dyn Tx, ids: &[i64]) -> Result<u64, StoreError> {
    let mut removed = 0;
    for id in ids {
        removed += tx.execute("DELETE FROM transcript WHERE id = ?1", params![*id])?;
        index::remove(tx, *id)?;
    }
    let (upto, newest) = (index::upto(tx)?, index::newest(tx)?);
    if upto > newest {
        index::move_upto(tx, upto, newest)?;
    }
    Ok(removed)
}

/// FNV-1a, so that a conversation stays in its bucket across versions and machines.
fn bucket(workspace: &str, conversation: &str) -> i64 {
    let bytes = workspace.bytes().chain([0]).chain(conversation.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    i64::try_from(hash % BUCKETS).unwrap_or(0)
}
