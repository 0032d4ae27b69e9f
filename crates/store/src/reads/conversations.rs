//! Conversations and their transcripts.

mod within;

pub use within::history_within;

use super::Direction;
use crate::sql::{Row, Tx};
use crate::types::{ConversationRow, ItemRow};
use crate::{StoreError, params};
use std::collections::HashMap;
use std::sync::Arc;

/// The columns for `read_item`.
macro_rules! item_columns {
    () => {
        "id, conversation_id, event_seq, seq, item_id, thread_id, role, event_type, actor_id,
         event_id, run_id, text, body, created_at"
    };
}

/// A page of a transcript, with one more condition and in one order.
macro_rules! page_of {
    ($and:literal, $order:literal) => {
        concat!(
            "SELECT ",
            item_columns!(),
            " FROM transcript
              WHERE workspace_id = ?1 AND conversation_id = ?2
                AND (event_seq, seq) > (?3, ?4) AND (event_seq, seq) < (?5, ?6) ",
            $and,
            " ORDER BY event_seq ",
            $order,
            ", seq ",
            $order,
            " LIMIT ?7"
        )
    };
}

/// A page of conversations, with one more condition.
macro_rules! listed {
    ($and:literal) => {
        concat!(
            "SELECT conversation_id, event_seq, transcript_seq, created_at, updated_at, begun_by
             FROM conversations
             WHERE workspace_id = ?1 AND (CAST(?2 AS BIGINT) IS NULL OR updated_at < ?2
                 OR (updated_at = ?2 AND conversation_id < ?3)) ",
            $and,
            " ORDER BY updated_at DESC, conversation_id DESC LIMIT ?4"
        )
    };
}

/// Which conversations a token may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    All,
    Own(Arc<Own>),
}

/// The conversations of one token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Those whose first event this token sent: `token:NAME`.
    pub begun_by: String,
    /// Those that its configuration names.
    pub named: Names,
}

/// Ids of conversations: each is one id, or a prefix if it ends with `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl Names {
    pub fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|name| match name.strip_suffix('*') {
            Some(prefix) => id.starts_with(prefix),
            None => id == name,
        })
    }
}

impl Reach {
    pub fn covers(&self, conversation: &ConversationRow) -> bool {
        match self {
            Reach::All => true,
            Reach::Own(own) => own.covers(conversation),
        }
    }
}

impl Own {
    pub fn covers(&self, conversation: &ConversationRow) -> bool {
        conversation.begun_by.as_deref() == Some(&self.begun_by)
            || self.named.contains(&conversation.conversation_id)
    }

    /// The id under which this token's conversation is stored if `id` belongs to another sender.
    pub fn apart(&self, id: &str) -> String {
        format!("{id}@{}", self.begun_by)
    }

    /// The id by which this token knows a stored conversation.
    pub fn known_as<'a>(&self, stored: &'a str) -> &'a str {
        let id = stored.strip_suffix(&self.begun_by).and_then(|id| id.strip_suffix('@'));
        id.unwrap_or(stored)
    }
}

/// The stored id of the conversation that a token calls `id`: never that of another sender.
pub fn stored_id(
    tx: &mut dyn Tx,
    workspace: &str,
    own: &Own,
    id: &str,
) -> Result<String, StoreError> {
    let apart = own.apart(id);
    let plain = get(tx, workspace, id)?;
    let is_foreign = plain.is_some_and(|plain| !own.covers(&plain));
    let has_apart = get(tx, workspace, &apart)?.is_some_and(|found| own.covers(&found));
    let is_apart = (is_foreign || has_apart) && !own.named.contains(id);
    Ok(if is_apart { apart } else { id.to_owned() })
}

/// A conversation within reach.
pub fn within(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    reach: &Reach,
) -> Result<Option<ConversationRow>, StoreError> {
    Ok(get(tx, workspace, conversation)?.filter(|found| reach.covers(found)))
}

pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
) -> Result<Option<ConversationRow>, StoreError> {
    let row = tx.query_opt(
        "SELECT conversation_id, event_seq, transcript_seq, created_at, updated_at, begun_by
         FROM conversations WHERE workspace_id = ?1 AND conversation_id = ?2",
        params![workspace, conversation],
    )?;
    row.map(read_conversation).transpose()
}

/// A page of conversations, the most recently used first; `before` is where the last page ended.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    reach: &Reach,
    before: Option<(i64, &str)>,
    limit: i64,
) -> Result<Vec<ConversationRow>, StoreError> {
    let (at, id) = (before.map(|at| at.0), before.map(|at| at.1));
    let rows = match reach {
        Reach::All => tx.query(listed!(""), params![workspace, at, id, limit])?,
        Reach::Own(own) if own.named.0.is_empty() => {
            let begun_by = &own.begun_by;
            tx.query(listed!("AND begun_by = ?5"), params![workspace, at, id, limit, begun_by])?
        }
        Reach::Own(own) => return page_of_named(tx, workspace, own, before, limit),
    };
    rows.into_iter().map(read_conversation).collect()
}

/// Conversations that are read at once when most of them may be out of reach.
const SCANNED: i64 = 500;

/// A page for a token whose configuration names conversations: all are read, in order, until it is full.
fn page_of_named(
    tx: &mut dyn Tx,
    workspace: &str,
    own: &Own,
    before: Option<(i64, &str)>,
    limit: i64,
) -> Result<Vec<ConversationRow>, StoreError> {
    let wanted = usize::try_from(limit).unwrap_or(0);
    let mut before = before.map(|(at, id)| (at, id.to_owned()));
    let mut page = Vec::new();
    loop {
        let (at, id) = before.clone().unzip();
        let rows = tx.query(listed!(""), params![workspace, at, &id, SCANNED])?;
        let is_last = i64::try_from(rows.len()).unwrap_or(0) < SCANNED;
        for row in rows {
            let row = read_conversation(row)?;
            before = Some((row.updated_at, row.conversation_id.clone()));
            if own.covers(&row) {
                page.push(row);
            }
            if page.len() == wanted {
                return Ok(page);
            }
        }
        if is_last {
            return Ok(page);
        }
    }
}

