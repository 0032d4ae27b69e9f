//! The run context as a LangBot runner expects it.
//!
//! Invariant: one context serves both dialects, attachments excepted; what the runner is shown as allowed is
//! what the host grants, and nothing that the event said is changed, only spelled again and added to.

use super::Dialect;
use super::content;
use greenroom_protocol::AgentRunContext;
use serde_json::{Value, json};

/// Calls that every run may make about itself.
const OWN_APIS: [&str; 5] = ["prompt_get", "run_get", "run_list", "run_events_page", "run_cancel"];
/// What the host does not offer; told so that an older SDK does not have to guess.
const ABSENT_APIS: [&str; 4] = ["run_append_result", "run_finalize", "reply_stream", "box"];
/// Subjects that are a group of people.
const GROUPS: [&str; 4] = ["group", "channel", "room", "guild"];

pub(crate) fn render(context: &AgentRunContext, dialect: Dialect, host_version: &str) -> Value {
    // Protocol types have string keys only and no failing serialisers.
    let mut told = serde_json::to_value(context).expect("protocol types are JSON");
    let party = Party::of(context);
    told["input"] = input(&told["input"], dialect);
    conversation(&mut told, &party);
    told["variables"] = party.variables(context);
    event(&mut told, &party);
    resources(&mut told["resources"]);
    let apis = &mut told["context"]["available_apis"];
    OWN_APIS.iter().for_each(|name| apis[*name] = true.into());
    ABSENT_APIS.iter().for_each(|name| apis[*name] = false.into());
    told["delivery"]["automatic_reply"] = true.into();
    told["runtime"]["langbot_version"] = host_version.into();
    told["host"] = "greenroom".into();
    told["protocol_version"] = told["runtime"]["protocol_version"].clone();
    told
}

/// An input in the spelling of a dialect; also that of a message which came while the run was under way.
pub(crate) fn input(input: &Value, dialect: Dialect) -> Value {
    let mut told = input.clone();
    let elements = input["contents"].as_array().map_or(&[][..], Vec::as_slice);
    told["contents"] = elements.iter().map(content::to_langbot).collect();
    if dialect == Dialect::Runner {
        let attachments = input["attachments"].as_array().map_or(&[][..], Vec::as_slice);
        told["attachments"] = attachments.iter().map(content::attachment).collect();
    }
    told
}

/// Who speaks and where, in LangBot's words.
struct Party {
    launcher_type: &'static str,
    launcher_id: String,
    sender_id: Option<String>,
    sender_name: Option<String>,
    group_name: Option<String>,
    bot_id: String,
}

impl Party {
    fn of(context: &AgentRunContext) -> Self {
        let actor = context.actor.as_ref();
        let subject = context.subject.as_ref();
        let group = subject.filter(|subject| GROUPS.contains(&subject.subject_type.as_str()));
        let conversation = context.conversation.as_ref();
        let conversation_id = conversation.and_then(|known| known.conversation_id.clone());
        let sender_id = actor.and_then(|actor| actor.actor_id.clone());
        let group_id = group.and_then(|group| group.subject_id.clone());
        let launcher_id = match group {
            Some(_) => group_id.or(conversation_id),
            None => sender_id.clone().or(conversation_id),
        };
        let bot_id = conversation.and_then(|known| known.bot_id.clone());
        let agent = context.metadata.get("agent").and_then(Value::as_str);
        Self {
            launcher_type: if group.is_some() { "group" } else { "person" },
            launcher_id: launcher_id.unwrap_or_else(|| context.event.event_id.clone()),
            sender_id,
            sender_name: actor.and_then(|actor| actor.actor_name.clone()),
            group_name: group.and_then(|group| Some(group.data.get("name")?.as_str()?.to_owned())),
            bot_id: bot_id.unwrap_or_else(|| agent.unwrap_or("greenroom").to_owned()),
        }
    }

    fn session_id(&self) -> String {
        format!("{}_{}", self.launcher_type, self.launcher_id)
    }

    /// What LangBot's own variables say of an event.
    fn variables(&self, context: &AgentRunContext) -> Value {
        let conversation = context.conversation.as_ref();
        json!({
            "launcher_type": self.launcher_type, "launcher_id": self.launcher_id,
            "sender_id": self.sender_id, "sender_name": self.sender_name,
            "group_name": self.group_name, "session_id": self.session_id(),
            "conversation_id": conversation.and_then(|known| known.conversation_id.as_deref()),
            "msg_create_time": context.event.event_time,
            "user_message_text": context.input.text,
        })
    }
}

