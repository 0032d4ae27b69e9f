//! Facts of the host in the form of LangBot's SDK: items, events, runs, steering.
//!
//! Invariant: our own fields are kept; times that the SDK reads are Unix seconds.

use super::{Dialect, context};
use greenroom_protocol::api::Moment;
use serde::Deserialize;
use serde_json::{Value, json};

/// How much of an event's text its summary shows.
const SUMMARY_CHARS: usize = 200;

/// The run that calls.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) run_id: String,
    pub(crate) runner_id: String,
    pub(crate) dialect: Dialect,
}

/// A page with its items translated.
pub(crate) fn page(page: &Value, item: impl Fn(&Value) -> Value) -> Value {
    let mut record = page.clone();
    let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
    record["items"] = items.iter().map(item).collect();
    record
}

/// One item of a transcript.
pub(crate) fn transcript(item: &Value) -> Value {
    let mut record = item.clone();
    let role = item["role"].as_str().unwrap_or_default();
    let text = ["content", "text"].iter().find_map(|key| item[*key].as_str());
    record["transcript_id"] = item["item_id"].clone();
    record["event_id"] = item["event_id"].as_str().unwrap_or_default().into();
    record["role"] = if role == "event" { "system".into() } else { role.into() };
    record["item_type"] = match role {
        "tool" => "tool_result".into(),
        "event" | "system" => "system".into(),
        _ => "message".into(),
    };
    record["content"] = text.into();
    record["content_json"] = json!({"role": record["role"], "content": text});
    record["attachment_refs"] = list(&item["artifacts"]);
    record["created_at"] = seconds(&item["created_at"]);
    record["metadata"] = object(&item["metadata"]);
    record
}

/// One entry of the event log.
pub(crate) fn event(view: &Value) -> Value {
    let mut record = view.clone();
    let event = &view["event"];
    let summary = event["input"]["text"].as_str();
    let summary = summary.map(|text| text.chars().take(SUMMARY_CHARS).collect::<String>());
    record["event_time"] = event["event_time"].clone();
    for key in ["bot_id", "workspace_id", "thread_id"] {
        record[key] = event[key].clone();
    }
    for key in ["actor_type", "actor_id", "actor_name"] {
        record[key] = event["actor"][key].clone();
    }
    for key in ["subject_type", "subject_id"] {
        record[key] = event["subject"][key].clone();
    }
    record["input_summary"] = summary.into();
    record["raw_ref"] = view["raw_ref"]["ref_id"].clone();
    record["created_at"] = seconds(&view["created_at"]);
    record["metadata"] = object(&event["metadata"]);
    record
}

/// A run.
pub(crate) fn run(view: &Value) -> Value {
    let mut record = view.clone();
    for key in ["created_at", "started_at", "finished_at"] {
        record[key] = seconds(&view[key]);
    }
    record["binding_id"] = view["agent"].clone();
    record["agent_id"] = view["agent"].clone();
    record["status_reason"] = view["error"]["message"].clone();
    record["dispatch_attempts"] = view["attempt"].clone();
    record["usage"] = super::messages::usage(&view["usage"]).unwrap_or_default();
    record["metadata"] = json!({ "error": view["error"] });
    record
}

/// A stored result of a run.
pub(crate) fn run_event(result: &Value) -> Value {
    let mut record = result.clone();
    record["created_at"] = seconds(&result["created_at"]);
    record["data"] = object(&result["data"]);
    record["source"] = "runner".into();
    record
}

/// A steering message.
pub(crate) fn steering(item: &Value, caller: &Caller) -> Value {
    json!({
        "claimed_run_id": caller.run_id, "runner_id": caller.runner_id,
        "claimed_at": seconds(&item["created_at"]),
        "event": {"event_id": item["event_id"], "event_type": item["event_type"],
            "event_time": seconds(&item["created_at"]), "source": "host_adapter",
            "data": object(&item["data"])},
        "input": context::input(item["input"].clone(), caller.dialect),
        "conversation": {"conversation_id": item["conversation_id"], "thread_id": item["thread_id"]},
        "actor": item["actor"],
    })
}