/// The position of an item in its conversation: items of one event are adjacent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub event_seq: i64,
    pub seq: i64,
}

impl Position {
    /// Before everything.
    pub const START: Position = Position { event_seq: 0, seq: 0 };
    /// After everything.
    pub const END: Position = Position { event_seq: i64::MAX, seq: i64::MAX };

    /// Before everything that belongs to an event.
    pub fn before_event(event_seq: i64) -> Position {
        Position { event_seq, seq: 0 }
    }

    /// The position of an item.
    pub fn of(item: &ItemRow) -> Position {
        Position { event_seq: item.event_seq, seq: item.seq }
    }

    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Position> {
        let (event_seq, seq) = text.split_once('.')?;
        let position = Position { event_seq: event_seq.parse().ok()?, seq: seq.parse().ok()? };
        (position.to_string() == text).then_some(position)
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.event_seq, self.seq)
    }
}

/// Where a page of a transcript starts and ends.
#[derive(Debug, Clone)]
pub struct Span {
    /// Only items after this position.
    pub after: Position,
    /// Only items before this position.
    pub before: Position,
    pub direction: Direction,
    pub limit: i64,
    /// Items of one session only.
    pub session: Option<String>,
    /// Items of earlier events only: what a run may see ends before its own.
    pub event_seq_before: Option<i64>,
    /// Items of these roles only; empty: of all. For `history_within`.
    pub roles: &'static [&'static str],
    /// Without items of these events, as first and last number. For `history_within`.
    pub hidden: Vec<[i64; 2]>,
}

impl Span {
    /// A page of the whole conversation.
    pub fn whole(direction: Direction, limit: i64) -> Span {
        let (after, before) = (Position::START, Position::END);
        Span {
            after,
            before,
            direction,
            limit,
            session: None,
            event_seq_before: None,
            roles: &[],
            hidden: Vec::new(),
        }
    }

    fn wants_all(&self) -> bool {
        self.roles.is_empty() && self.hidden.is_empty()
    }

    fn wants(&self, row: &ItemRow) -> bool {
        (self.roles.is_empty() || self.roles.contains(&row.role.as_str()))
            && !is_hidden(&self.hidden, row.event_seq)
    }
}

/// Whether an event is in one of the ranges.
pub fn is_hidden(ranges: &[[i64; 2]], event_seq: i64) -> bool {
    ranges.iter().any(|[first, last]| (*first..=*last).contains(&event_seq))
}

/// A page of transcript items in the given direction.
pub fn history(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    span: &Span,
) -> Result<Vec<ItemRow>, StoreError> {
    let own = span.event_seq_before.map_or(Position::END, Position::before_event);
    let (after, before) = (span.after, span.before.min(own));
    let mut params = params![
        workspace,
        conversation,
        after.event_seq,
        after.seq,
        before.event_seq,
        before.seq,
        span.limit,
    ]
    .to_vec();
    // The index of sessions leaves out the empty one, which most items have.
    let session = span.session.as_deref();
    params.extend(session.filter(|key| !key.is_empty()).map(crate::sql::Value::from));
    let sql = match (span.direction, session) {
        (Direction::Backward, None) => page_of!("", "DESC"),
        (Direction::Forward, None) => page_of!("", "ASC"),
        (Direction::Backward, Some("")) => page_of!("AND session = ''", "DESC"),
        (Direction::Forward, Some("")) => page_of!("AND session = ''", "ASC"),
        (Direction::Backward, Some(_)) => page_of!("AND session <> '' AND session = ?8", "DESC"),
        (Direction::Forward, Some(_)) => page_of!("AND session <> '' AND session = ?8", "ASC"),
    };
    tx.query(sql, &params)?.into_iter().map(read_item).collect()
}

/// Items by their numbers; those that are gone are left out.
pub(super) fn by_ids(tx: &mut dyn Tx, ids: &[i64]) -> Result<HashMap<i64, ItemRow>, StoreError> {
    let mut found = HashMap::with_capacity(ids.len());
    for ids in ids.chunks(8) {
        // No item has the number 0.
        let id = |n: usize| ids.get(n).copied().unwrap_or(0);
        let rows = tx.query(
            concat!(
                "SELECT ",
                item_columns!(),
                " FROM transcript WHERE id IN (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
            ),
            params![id(0), id(1), id(2), id(3), id(4), id(5), id(6), id(7)],
        )?;
        for row in rows {
            let item = read_item(row)?;
            found.insert(item.id, item);
        }
    }
    Ok(found)
}

fn read_conversation(mut row: Row) -> Result<ConversationRow, StoreError> {
    Ok(ConversationRow {
        conversation_id: row.text()?,
        event_seq: row.int()?,
        transcript_seq: row.int()?,
        created_at: row.int()?,
        updated_at: row.int()?,
        begun_by: row.opt_text()?,
    })
}

fn read_item(mut row: Row) -> Result<ItemRow, StoreError> {
    Ok(ItemRow {
        id: row.int()?,
        conversation_id: row.text()?,
        event_seq: row.int()?,
        seq: row.int()?,
        item_id: row.text()?,
        thread_id: row.opt_text()?,
        role: row.text()?,
        event_type: row.opt_text()?,
        actor_id: row.opt_text()?,
        event_id: row.opt_text()?,
        run_id: row.opt_text()?,
        text: row.opt_text()?,
        body: row.text()?,
        created_at: row.int()?,
    })
}
