//! Test runs: what is sent, and what came back of each.
//!
//! Invariant: every message between the request and its response is looked at once.

use super::Plan;
use super::peer::{Peer, Silence};
use greenroom_protocol::result::kind;
use greenroom_protocol::{AgentRunnerManifest, ErrorCode, Payload};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::time::Instant;

/// What came back of one run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub results: usize,
    pub deltas: usize,
    pub messages: usize,
    /// The terminal's type, and its code if it failed.
    pub terminal: Option<String>,
    /// Whether the run failed because a call of its was refused.
    pub is_refused: bool,
    /// Violations of the contract.
    pub faults: Vec<String>,
    /// What is allowed but not acted on.
    pub oddities: Vec<String>,
    answered: bool,
    last_sequence: Option<i64>,
}

/// Runs to make at once.
pub(super) struct Trial<'a> {
    pub plan: &'a Plan,
    pub manifest: &'a AgentRunnerManifest,
    pub run_ids: &'a [&'a str],
    pub then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Wait,
    Cancel,
}

/// What was seen, and what ended it early.
pub(super) struct Outcome {
    pub seen: BTreeMap<String, Seen>,
    pub silence: Option<Silence>,
}

/// Starts the runs and reads until every one of them is answered.
pub(super) async fn try_runs(peer: &mut Peer, trial: Trial<'_>) -> Outcome {
    let mut seen = BTreeMap::new();
    seen.extend(trial.run_ids.iter().map(|run_id| ((*run_id).to_owned(), Seen::default())));
    let silence = converse(peer, &trial, &mut seen).await.err();
    Outcome { seen, silence }
}

async fn converse(
    peer: &mut Peer,
    trial: &Trial<'_>,
    seen: &mut BTreeMap<String, Seen>,
) -> Result<(), Silence> {
    let Trial { plan, manifest, .. } = trial;
    let mut requests = BTreeMap::new();
    for run_id in seen.keys() {
        let params = json!({
            "runner_id": manifest.id, "runner_name": manifest.name, "context": context(plan, run_id),
        });
        requests.insert(peer.request("run_agent", params).await?, run_id.clone());
        if trial.then == Then::Cancel {
            peer.notify("run.cancel", json!({ "run_id": run_id, "reason": "test" })).await?;
        }
    }
    let deadline = Instant::now() + plan.timeout;
    while seen.values().any(|seen| !seen.answered) {
        let message = peer.next(deadline, plan.timeout).await?;
        if message["method"] == "run.result" {
            take(seen, &message["params"]);
        } else if message.get("method").is_some() {
            peer.refuse(&message).await?;
        } else if let Some(run_id) = message["id"].as_i64().and_then(|id| requests.get(&id)) {
            let seen = seen.entry(run_id.clone()).or_default();
            seen.answer(&message);
        }
    }
    Ok(())
}

/// Adds a result to the run it names.
fn take(seen: &mut BTreeMap<String, Seen>, result: &Value) {
    let run_id = result["run_id"].as_str().unwrap_or_default();
    match seen.get_mut(run_id) {
        Some(seen) => seen.take(result),
        None => {
            let fault = format!("a result names the run `{run_id}`, which was not started");
            seen.values_mut().for_each(|seen| seen.faults.push(fault.clone()));
        }
    }
}

impl Seen {
    fn take(&mut self, result: &Value) {
        let kind_name = result["type"].as_str().unwrap_or_default().to_owned();
        if self.answered {
            self.faults.push(format!("`{kind_name}` came after the response to `run_agent`"));
        } else if let Some(terminal) = &self.terminal {
            self.faults.push(format!("`{kind_name}` came after `{terminal}`"));
        }
        if let Some(sequence) = result["sequence"].as_i64() {
            if self.last_sequence.is_some_and(|last| sequence <= last) {
                self.faults.push(format!("`sequence` does not increase at {sequence}"));
            }
            self.last_sequence = Some(sequence);
        }
        self.results += 1;
        let data = result.get("data").map(Value::to_string);
        match Payload::parse(&kind_name, data.as_deref()) {
            Ok(Payload::Unknown) => {
                self.oddities.push(format!("`{kind_name}` is not a type of the contract"))
            }
            Ok(payload) => self.count(&kind_name, &payload),
            Err(error) => self.faults.push(error.to_string()),
        }
    }

    fn count(&mut self, kind_name: &str, payload: &Payload) {
        match payload {
            Payload::MessageDelta(_) => self.deltas += 1,
            Payload::MessageCompleted(_) => self.messages += 1,
            Payload::RunCompleted(_) => self.terminal = Some(kind_name.to_owned()),
            Payload::RunFailed(failed) => {
                self.is_refused |= failed.code == ErrorCode::Unauthorized.as_str();
                self.terminal =
                    Some(format!("{} ({}: {})", kind::RUN_FAILED, failed.code, failed.text()));
            }
            _ => {}
        }
    }

    fn answer(&mut self, message: &Value) {
        self.answered = true;
        if let Some(error) = message.get("error") {
            self.faults.push(format!("`run_agent` was answered with the error {error}"));
        } else if self.terminal.is_none() {
            self.faults.push("`run_agent` was answered without a terminal result".to_owned());
        }
    }
}

fn context(plan: &Plan, run_id: &str) -> Value {
    json!({
        "run_id": run_id,
        "trigger": { "type": "message.received", "source": "api" },
        "event": { "event_id": format!("event-of-{run_id}"), "event_type": "message.received", "source": "api" },
        "conversation": { "conversation_id": "runner-test" },
        "actor": { "actor_type": "user", "actor_id": "runner-test" },
        "input": { "text": plan.text, "contents": [{ "type": "text", "text": plan.text }] },
        "delivery": { "surface": "api", "supports_streaming": true },
        "resources": {},
        "context": { "inline_policy": { "mode": "current_event" }, "available_apis": {} },
        "state": {},
        "runtime": {
            "host": "greenroom", "protocol_version": "1", "trace_id": run_id,
            "metadata": { "remaining_ms": u64::try_from(plan.timeout.as_millis()).unwrap_or(u64::MAX) },
        },
        "config": plan.config,
        "metadata": { "attempt": 1 },
    })
}
