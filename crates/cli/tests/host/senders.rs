//! Senders that go on while the host comes and goes, with a reader on every run they started.
//!
//! Invariant: what is in `Sent` was acknowledged; what may or may not have arrived is in `doubtful`.

use greenroom_testkit::api::{Api, Failure};
use greenroom_testkit::random::Random;
use greenroom_testkit::reader::{Reading, SeenResults, follow};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Runs of one sender that are open at the same time.
const OPEN_MAX: usize = 3;
/// Most milliseconds between two events of one sender.
const PAUSE_MS_MAX: u64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// Its own event ids: sent again until acknowledged.
    Own,
    /// None: sent once.
    None,
}

#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub name: String,
    /// Nothing: events that no agent takes.
    pub agent: Option<&'static str>,
    pub conversation: String,
    pub ids: Ids,
}

/// An acknowledged event.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// As it was sent.
    pub event: Value,
    pub event_id: String,
    pub run_id: Option<String>,
    pub conversation: String,
    pub text: String,
}

/// Everything one sender or several did, in the order of each.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub sent: Vec<Sent>,
    /// Texts of events that were neither acknowledged nor refused.
    pub doubtful: Vec<String>,
    pub readings: Vec<Reading>,
}

impl Log {
    pub(crate) fn extend(&mut self, other: Log) {
        self.sent.extend(other.sent);
        self.doubtful.extend(other.doubtful);
        self.readings.extend(other.readings);
    }
}

impl Sender {
    fn event(&self, number: usize) -> Value {
        let text = self.text(number);
        let mut event = json!({
            "event_type": "message.received",
            "conversation_id": self.conversation,
            "actor": {"actor_type": "user", "actor_id": self.name},
            "input": {"text": text},
        });
        match self.agent {
            Some(agent) => event["agent"] = agent.into(),
            None => event["event_type"] = "nobody.listens".into(),
        }
        if self.ids == Ids::Own {
            event["event_id"] = format!("{}-{number}", self.name).into();
        }
        event
    }

    fn text(&self, number: usize) -> String {
        format!("{} says {number}", self.name)
    }

    /// Sends until told to stop, then waits for the readers.
    pub(crate) async fn work(
        self,
        api: Api,
        seen: SeenResults,
        mut random: Random,
        stop: watch::Receiver<bool>,
    ) -> Log {
        let mut log = Log::default();
        let mut readers = JoinSet::new();
        for number in 0.. {
            if *stop.borrow() {
                break;
            }
            if let Some(sent) = self.send(&api, number, &mut log.doubtful).await {
                // A second reader now and then: what one has seen must be what the other sees.
                let count = if random.one_in(4) { 2 } else { 1 };
                for run_id in sent.run_id.iter().flat_map(|run_id| vec![run_id.clone(); count]) {
                    readers.spawn(follow(api.clone(), run_id, seen.clone()));
                }
                log.sent.push(sent);
            }
            // The pace is part of what the seed decides; nothing is waited for.
            tokio::time::sleep(Duration::from_millis(random.below(PAUSE_MS_MAX))).await;
            while readers.len() >= OPEN_MAX {
                log.readings.extend(readers.join_next().await.map(Result::unwrap));
            }
        }
        log.readings.extend(readers.join_all().await);
        log
    }

    pub(crate) async fn send(
        &self,
        api: &Api,
        number: usize,
        doubtful: &mut Vec<String>,
    ) -> Option<Sent> {
        let event = self.event(number);
        let answer = match self.ids {
            Ids::Own => api.send_event(&event).await,
            Ids::None => match api.post_event(&event).await {
                Ok((status, answer)) => {
                    assert_eq!(status, 202, "an event without an id is always new: {answer:?}");
                    answer
                }
                Err(Failure::Lost(_)) => {
                    doubtful.push(self.text(number));
                    return None;
                }
                Err(failure) => {
                    assert!(failure.is_transient(), "{event} was refused: {failure:?}");
                    return None;
                }
            },
        };
        assert_eq!(answer.run_id.is_some(), self.agent.is_some(), "{event}: {answer:?}");
        assert_eq!(answer.run_id.is_none(), answer.status == "unbound", "{event}: {answer:?}");
        if self.ids == Ids::Own {
            assert_eq!(event["event_id"], answer.event_id.as_str(), "the sender's id is kept");
        }
        Some(Sent {
            event,
            event_id: answer.event_id,
            run_id: answer.run_id,
            conversation: self.conversation.clone(),
            text: self.text(number),
        })
    }
}
