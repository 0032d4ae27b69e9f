//! Who speaks and where, in LangBot's form.

use super::super::chain;
use greenroom_protocol::context::{AgentEventContext, ConversationContext, SubjectContext};
use greenroom_protocol::{AgentRunContext, Object, RawEventRef};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

/// The session of a run, as commands and tools know it.
pub(in super::super) fn session(context: &AgentRunContext) -> Value {
    let party = Party::of(context);
    json!({"launcher_type": party.launcher_type, "launcher_id": party.launcher_id,
        "sender_id": party.sender_id.unwrap_or_default(), "bot_uuid": party.bot_id})
}

#[derive(Clone, Copy)]
pub(super) struct Party<'a> {
    launcher_type: &'static str,
    launcher_id: &'a str,
    sender_id: Option<&'a str>,
    sender_name: Option<&'a str>,
    group_name: Option<&'a str>,
    bot_id: &'a str,
}

impl<'a> Party<'a> {
    pub(super) fn of(context: &'a AgentRunContext) -> Self {
        let actor = context.actor.as_ref();
        let group = context.subject.as_ref().and_then(SubjectContext::group);
        let conversation = context.conversation.as_ref();
        let conversation_id = conversation.and_then(|known| known.conversation_id.as_deref());
        let sender_id = actor.and_then(|actor| actor.actor_id.as_deref());
        let launcher_id = match group {
            Some(group) => group.id.or(conversation_id),
            None => sender_id.or(conversation_id),
        };
        let bot_id = conversation.and_then(|known| known.bot_id.as_deref());
        let agent = context.metadata.get("agent").and_then(Value::as_str);
        Self {
            launcher_type: if group.is_some() { "group" } else { "person" },
            launcher_id: launcher_id.unwrap_or(&context.event.event_id),
            sender_id,
            sender_name: actor.and_then(|actor| actor.actor_name.as_deref()),
            group_name: group.and_then(|group| group.data?.get("name")?.as_str()),
            bot_id: bot_id.or(agent).unwrap_or("greenroom"),
        }
    }

    fn session_id(&self) -> String {
        format!("{}_{}", self.launcher_type, self.launcher_id)
    }

    fn is_group(&self) -> bool {
        self.launcher_type == "group"
    }

    /// A conversation with its missing fields filled in.
    pub(super) fn fill(&self, conversation: &ConversationContext) -> ConversationContext {
        let mut filled = conversation.clone();
        filled.launcher_type.get_or_insert_with(|| self.launcher_type.to_owned());
        filled.launcher_id.get_or_insert_with(|| self.launcher_id.to_owned());
        filled.bot_id.get_or_insert_with(|| self.bot_id.to_owned());
        let more = [("sender_id", json!(self.sender_id)), ("session_id", self.session_id().into())];
        for (key, value) in more {
            let known = filled.extra.entry(key).or_insert(Value::Null);
            if known.is_null() {
                *known = value;
            }
        }
        filled
    }

    pub(super) fn variables(&self, context: &'a AgentRunContext) -> Variables<'a> {
        let conversation = context.conversation.as_ref();
        Variables {
            launcher_type: self.launcher_type,
            launcher_id: self.launcher_id,
            sender_id: self.sender_id,
            sender_name: self.sender_name,
            // LangBot has a text here, also outside groups.
            group_name: self.group_name.unwrap_or_default(),
            session_id: self.session_id(),
            conversation_id: conversation.and_then(|known| known.conversation_id.as_deref()),
            msg_create_time: context.event.event_time.or(context.trigger.timestamp),
            user_message_text: context.input.text.as_deref(),
        }
    }
}

/// LangBot's variables of an event.
#[derive(serde::Serialize)]
pub(super) struct Variables<'a> {
    launcher_type: &'static str,
    launcher_id: &'a str,
    sender_id: Option<&'a str>,
    sender_name: Option<&'a str>,
    group_name: &'a str,
    session_id: String,
    conversation_id: Option<&'a str>,
    msg_create_time: Option<i64>,
    user_message_text: Option<&'a str>,
}

#[derive(serde::Serialize)]
pub(super) struct Event<'a> {
    event_id: &'a str,
    event_type: &'a str,
    event_time: Option<i64>,
    source: &'a str,
    source_event_type: &'a Option<String>,
    raw_ref: &'a Option<RawEventRef>,
    data: Data<'a>,
    #[serde(flatten)]
    extra: &'a Object,
}

/// The event's own data, with the fields of the SDK's typed events where it lacks them.
struct Data<'a> {
    context: &'a AgentRunContext,
    party: Party<'a>,
}

impl<'a> Event<'a> {
    pub(super) fn new(context: &'a AgentRunContext, party: Party<'a>) -> Self {
        let AgentEventContext {
            event_id,
            event_type,
            event_time,
            source,
            source_event_type,
            raw_ref,
            data: _,
            extra,
        } = &context.event;
        Self {
            event_id,
            event_type,
            event_time: *event_time,
            source,
            source_event_type,
            raw_ref,
            data: Data { context, party },
            extra,
        }
    }
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { context, party } = self;
        let event = &context.event;
        let mut data = Fields { given: &event.data, map: serializer.serialize_map(None)? };
        for (key, value) in &event.data {
            data.map.serialize_entry(key, value)?;
        }
        data.put("type", &event.event_type)?;
        data.put("timestamp", &event.event_time.map_or(0.0, |time| time as f64))?;
        data.put("bot_uuid", &party.bot_id)?;
        data.put("adapter_name", &event.source)?;
        if let Some(key) = person_of(&event.event_type) {
            let (id, name) = (party.sender_id, party.sender_name);
            let person =
                json!({"id": id.unwrap_or_default(), "nickname": name.unwrap_or_default()});
            data.put(key, &person)?;
        }
        if event.event_type == "message.received" {
            data.put("message_id", &event.event_id)?;
            data.put("message_chain", &chain::of(&context.input))?;
        }
        let is_message = event.event_type.starts_with("message.");
        if is_message {
            data.put("chat_type", if party.is_group() { &"group" } else { &"private" })?;
            data.put("chat_id", &party.launcher_id)?;
        }
        if party.is_group() && (is_message || event.event_type.starts_with("group.")) {
            let name = party.group_name.unwrap_or_default();
            data.put("group", &json!({"id": party.launcher_id, "name": name}))?;
        }
        data.map.end()
    }
}

/// What the SDK's typed event of this type calls its actor.
fn person_of(event_type: &str) -> Option<&'static str> {
    Some(match event_type {
        "message.received" => "sender",
        "message.edited" => "editor",
        "message.reaction" | "friend.request_received" | "friend.added" | "friend.removed" => {
            "user"
        }
        "group.member_joined" | "group.member_left" | "group.member_banned" => "member",
        _ => return None,
    })
}

struct Fields<'a, M> {
    given: &'a Object,
    map: M,
}

impl<M: SerializeMap> Fields<'_, M> {
    /// Writes a field unless it was given.
    fn put(&mut self, key: &str, value: &impl Serialize) -> Result<(), M::Error> {
        if self.given.contains_key(key) { Ok(()) } else { self.map.serialize_entry(key, value) }
    }
}
