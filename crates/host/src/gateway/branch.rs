//! What a client has replaced by editing an earlier message, or by continuing from one.
//!
//! Invariant: nothing is removed: ranges of events are stored with the new event, and only the view that its run has of
//! the history is without them. Only events of the same client and actor are replaced. A client that sends its newest
//! message alone replaces nothing.

use super::bound::CLIENT_MESSAGE;
use super::{AGUI_SOURCE, Refusal, Sender};
use crate::context::{Envelope, workspace_of};
use crate::host::{Host, Shared};
use greenroom_protocol::{AdapterContext, NewEvent};
use greenroom_store::reads::Direction;
use greenroom_store::reads::conversations::{Position, Span, history};
use greenroom_store::sql::Tx;
use greenroom_store::types::ItemRow;
use greenroom_store::{StoreError, reads, session_key};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Items that are read at first, and at most. What is older is not replaced.
const ITEMS_FIRST: i64 = 32;
const ITEMS_MAX: i64 = 4096;
/// Items that are read at most for a message that comes alone.
const ITEMS_ALONE: i64 = 512;

/// The ids of the messages that a client has, oldest first, before its newest one.
#[derive(Debug, Clone, Default)]
pub struct ClientBranch {
    pub earlier: Vec<String>,
    /// The newest message; none if the event is something else.
    pub newest: Option<String>,
}

/// An event of the conversation, as far as its client knows it.
#[derive(Debug, Default)]
struct Turn {
    event_seq: i64,
    event_id: Option<String>,
    run_id: Option<String>,
    actor_id: Option<String>,
    /// The ids of its message and its items.
    ids: HashSet<String>,
    /// It came from a client of this kind.
    is_client: bool,
}

/// The event that the new one continues, and the first that may be replaced.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    base: Option<usize>,
    from: i64,
}

impl Host {
    /// The events of a conversation that its newest client event has replaced, as first and last number.
    pub async fn superseded(
        &self,
        workspace: &str,
        conversation: &str,
    ) -> Result<Vec<[i64; 2]>, StoreError> {
        let scope = (workspace.to_owned(), conversation.to_owned(), String::new());
        let read = self.store().read(move |tx| ranges(tx, &scope, &ClientBranch::default(), None));
        read.await
    }
}

impl Host {
    /// What came with the event of a run in its sender's own protocol.
    pub async fn adapter(
        &self,
        workspace: &str,
        run_id: &str,
    ) -> Result<Option<AdapterContext>, StoreError> {
        let (workspace, run_id) = (workspace.to_owned(), run_id.to_owned());
        let read = self.store().read(move |tx| {
            let run = reads::runs::get(tx, &workspace, &run_id)?;
            let Some(run) = run else { return Ok::<_, StoreError>(None) };
            reads::events::load(tx, &workspace, run.event_seq)
        });
        let body = read.await?.and_then(|event| event.body);
        let envelope = body.and_then(|body| serde_json::from_str::<Envelope>(&body).ok());
        Ok(envelope.and_then(|envelope| envelope.adapter))
    }
}

impl Shared {
    pub(super) async fn superseded(
        &self,
        sender: &Sender,
        event: &NewEvent,
    ) -> Result<Vec<[i64; 2]>, Refusal> {
        let (Some(branch), Some(conversation)) = (&sender.branch, &event.conversation_id) else {
            return Ok(Vec::new());
        };
        let session = session_key(event.bot_id.as_deref(), event.thread_id.as_deref());
        let scope = (workspace_of(event).to_owned(), conversation.clone(), session);
        let own = sender.actor.as_deref().map(str::to_owned);
        let actor = event.actor.as_ref().and_then(|actor| actor.actor_id.clone()).or(own);
        let branch = branch.clone();
        let read = self.store.read(move |tx| ranges(tx, &scope, &branch, actor.as_deref()));
        read.await.map_err(Refusal::Store)
    }
}