fn conversation(told: &mut Value, party: &Party) {
    let conversation = &mut told["conversation"];
    if !conversation.is_object() {
        return;
    }
    let mut fill = |key: &str, value: Value| {
        if conversation[key].is_null() {
            conversation[key] = value;
        }
    };
    fill("launcher_type", party.launcher_type.into());
    fill("launcher_id", party.launcher_id.as_str().into());
    fill("sender_id", party.sender_id.as_deref().into());
    fill("session_id", party.session_id().into());
    fill("bot_id", party.bot_id.as_str().into());
}

/// The fields that the SDK's typed events are read from, where the event's own data has none of the name.
fn event(told: &mut Value, party: &Party) {
    let text = told["input"]["text"].clone();
    let (kind, id) = (told["event"]["event_type"].clone(), told["event"]["event_id"].clone());
    let mut fields = json!({
        "type": kind, "timestamp": told["event"]["event_time"].as_f64().unwrap_or_default(),
        "bot_uuid": party.bot_id, "adapter_name": told["event"]["source"],
    });
    if kind == "message.received" {
        let chain = text.as_str().map(|text| json!({"type": "Plain", "text": text}));
        fields["message_id"] = id;
        fields["message_chain"] = chain.into_iter().collect();
        fields["sender"] = json!({"id": party.sender_id.as_deref().unwrap_or_default(),
            "nickname": party.sender_name.as_deref().unwrap_or_default()});
        fields["chat_type"] = match party.launcher_type {
            "group" => "group".into(),
            _ => "private".into(),
        };
        fields["chat_id"] = party.launcher_id.as_str().into();
        if party.launcher_type == "group" {
            fields["group"] = json!({"id": party.launcher_id,
                "name": party.group_name.as_deref().unwrap_or_default()});
        }
    }
    let data = &mut told["event"]["data"];
    let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) else { return };
    for (key, value) in fields {
        data.entry(key).or_insert(value);
    }
}

fn resources(resources: &mut Value) {
    let list = |value: &mut Value| value.as_array_mut().map(std::mem::take).unwrap_or_default();
    let models = list(&mut resources["models"]).into_iter().map(model).collect();
    resources["models"] = models;
    let tools = list(&mut resources["tools"]).into_iter().map(|mut tool| {
        tool["tool_type"] = tool["source"].clone();
        tool
    });
    resources["tools"] = tools.collect();
    let bases = list(&mut resources["knowledge_bases"]).into_iter().map(|mut base| {
        base["kb_name"] = base["name"].clone();
        base
    });
    resources["knowledge_bases"] = bases.collect();
    let storage = &mut resources["storage"];
    storage["plugin_storage"] = storage["plugin"].clone();
    storage["workspace_storage"] = storage["workspace"].clone();
}

