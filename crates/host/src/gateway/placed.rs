//! Which stored conversation an event of a limited sender belongs to (decision 020).
//!
//! Invariant: a limited sender never joins a conversation of another one, and cannot tell whether its id is in use:
//! behind an id of another sender it has a conversation of its own. The commit checks the decision again.

use super::{Refusal, Sender, SenderLimit};
use crate::context::workspace_of;
use crate::host::Shared;
use greenroom_protocol::NewEvent;
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;
use greenroom_store::commands::{Joins, LimitedTo};
use greenroom_store::reads;
use greenroom_store::types::ConversationRow;
use std::borrow::Cow;

/// In the ids of conversations that are kept apart; limited senders cannot choose such an id.
const APART_MARK: &str = "@token:";

impl Shared {
    /// Replaces the conversation id of a limited sender's event by the id under which it is stored.
    pub(super) async fn place(&self, sender: &Sender, event: &mut NewEvent) -> Result<(), Refusal> {
        let (Some(limit), Some(id)) = (&sender.limit, event.conversation_id.clone()) else {
            return Ok(());
        };
        let apart = limit.own.apart(&id);
        // Checked for every id, so that the length of an id does not reveal whether it is in use.
        if apart.len() > EVENT_ID_BYTES_MAX {
            let bytes_max = EVENT_ID_BYTES_MAX - (apart.len() - id.len());
            let message = format!("`conversation_id` must have 1 to {bytes_max} bytes");
            return Err(Refusal::Invalid(message));
        }
        let (workspace, name) = (workspace_of(event).to_owned(), id.clone());
        let read = self.store.read(move |tx| {
            let plain = reads::conversations::get(tx, &workspace, &name)?;
            Ok((plain, reads::conversations::get(tx, &workspace, &apart)?))
        });
        let (plain, apart) = read.await.map_err(Refusal::Store)?;
        event.conversation_id = Some(decide(limit, id, plain.as_ref(), apart.as_ref()));
        Ok(())
    }
}

/// The stored id of the conversation that a limited sender calls `id`, given what is stored under both ids.
fn decide(
    limit: &SenderLimit,
    id: String,
    plain: Option<&ConversationRow>,
    apart: Option<&ConversationRow>,
) -> String {
    let begun = |row: &ConversationRow| row.begun_by.as_deref() == Some(&limit.own.begun_by);
    if limit.own.named.contains(&id) {
        return id;
    }
    let is_free = || !limit.reserved.contains(&id) && !id.contains(APART_MARK);
    match (plain, apart) {
        (_, Some(apart)) if begun(apart) => limit.own.apart(&id),
        (Some(plain), _) if begun(plain) => id,
        (None, _) if is_free() => id,
        _ => limit.own.apart(&id),
    }
}

impl Sender {
    /// The event with the conversation id that the sender chose, by which agents are bound.
    pub(super) fn as_sent<'a>(&self, event: &'a NewEvent) -> Cow<'a, NewEvent> {
        let (Some(limit), Some(stored)) = (&self.limit, &event.conversation_id) else {
            return Cow::Borrowed(event);
        };
        let id = limit.own.known_as(stored);
        if id == stored {
            return Cow::Borrowed(event);
        }
        Cow::Owned(NewEvent { conversation_id: Some(id.to_owned()), ..event.clone() })
    }

    /// What the commit of an event checks.
    pub(super) fn limited_to(&self, conversation: Option<&str>) -> Option<LimitedTo> {
        let own = &self.limit.as_ref()?.own;
        let is_named = conversation.is_some_and(|id| own.named.contains(id));
        let joins = if is_named { Joins::Named } else { Joins::Own };
        Some(LimitedTo { sender: own.begun_by.clone(), joins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_store::reads::conversations::{Names, Own};
    use std::sync::Arc;

    fn row(id: &str, begun_by: Option<&str>) -> ConversationRow {
        ConversationRow {
            conversation_id: id.to_owned(),
            event_seq: 1,
            transcript_seq: 1,
            created_at: 0,
            updated_at: 0,
            begun_by: begun_by.map(str::to_owned),
        }
    }

    #[test]
    fn a_limited_sender_joins_its_own_conversations_only() {
        let names = |names: &[&str]| Names(names.iter().map(|name| (*name).to_owned()).collect());
        let own = Own { begun_by: "token:web".to_owned(), named: names(&["shared", "team-*"]) };
        let limit = SenderLimit { own: Arc::new(own), reserved: names(&["telegram:*"]) };
        let (mine, theirs, nobody) = (Some("token:web"), Some("token:shop"), None);
        let none = Option::<Option<&str>>::None;
        let cases = [
            ("c1", none, none, "c1"),
            ("c1", Some(mine), none, "c1"),
            ("c1", Some(theirs), none, "c1@token:web"),
            ("c1", Some(Some("admin")), none, "c1@token:web"),
            // Begun before the sender of the first event was recorded.
            ("c1", Some(nobody), none, "c1@token:web"),
            ("c1", Some(theirs), Some(mine), "c1@token:web"),
            // The other sender's conversation was deleted.
            ("c1", none, Some(mine), "c1@token:web"),
            ("C1", none, none, "C1"),
            ("shared", Some(theirs), none, "shared"),
            ("team-7", Some(nobody), none, "team-7"),
            ("telegram:5", none, none, "telegram:5@token:web"),
            ("c1@token:shop", none, none, "c1@token:shop@token:web"),
        ];
        for (id, plain, apart, expected) in cases {
            let plain = plain.map(|begun_by| row(id, begun_by));
            let apart = apart.map(|begun_by| row(&limit.own.apart(id), begun_by));
            let decided = decide(&limit, id.to_owned(), plain.as_ref(), apart.as_ref());
            assert_eq!(decided, expected, "{plain:?} {apart:?}");
        }
    }
}