fn ranges(
    tx: &mut dyn Tx,
    (workspace, conversation, session): &(String, String, String),
    branch: &ClientBranch,
    actor: Option<&str>,
) -> Result<Vec<[i64; 2]>, StoreError> {
    let (earlier, newest) = (branch.earlier.as_slice(), branch.newest.as_deref());
    let limit_max = if earlier.is_empty() { ITEMS_ALONE } else { ITEMS_MAX };
    let mut limit = ITEMS_FIRST;
    let (turns, place) = loop {
        let span = Span {
            session: Some(session.clone()),
            before: Position::END,
            ..Span::whole(Direction::Backward, limit)
        };
        let rows = history(tx, workspace, conversation, &span)?;
        let is_all = i64::try_from(rows.len()).unwrap_or(limit) < limit;
        let turns = turns(rows);
        // Usually the client has the newest event: its message is simply the next one.
        let is_enough = newest.is_none() || known(&turns, earlier, 0).is_some();
        if is_enough || is_all || limit >= limit_max {
            let place = place(&turns, earlier, newest);
            break (turns, place);
        }
        limit = (limit * 8).min(limit_max);
    };
    let base = place.base.and_then(|base| turns.get(base));
    let mut ranges = match base.and_then(|turn| turn.event_id.as_deref().map(|id| (turn, id))) {
        Some((turn, event_id)) => stored(tx, workspace, conversation, (turn.event_seq, event_id))?,
        None => Vec::new(),
    };
    ranges.retain(|[first, _]| *first < place.from);
    ranges.extend(replaced(&turns, place.from, actor));
    Ok(ranges)
}

