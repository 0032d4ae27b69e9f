//! A proper call of every method: what it takes to have an effect, if it were allowed.
//!
//! Invariant: parameters name what the target says and nothing else; what a write would leave behind carries
//! the word `intruder`.

use serde_json::{Value, json};

/// What calls name.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub conversation: Option<String>,
    pub event: String,
    pub artifact: String,
    pub scope: &'static str,
    pub area: &'static str,
    pub action: &'static str,
    /// Fields that no method has, in the hope that one listens to them.
    pub more: Value,
}

impl Target {
    /// The event and the artifact of a conversation that is not said.
    pub(crate) fn new(event: &str, artifact: &str) -> Self {
        Self {
            conversation: None,
            event: event.to_owned(),
            artifact: artifact.to_owned(),
            scope: "conversation",
            area: "plugin",
            action: "message.send",
            more: json!({}),
        }
    }

    /// Names that do not exist.
    pub(crate) fn made_up() -> Self {
        Self::new("evt_made_up", "art_made_up")
    }

    pub(crate) fn params(&self, method: &str) -> Value {
        let Self { conversation, event, artifact, scope, area, .. } = self;
        let messages = json!([{"role": "user", "content": "hi"}]);
        let mut params = match method {
            "models.invoke" | "models.stream" | "models.count_tokens" => {
                json!({"model_id": "m", "messages": messages})
            }
            "models.rerank" => json!({"model_id": "m", "query": "q", "documents": ["d"]}),
            "models.embed" => json!({"model_id": "m", "inputs": ["text"]}),
            "tools.get_detail" => json!({"tool_name": "t"}),
            "tools.search" => json!({"query": "anything"}),
            "tools.call" => json!({"tool_name": "t", "parameters": {"intruder": true}}),
            "knowledge.list" => json!({}),
            "knowledge.retrieve" => json!({"kb_id": "k", "query_text": "q"}),
            "history.page" | "events.page" => json!({"conversation_id": conversation}),
            "history.search" => {
                json!({"query": "whales", "filters": {"conversation_id": conversation}})
            }
            "events.get" => json!({"event_id": event}),
            "artifacts.metadata" | "artifacts.read_range" | "artifacts.open_stream" => {
                json!({"artifact_id": artifact})
            }
            "artifacts.create" => json!({"name": "intruder.txt", "content_base64": "aW50cnVkZXI="}),
            "artifacts.begin" => json!({"name": "intruder.txt"}),
            "artifacts.append" => {
                json!({"upload_id": "upl_made_up", "data_base64": "aW50cnVkZXI="})
            }
            "artifacts.commit" => json!({"upload_id": "upl_made_up"}),
            "state.get" => json!({"scope": scope, "key": "seed"}),
            "state.set" => json!({"scope": scope, "key": "intruder", "value": 1}),
            "state.delete" => json!({"scope": scope, "key": "seed"}),
            "state.list" => json!({"scope": scope}),
            "storage.get" => json!({"area": area, "key": "seed"}),
            "storage.set" => json!({"area": area, "key": "intruder", "value": "aW50cnVkZXI="}),
            "storage.delete" => json!({"area": area, "key": "seed"}),
            "storage.list" => json!({"area": area}),
            "platform.request_action" => self.action(),
            "steering.pull" => json!({}),
            "harness.permission" => json!({"kind": "read", "title": "Read a file"}),
            other => panic!("a proper call of `{other}` is not written here"),
        };
        for (name, value) in self.more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    }

    fn action(&self) -> Value {
        let mut target = json!({});
        if let Some(conversation) = &self.conversation {
            target["conversation_id"] = conversation.as_str().into();
        }
        let payload = match self.action {
            "message.react" => {
                target["message_id"] = "m1".into();
                json!({"reaction": "intruder"})
            }
            _ => json!({"text": "intruder"}),
        };
        json!({"action": self.action, "target": target, "payload": payload})
    }
}
