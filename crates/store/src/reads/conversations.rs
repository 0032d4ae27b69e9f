//! Conversations and their transcripts.

use super::Direction;
use crate::sql::{Row, Tx};
use crate::types::{ConversationRow, ItemRow};
use crate::{StoreError, params};

pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
) -> Result<Option<ConversationRow>, StoreError> {
    let row = tx.query_opt(
        "SELECT conversation_id, event_seq, transcript_seq, created_at, updated_at
         FROM conversations WHERE workspace_id = ?1 AND conversation_id = ?2",
        params![workspace, conversation],
    )?;
    row.map(read_conversation).transpose()
}

/// A page of conversations, the most recently used first; `before` is where the last page ended.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    before: Option<(i64, &str)>,
    limit: i64,
) -> Result<Vec<ConversationRow>, StoreError> {
    let rows = tx.query(
        "SELECT conversation_id, event_seq, transcript_seq, created_at, updated_at
         FROM conversations
         WHERE workspace_id = ?1 AND (CAST(?2 AS BIGINT) IS NULL OR updated_at < ?2
             OR (updated_at = ?2 AND conversation_id < ?3))
         ORDER BY updated_at DESC, conversation_id DESC LIMIT ?4",
        params![workspace, before.map(|at| at.0), before.map(|at| at.1), limit],
    )?;
    rows.into_iter().map(read_conversation).collect()
}

/// Where a page of a transcript starts and ends.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Items above this number only.
    pub after: i64,
    /// Items below this number only.
    pub before: i64,
    pub direction: Direction,
    pub limit: i64,
}

/// A page of transcript items in the direction asked for.
pub fn history(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    span: Span,
) -> Result<Vec<ItemRow>, StoreError> {
    let params = params![workspace, conversation, span.after, span.before, span.limit];
    let rows = match span.direction {
        Direction::Backward => tx.query(
            "SELECT conversation_id, seq, item_id, thread_id, role, event_id, run_id, text, body,
                 created_at
             FROM transcript
             WHERE workspace_id = ?1 AND conversation_id = ?2 AND seq > ?3 AND seq < ?4
             ORDER BY seq DESC LIMIT ?5",
            params,
        )?,
        Direction::Forward => tx.query(
            "SELECT conversation_id, seq, item_id, thread_id, role, event_id, run_id, text, body,
                 created_at
             FROM transcript
             WHERE workspace_id = ?1 AND conversation_id = ?2 AND seq > ?3 AND seq < ?4
             ORDER BY seq LIMIT ?5",
            params,
        )?,
    };
    rows.into_iter().map(read_item).collect()
}

fn read_conversation(mut row: Row) -> Result<ConversationRow, StoreError> {
    Ok(ConversationRow {
        conversation_id: row.text()?,
        event_seq: row.int()?,
        transcript_seq: row.int()?,
        created_at: row.int()?,
        updated_at: row.int()?,
    })
}

fn read_item(mut row: Row) -> Result<ItemRow, StoreError> {
    Ok(ItemRow {
        conversation_id: row.text()?,
        seq: row.int()?,
        item_id: row.text()?,
        thread_id: row.opt_text()?,
        role: row.text()?,
        event_id: row.opt_text()?,
        run_id: row.opt_text()?,
        text: row.opt_text()?,
        body: row.text()?,
        created_at: row.int()?,
    })
}