/// Newest first.
fn turns(rows: Vec<ItemRow>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for row in rows {
        if turns.last().is_none_or(|turn| turn.event_seq != row.event_seq) {
            turns.push(Turn { event_seq: row.event_seq, ..Turn::default() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        // The item that came with the event.
        if row.event_type.is_some() {
            let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
            let client = body["metadata"].get(CLIENT_MESSAGE);
            turn.is_client = client.is_some();
            turn.ids.extend(client.and_then(Value::as_str).map(str::to_owned));
            turn.event_id = row.event_id;
            turn.actor_id = row.actor_id;
            turn.run_id = turn.run_id.take().or(row.run_id);
        } else {
            turn.run_id = row.run_id.or(turn.run_id.take());
        }
        turn.ids.insert(row.item_id);
    }
    turns
}

impl Turn {
    /// Whether a message belongs to it: its own, or one of its run.
    fn has(&self, id: &str) -> bool {
        let rest = self.run_id.as_deref().and_then(|run_id| id.strip_prefix(run_id));
        self.ids.contains(id)
            || id.strip_suffix(".call").is_some_and(|id| self.ids.contains(id))
            || rest.is_some_and(|rest| rest.starts_with('.'))
    }
}

/// The event of the last message that is known, among those from `start` on. Of several with one id it is the newest.
fn known(turns: &[Turn], earlier: &[String], start: usize) -> Option<usize> {
    let find = |id: &String| {
        let mut older = turns.iter().enumerate().skip(start);
        older.find(|(_, turn)| turn.is_client && turn.has(id)).map(|(index, _)| index)
    };
    earlier.iter().rev().find_map(find)
}

/// Where a message belongs among the events, newest first.
fn place(turns: &[Turn], earlier: &[String], newest: Option<&str>) -> Place {
    let oldest_of = |id: &str| turns.iter().rposition(|turn| turn.ids.contains(id));
    let client_from = |start: usize| {
        let mut later = turns.iter().enumerate().skip(start);
        later.find(|(_, turn)| turn.is_client).map(|(index, _)| index)
    };
    // The same message again: it and everything after it is replaced.
    if let Some(edited) = newest.and_then(oldest_of).filter(|index| turns[*index].is_client) {
        let base = known(turns, earlier, edited + 1).or_else(|| client_from(edited + 1));
        return Place { base, from: turns[edited].event_seq };
    }
    match known(turns, earlier, 0) {
        Some(last) => Place { base: Some(last), from: turns[last].event_seq + 1 },
        None => Place { base: client_from(0), from: i64::MAX },
    }
}

/// The events of the client and actor from this one on.
fn replaced(turns: &[Turn], from: i64, actor: Option<&str>) -> Vec<[i64; 2]> {
    let mut ranges: Vec<[i64; 2]> = Vec::new();
    let is_own = |turn: &&Turn| {
        turn.event_seq >= from && turn.is_client && turn.actor_id.as_deref() == actor
    };
    for turn in turns.iter().rev().filter(is_own) {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == turn.event_seq => *last = turn.event_seq,
            _ => ranges.push([turn.event_seq, turn.event_seq]),
        }
    }
    ranges
}

/// The ranges that an event was stored with.
fn stored(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    (event_seq, event_id): (i64, &str),
) -> Result<Vec<[i64; 2]>, StoreError> {
    let rows = reads::events::by_id(tx, workspace, event_id)?;
    let mut rows: HashMap<i64, _> = rows
        .into_iter()
        .filter(|row| row.conversation_id.as_deref() == Some(conversation))
        .filter(|row| row.source == AGUI_SOURCE)
        .filter_map(|row| Some((row.conversation_seq?, row)))
        .collect();
    let body = rows.remove(&event_seq).and_then(|row| row.body);
    let envelope = body.and_then(|body| serde_json::from_str::<Envelope>(&body).ok());
    Ok(envelope.map(|envelope| envelope.superseded).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(event_seq: i64, message: &str) -> Turn {
        Turn {
            event_seq,
            run_id: Some(format!("run_{event_seq}")),
            actor_id: Some("ann".to_owned()),
            ids: HashSet::from([message.to_owned(), format!("item_{event_seq}")]),
            is_client: !message.is_empty(),
            ..Turn::default()
        }
    }

    /// Four events, newest first; the third came from elsewhere.
    fn turns() -> Vec<Turn> {
        vec![turn(4, "u4"), turn(3, ""), turn(2, "u2"), turn(1, "u1")]
    }

    fn placed(earlier: &[&str], newest: &str) -> (Place, Vec<[i64; 2]>) {
        let turns = turns();
        let earlier: Vec<String> = earlier.iter().map(|id| (*id).to_owned()).collect();
        let place = place(&turns, &earlier, Some(newest));
        let ranges = replaced(&turns, place.from, Some("ann"));
        (place, ranges)
    }

    #[test]
    fn the_next_message_replaces_nothing() {
        for earlier in [&["u1", "run_1.3", "u2", "u4", "run_4.2"][..], &["item_4"], &["run_4.1.0"]]
        {
            let expected = (Place { base: Some(0), from: 5 }, vec![]);
            assert_eq!(placed(earlier, "u5"), expected, "{earlier:?}");
        }
        // The newest message alone, or only messages that are not known.
        for earlier in [&[][..], &["x"]] {
            assert_eq!(placed(earlier, "u5"), (Place { base: Some(0), from: i64::MAX }, vec![]));
        }
    }

    #[test]
    fn a_message_that_continues_an_earlier_one_replaces_what_came_after() {
        let expected = (Place { base: Some(3), from: 2 }, vec![[2, 2], [4, 4]]);
        assert_eq!(placed(&["u1", "item_1.call"], "u5"), expected);
        // `run_1` is not the run of `run_12.1`.
        assert_eq!(placed(&["run_12.1"], "u5").1, Vec::<[i64; 2]>::new());
    }

    #[test]
    fn the_same_message_again_replaces_itself_and_what_came_after() {
        let expected = (Place { base: Some(3), from: 2 }, vec![[2, 2], [4, 4]]);
        assert_eq!(placed(&["u1", "run_1.2"], "u2"), expected);
        assert_eq!(placed(&[], "u1"), (Place { base: None, from: 1 }, vec![[1, 2], [4, 4]]));
    }

    #[test]
    fn the_last_known_message_says_which_branch_goes_on() {
        let mut turns = turns();
        // The fourth event edited the message of the second.
        turns[0].ids.insert("u2".to_owned());
        let earlier = |ids: [&str; 2]| ids.map(str::to_owned);
        let back = place(&turns, &earlier(["u2", "run_2.1"]), Some("u5"));
        assert_eq!(back, Place { base: Some(2), from: 3 });
        let on = place(&turns, &earlier(["u1", "u2"]), Some("u5"));
        assert_eq!(on, Place { base: Some(0), from: 5 });
    }

    #[test]
    fn the_events_of_others_are_not_replaced() {
        assert_eq!(replaced(&turns(), 1, Some("bob")), Vec::<[i64; 2]>::new());
        assert_eq!(replaced(&turns(), 3, Some("ann")), [[4, 4]]);
    }
}