/// A passage of a knowledge base; LangBot has a distance where we have a score.
pub(crate) fn passage(number: usize, passage: &Value) -> Value {
    let id = ["id", "chunk_id"].iter().find_map(|key| passage["metadata"][*key].as_str());
    let id = id.map_or_else(|| number.to_string(), str::to_owned);
    let score = passage["score"].as_f64().unwrap_or_default();
    json!({"id": id, "content": [{"type": "text", "text": passage["content"]}],
        "metadata": object(&passage["metadata"]), "distance": 1.0 - score, "score": score})
}

fn seconds(time: &Value) -> Value {
    let moment = Moment::deserialize(time).ok();
    moment.map_or(Value::Null, |moment| moment.unix_ms.div_euclid(1000).into())
}

fn object(value: &Value) -> Value {
    if value.is_object() { value.clone() } else { json!({}) }
}

fn list(value: &Value) -> Value {
    if value.is_array() { value.clone() } else { json!([]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_what_the_sdk_insists_on() {
        let record = transcript(
            &json!({"item_id": "i1", "conversation_id": "c1", "seq": 3, "role": "tool",
            "event_id": null, "text": "long", "content": "short", "artifacts": [{"artifact_id": "a"}],
            "metadata": null, "created_at": "1970-01-01T00:00:05.500Z"}),
        );
        assert_eq!(record["transcript_id"], "i1");
        assert_eq!(record["event_id"], "");
        assert_eq!(
            (&record["role"], &record["item_type"]),
            (&json!("tool"), &json!("tool_result"))
        );
        assert_eq!(record["content"], "short");
        assert_eq!(record["attachment_refs"], json!([{"artifact_id": "a"}]));
        assert_eq!((&record["created_at"], &record["metadata"]), (&json!(5), &json!({})));
    }

    #[test]
    fn an_event_names_its_parties_and_its_reference_as_text() {
        let record = event(
            &json!({"event_id": "e1", "event_type": "message.received", "source": "api",
            "seq": 4, "created_at": "1970-01-01T00:00:05Z", "raw_ref": {"ref_id": "raw1"},
            "event": {"actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": "hi"}}}),
        );
        assert_eq!((&record["actor_id"], &record["raw_ref"]), (&json!("u1"), &json!("raw1")));
        assert_eq!((&record["input_summary"], &record["created_at"]), (&json!("hi"), &json!(5)));
        assert_eq!(record["thread_id"], Value::Null);
    }

    #[test]
    fn a_run_says_why_it_is_over() {
        let record =
            run(&json!({"run_id": "r1", "agent": "a", "status": "cancelled", "attempt": 1,
            "created_at": "1970-01-01T00:00:01Z", "started_at": null, "usage": null,
            "error": {"code": "cancelled", "message": "by hand", "retryable": false}}));
        assert_eq!(
            (&record["status"], &record["status_reason"]),
            (&json!("cancelled"), &json!("by hand"))
        );
        assert_eq!((&record["created_at"], &record["started_at"]), (&json!(1), &Value::Null));
    }

    #[test]
    fn a_steering_message_is_spelled_for_its_dialect() {
        let item = json!({"event_id": "e2", "event_type": "message.received", "conversation_id": "c1",
            "input": {"text": "also", "attachments": [{"artifact_id": "a1"}]}, "data": {},
            "created_at": "1970-01-01T00:00:02Z"});
        let caller = |dialect| Caller {
            run_id: "r1".to_owned(),
            runner_id: "plugin:a/b/c".to_owned(),
            dialect,
        };
        let record = steering(&item, &caller(Dialect::Runner));
        assert_eq!(record["claimed_run_id"], "r1");
        assert_eq!(record["input"]["attachments"][0]["ref"], "a1");
        let record = steering(&item, &caller(Dialect::AgentRunner));
        assert_eq!(record["input"]["attachments"][0]["id"], "a1");
        assert!(record["input"]["attachments"][0].get("ref").is_none());
    }
}
