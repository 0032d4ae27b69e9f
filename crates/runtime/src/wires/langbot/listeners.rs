//! `EventListener` components of a plugin: they are told of events after the host has handled them.
//!
//! Invariant: nothing follows from what a listener does.

use super::{Session, chain};
use crate::connection::{Connection, NoResult};
use crate::listening::Heard;
use greenroom_protocol::context::SubjectContext;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// How long a listener may take for one event.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(60);

/// What became of an event that was sent to a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emitted {
    /// The listeners had it, whether they failed or not.
    Told,
    /// The process ended first. It may have had the event.
    ProcessEnded,
}

impl Session {
    /// Whether the plugin has listeners.
    pub(crate) fn listens(&self) -> bool {
        self.listens.get().copied().unwrap_or_default()
    }
}

/// Tells the listeners of a plugin of one event.
pub(crate) async fn emit(connection: &Connection, event: &Value) -> Emitted {
    let data = json!({"event_context": {"query_id": 0, "eid": 0,
        "event_name": event["event_name"], "event": event}});
    let told = timeout(LISTENER_TIMEOUT, connection.request("emit_event", &data)).await;
    let (emitted, problem) = match told {
        Ok(Ok(_)) => return Emitted::Told,
        Ok(Err(error @ NoResult::Gone(_))) => (Emitted::ProcessEnded, error.about("emit_event")),
        Ok(Err(error)) => (Emitted::Told, error.about("emit_event")),
        Err(_) => (Emitted::Told, "did not answer `emit_event`".to_owned()),
    };
    tracing::warn!(runner = %connection.runner, "a listener failed: {problem}");
    emitted
}

/// The events of LangBot that a message becomes, in its order: received, accepted, answered.
pub(crate) fn events(heard: &Heard) -> Vec<Value> {
    let event = &heard.event;
    if !event.event_type.starts_with("message.") {
        return Vec::new();
    }
    let actor = event.actor.as_ref();
    let sender = actor.and_then(|actor| actor.actor_id.as_deref()).unwrap_or_default();
    let name = actor.and_then(|actor| actor.actor_name.as_deref()).unwrap_or_default();
    let group = event.subject.as_ref().and_then(SubjectContext::group);
    let (kind, word) = if group.is_some() { ("Group", "group") } else { ("Person", "person") };
    let launcher = match group {
        Some(group) => group.id,
        None => Some(sender).filter(|sender| !sender.is_empty()),
    };
    let launcher = launcher.or(event.conversation_id.as_deref()).unwrap_or_default();
    let text = event.input.text.as_deref().unwrap_or_default();
    let chain = chain::of(&event.input);
    let from = match group {
        Some(group) => json!({"id": sender, "member_name": name, "permission": "MEMBER",
            "group": {"id": launcher, "permission": "MEMBER",
                "name": group.data.and_then(|data| data.get("name")?.as_str()).unwrap_or_default()}}),
        None => json!({"id": sender, "nickname": name, "remark": ""}),
    };
    let message = json!({"type": if group.is_some() { "GroupMessage" } else { "FriendMessage" },
        "sender": from, "message_chain": chain, "time": event.event_time});
    let base = json!({"launcher_type": word, "launcher_id": launcher, "sender_id": sender});
    let with = |name: String, more: Value| {
        let mut event = base.clone();
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more);
            event.insert("event_name".to_owned(), name.into());
        }
        event
    };
    let received = json!({"message_event": message, "message_chain": chain});
    let mut events = vec![with(format!("{kind}MessageReceived"), received.clone())];
    events.push(match text.strip_prefix('/') {
        Some(command) => {
            let params: Vec<&str> = command.split_whitespace().collect();
            let command = params.first().copied().unwrap_or_default();
            let params = params.get(1..).unwrap_or_default();
            with(
                format!("{kind}CommandSent"),
                json!({"command": command, "params": params, "text_message": text, "is_admin": false}),
            )
        }
        None => {
            let mut received = received;
            received["text_message"] = text.into();
            with(format!("{kind}NormalMessageReceived"), received)
        }
    });
    events.extend(heard.answer.as_deref().map(|answer| {
        let session = json!({"launcher_type": word, "launcher_id": launcher, "sender_id": sender});
        with(
            "NormalMessageResponded".to_owned(),
            json!({"session": session, "prefix": "", "response_text": answer,
                "finish_reason": "stop", "funcs_called": []}),
        )
    }));
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_protocol::NewEvent;

    fn names(event: Value, answer: Option<&str>) -> Vec<String> {
        let event: NewEvent = serde_json::from_value(event).unwrap();
        let heard = Heard { agent: "a".to_owned(), event, answer: answer.map(str::to_owned) };
        let name = |event: &Value| event["event_name"].as_str().unwrap().to_owned();
        events(&heard).iter().map(name).collect()
    }

    #[test]
    fn a_message_becomes_the_events_that_langbot_would_emit() {
        let event = |text: &str, subject: Value| {
            json!({"event_type": "message.received", "subject": subject,
                "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text}})
        };
        assert_eq!(
            names(event("hi", Value::Null), Some("hello")),
            ["PersonMessageReceived", "PersonNormalMessageReceived", "NormalMessageResponded"]
        );
        let group = json!({"subject_type": "group", "subject_id": "g1"});
        assert_eq!(
            names(event("/weather", group), None),
            ["GroupMessageReceived", "GroupCommandSent"]
        );
        assert_eq!(names(json!({"event_type": "timer.fired"}), None), [""; 0]);
    }

    #[test]
    fn a_listener_is_told_of_pictures() {
        let picture = json!({"type": "image", "url": "https://example.com/a.png"});
        let event = json!({"event_type": "message.received",
            "input": {"text": "see", "contents": [picture]}});
        let event: NewEvent = serde_json::from_value(event).unwrap();
        let told = events(&Heard { agent: "a".to_owned(), event, answer: None });
        let expected = json!([{"type": "Plain", "text": "see"},
            {"type": "Image", "image_id": "", "url": "https://example.com/a.png", "base64": ""}]);
        for event in &told {
            assert_eq!(event["message_chain"], expected, "{}", event["event_name"]);
        }
        assert_eq!(told.len(), 2);
    }
}