/// Operations are a closed set there: vectors come with `invoke`, and so does counting.
fn model(mut model: Value) -> Value {
    let has = |name: &str| {
        model["operations"].as_array().is_some_and(|all| all.iter().any(|known| *known == name))
    };
    let invoke = has("invoke") || has("embed");
    let known = [("invoke", invoke), ("stream", has("stream")), ("rerank", has("rerank"))];
    let counted = known.into_iter().chain([("count_tokens", has("invoke"))]);
    model["operations"] = counted.filter(|(_, granted)| *granted).map(|(name, _)| name).collect();
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(changes: &[(&str, Value)]) -> AgentRunContext {
        let mut context = json!({
            "run_id": "r1",
            "trigger": {"type": "message.received", "source": "api"},
            "event": {"event_id": "e1", "event_type": "message.received", "event_time": 5, "source": "api"},
            "conversation": {"conversation_id": "c1"},
            "actor": {"actor_type": "user", "actor_id": "u1", "actor_name": "Ann"},
            "input": {"text": "hi"},
            "delivery": {"surface": "api"},
            "resources": {},
            "context": {"inline_policy": {"mode": "current_event"}, "available_apis": {"state": true}},
            "state": {},
            "runtime": {"trace_id": "r1"},
            "metadata": {"agent": "helper"},
        });
        for (key, value) in changes {
            context[*key] = value.clone();
        }
        serde_json::from_value(context).unwrap()
    }

    fn rendered(changes: &[(&str, Value)], dialect: Dialect) -> Value {
        render(&context(changes), dialect, "0.1.0")
    }

    #[test]
    fn a_person_and_their_agent_are_launcher_sender_and_bot() {
        let told = rendered(&[], Dialect::Runner);
        let conversation = &told["conversation"];
        assert_eq!(conversation["launcher_type"], "person");
        assert_eq!(conversation["launcher_id"], "u1");
        assert_eq!(conversation["sender_id"], "u1");
        assert_eq!(conversation["session_id"], "person_u1");
        assert_eq!(conversation["bot_id"], "helper");
        assert_eq!(
            told["event"]["data"],
            json!({"type": "message.received", "timestamp": 5.0, "bot_uuid": "helper",
                "adapter_name": "api", "message_id": "e1",
                "message_chain": [{"type": "Plain", "text": "hi"}],
                "sender": {"id": "u1", "nickname": "Ann"}, "chat_type": "private", "chat_id": "u1"})
        );
    }

    #[test]
    fn a_group_is_the_launcher_and_what_the_event_says_itself_stands() {
        let told = rendered(
            &[
                (
                    "subject",
                    json!({"subject_type": "group", "subject_id": "g1", "data": {"name": "All"}}),
                ),
                (
                    "conversation",
                    json!({"conversation_id": "c1", "bot_id": "b1", "launcher_id": "own"}),
                ),
            ],
            Dialect::Runner,
        );
        assert_eq!(told["conversation"]["launcher_type"], "group");
        assert_eq!(told["conversation"]["launcher_id"], "own");
        assert_eq!(told["conversation"]["bot_id"], "b1");
        assert_eq!(told["event"]["data"]["group"], json!({"id": "g1", "name": "All"}));
        assert_eq!(told["variables"]["group_name"], "All");
    }

    #[test]
    fn attachments_are_spelled_for_each_dialect() {
        let input = json!({"text": "see", "contents": [{"type": "image", "artifact_id": "a1"}],
            "attachments": [{"artifact_id": "a1", "mime_type": "image/png", "size_bytes": 3}]});
        let changes = [("input", input)];
        let runner = rendered(&changes, Dialect::Runner);
        assert_eq!(runner["input"]["attachments"][0]["ref"], "a1");
        assert_eq!(
            runner["input"]["contents"],
            json!([{"type": "image_url", "image_url": {"url": "artifact:a1"}}])
        );
        let agent = rendered(&changes, Dialect::AgentRunner);
        assert_eq!(
            agent["input"]["attachments"],
            json!([{"artifact_id": "a1", "mime_type": "image/png", "size_bytes": 3}])
        );
    }

    #[test]
    fn resources_and_apis_have_the_names_that_the_sdk_checks() {
        let told = rendered(
            &[(
                "resources",
                json!({
                "models": [{"model_id": "m", "operations": ["invoke", "stream", "embed"]},
                    {"model_id": "v", "operations": ["embed"]}],
                "tools": [{"tool_name": "t", "source": "mcp", "operations": ["call"]}],
                "knowledge_bases": [{"kb_id": "k", "name": "Docs"}],
                "storage": {"plugin": true}}),
            )],
            Dialect::Runner,
        );
        let resources = &told["resources"];
        assert_eq!(
            resources["models"][0]["operations"],
            json!(["invoke", "stream", "count_tokens"])
        );
        assert_eq!(resources["models"][1]["operations"], json!(["invoke"]));
        assert_eq!(resources["tools"][0]["tool_type"], "mcp");
        assert_eq!(resources["knowledge_bases"][0]["kb_name"], "Docs");
        assert_eq!(resources["storage"]["plugin_storage"], true);
        assert_eq!(resources["storage"]["workspace_storage"], false);
        let apis = &told["context"]["available_apis"];
        assert_eq!((&apis["state"], &apis["run_get"]), (&json!(true), &json!(true)));
        assert_eq!((&apis["history_page"], &apis["run_finalize"]), (&json!(false), &json!(false)));
        assert_eq!(told["delivery"]["automatic_reply"], true);
    }
}
