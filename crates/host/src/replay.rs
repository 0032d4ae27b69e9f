//! Replay of a run: its event is sent again, marked as a replay and without delivery.
//!
//! Invariant: a replay is an event of its own; the ids of all replays of an event share a prefix.

use crate::artifacts::Ingested;
use crate::context::Envelope;
use crate::gateway::{ActorIds, ClientBranch, Refusal, Sender, hash};
use crate::host::Host;
use crate::ids;
use greenroom_protocol::{EventAnswer, NewEvent};
use greenroom_store::reads;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};

/// The key in `metadata` that names the replayed event.
pub(crate) const REPLAY_OF: &str = "replay_of";
/// Bytes of the hash of an event's id in the ids of its replays.
const MARK_BYTES: usize = 8;

impl Host {
    /// Sends the event of a run again, to the same agent or another. `Ok(None)`: the run does not exist.
    pub async fn replay(
        &self,
        sender: &Sender,
        workspace: &str,
        run_id: &str,
        agent: Option<String>,
    ) -> Result<Option<EventAnswer>, Refusal> {
        let (workspace, id) = (workspace.to_owned(), run_id.to_owned());
        let read = self.store().read(move |tx| {
            let Some(run) = reads::runs::get(tx, &workspace, &id)? else { return Ok(None) };
            let event = reads::events::load(tx, &workspace, run.event_seq)?;
            Ok(Some((run, event)))
        });
        let Some((run, event)) = read.await.map_err(Refusal::Store)? else { return Ok(None) };
        let body = event.and_then(|event| event.body).ok_or(Refusal::Gone)?;
        let envelope: Envelope = serde_json::from_str(&body).map_err(|_| Refusal::Gone)?;
        // Its actor is the same person, although its source is another.
        let people = envelope.actors_of.as_deref().unwrap_or(&envelope.event.source);
        let actors = match sender.actors.includes(people) {
            true => ActorIds::Of(people.into()),
            false => sender.actors.clone(),
        };
        let event = again(envelope.event, &run.event_id, agent.unwrap_or(run.agent));
        let body = to_raw_value(&event).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let locale = envelope.locale.map(Into::into);
        let branch = envelope.adapter.is_some().then(ClientBranch::default);
        let adapter = envelope.adapter;
        let sender = Sender { adapter, branch, actors, locale, ..sender.clone() };
        let ingested = Ingested { event, raw_ref: envelope.raw_ref, kept: Vec::new() };
        let (answer, _) = self.accept_ingested(&sender, ingested, hash(&body)).await?;
        Ok(Some(answer))
    }
}

/// The event of the replay: without the source, time and delivery of the original.
fn again(mut event: NewEvent, event_id: &str, agent: String) -> NewEvent {
    event.metadata.insert(REPLAY_OF.to_owned(), event_id.into());
    NewEvent {
        event_id: Some(ids::fresh(replays_of(event_id).trim_end_matches('_'))),
        source: "api".to_owned(),
        event_time: None,
        delivery: None,
        agent: Some(agent),
        ..event
    }
}

/// The prefix of the ids of an event's replays.
pub(crate) fn replays_of(event_id: &str) -> String {
    let hash = Sha256::digest(event_id.as_bytes());
    format!("rpl_{}_", ids::hex(&hash[..MARK_BYTES]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_replay_keeps_the_event_and_leaves_out_its_way_in_and_out() {
        let event = json!({"event_type": "message.received", "event_id": "e1", "source": "forum",
            "event_time": 7, "conversation_id": "c1", "thread_id": "t1", "bot_id": "b1",
            "actor": {"actor_type": "user", "actor_id": "u1"}, "delivery": {"surface": "s"},
            "input": {"text": "hi"}, "data": {"a": 1}, "metadata": {"lang": "en"}});
        let event: NewEvent = serde_json::from_value(event).unwrap();
        let replay = again(event.clone(), "e1", "triage".to_owned());
        let id = replay.event_id.clone().unwrap();
        assert!(id.starts_with(&replays_of("e1")) && id.len() > 50, "{id}");
        assert!(replay.check().is_ok());
        let expected = NewEvent {
            event_id: Some(id),
            source: "api".to_owned(),
            event_time: None,
            delivery: None,
            agent: Some("triage".to_owned()),
            metadata: [("lang".to_owned(), json!("en")), ("replay_of".to_owned(), json!("e1"))]
                .into_iter()
                .collect(),
            ..event
        };
        assert_eq!(replay, expected);
    }

    #[test]
    fn replays_of_one_event_share_a_beginning_that_others_do_not_have() {
        let long = "x".repeat(512);
        let prefixes = ["e1", "e2", "", &long].map(replays_of);
        for (index, prefix) in prefixes.iter().enumerate() {
            assert_eq!(prefix.len(), 21, "{prefix}");
            assert!(!prefixes[..index].contains(prefix), "{prefix}");
        }
    }
}
