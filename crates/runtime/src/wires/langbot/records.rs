//! Facts of the host in the shapes that LangBot's SDK reads: items, events, runs, steering.
//!
//! Invariant: our own fields stay beside those that were added; times that the SDK reads are Unix seconds.

use super::{Dialect, context};
use greenroom_protocol::api::Moment;
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest part of an event's text that its record shows.
const SUMMARY_CHARS: usize = 200;

/// The run that asks.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) run_id: String,
    pub(crate) runner_id: String,
    pub(crate) dialect: Dialect,
}

/// A page of ours with its items made anew.
pub(crate) fn page(page: &Value, item: impl Fn(&Value) -> Value) -> Value {
    let mut told = page.clone();
    let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
    told["items"] = items.iter().map(item).collect();
    told
}

/// One item of a transcript.
pub(crate) fn transcript(item: &Value) -> Value {
    let mut told = item.clone();
    let role = item["role"].as_str().unwrap_or_default();
    let text = ["content", "text"].iter().find_map(|key| item[*key].as_str());
    told["transcript_id"] = item["item_id"].clone();
    told["event_id"] = item["event_id"].as_str().unwrap_or_default().into();
    told["role"] = if role == "event" { "system".into() } else { role.into() };
    told["item_type"] = match role {
        "tool" => "tool_result".into(),
        "event" | "system" => "system".into(),
        _ => "message".into(),
    };
    told["content"] = text.into();
    told["content_json"] = json!({"role": told["role"], "content": text});
    told["attachment_refs"] = list(&item["artifacts"]);
    told["created_at"] = seconds(&item["created_at"]);
    told["metadata"] = object(&item["metadata"]);
    told
}

/// One entry of the event log.
pub(crate) fn event(view: &Value) -> Value {
    let mut told = view.clone();
    let event = &view["event"];
    let summary = event["input"]["text"].as_str();
    let summary = summary.map(|text| text.chars().take(SUMMARY_CHARS).collect::<String>());
    told["event_time"] = event["event_time"].clone();
    for key in ["bot_id", "workspace_id", "thread_id"] {
        told[key] = event[key].clone();
    }
    for key in ["actor_type", "actor_id", "actor_name"] {
        told[key] = event["actor"][key].clone();
    }
    for key in ["subject_type", "subject_id"] {
        told[key] = event["subject"][key].clone();
    }
    told["input_summary"] = summary.into();
    told["raw_ref"] = view["raw_ref"]["ref_id"].clone();
    told["created_at"] = seconds(&view["created_at"]);
    told["metadata"] = object(&event["metadata"]);
    told
}

/// A run.
pub(crate) fn run(view: &Value) -> Value {
    let mut told = view.clone();
    for key in ["created_at", "started_at", "finished_at"] {
        told[key] = seconds(&view[key]);
    }
    told["binding_id"] = view["agent"].clone();
    told["agent_id"] = view["agent"].clone();
    told["status_reason"] = view["error"]["message"].clone();
    told["dispatch_attempts"] = view["attempt"].clone();
    told["usage"] = super::messages::usage(&view["usage"]).unwrap_or_default();
    told["metadata"] = json!({ "error": view["error"] });
    told
}

/// A stored result of a run.
pub(crate) fn run_event(result: &Value) -> Value {
    let mut told = result.clone();
    told["created_at"] = seconds(&result["created_at"]);
    told["data"] = object(&result["data"]);
    told["source"] = "runner".into();
    told
}

/// A message that came while the run was under way.
pub(crate) fn steering(item: &Value, about: &About) -> Value {
    json!({
        "claimed_run_id": about.run_id, "runner_id": about.runner_id,
        "claimed_at": seconds(&item["created_at"]),
        "event": {"event_id": item["event_id"], "event_type": item["event_type"],
            "event_time": seconds(&item["created_at"]), "source": "host_adapter",
            "data": object(&item["data"])},
        "input": context::input(item["input"].clone(), about.dialect),
        "conversation": {"conversation_id": item["conversation_id"], "thread_id": item["thread_id"]},
        "actor": item["actor"],
    })
}

/// A passage of a knowledge base; what is close there is near here.
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
        let told = transcript(
            &json!({"item_id": "i1", "conversation_id": "c1", "seq": 3, "role": "tool",
            "event_id": null, "text": "long", "content": "short", "artifacts": [{"artifact_id": "a"}],
            "metadata": null, "created_at": "1970-01-01T00:00:05.500Z"}),
        );
        assert_eq!(told["transcript_id"], "i1");
        assert_eq!(told["event_id"], "");
        assert_eq!((&told["role"], &told["item_type"]), (&json!("tool"), &json!("tool_result")));
        assert_eq!(told["content"], "short");
        assert_eq!(told["attachment_refs"], json!([{"artifact_id": "a"}]));
        assert_eq!((&told["created_at"], &told["metadata"]), (&json!(5), &json!({})));
    }

    #[test]
    fn an_event_names_its_parties_and_its_reference_as_text() {
        let told = event(
            &json!({"event_id": "e1", "event_type": "message.received", "source": "api",
            "seq": 4, "created_at": "1970-01-01T00:00:05Z", "raw_ref": {"ref_id": "raw1"},
            "event": {"actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": "hi"}}}),
        );
        assert_eq!((&told["actor_id"], &told["raw_ref"]), (&json!("u1"), &json!("raw1")));
        assert_eq!((&told["input_summary"], &told["created_at"]), (&json!("hi"), &json!(5)));
        assert_eq!(told["thread_id"], Value::Null);
    }

    #[test]
    fn a_run_says_why_it_is_over() {
        let told = run(&json!({"run_id": "r1", "agent": "a", "status": "cancelled", "attempt": 1,
            "created_at": "1970-01-01T00:00:01Z", "started_at": null, "usage": null,
            "error": {"code": "cancelled", "message": "by hand", "retryable": false}}));
        assert_eq!(
            (&told["status"], &told["status_reason"]),
            (&json!("cancelled"), &json!("by hand"))
        );
        assert_eq!((&told["created_at"], &told["started_at"]), (&json!(1), &Value::Null));
    }

    #[test]
    fn a_steering_message_is_spelled_for_its_dialect() {
        let item = json!({"event_id": "e2", "event_type": "message.received", "conversation_id": "c1",
            "input": {"text": "also", "attachments": [{"artifact_id": "a1"}]}, "data": {},
            "created_at": "1970-01-01T00:00:02Z"});
        let about = |dialect| About {
            run_id: "r1".to_owned(),
            runner_id: "plugin:a/b/c".to_owned(),
            dialect,
        };
        let told = steering(&item, &about(Dialect::Runner));
        assert_eq!(told["claimed_run_id"], "r1");
        assert_eq!(told["input"]["attachments"][0]["ref"], "a1");
        let told = steering(&item, &about(Dialect::AgentRunner));
        assert_eq!(told["input"]["attachments"], json!([{"artifact_id": "a1"}]));
    }
}
