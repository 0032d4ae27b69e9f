//! The run context as a LangBot runner expects it.
//!
//! Invariant: one context serves both dialects, attachments excepted; what the runner is shown as allowed is
//! what the host grants, and nothing that the event said is changed, only spelled again and added to.

use super::content;
use super::{Dialect, Manner};
use greenroom_protocol::context::{
    ActorContext, AdapterContext, AgentEventContext, AgentRunState, AgentRuntimeContext,
    AgentTrigger, ContextAPICapabilities, ContextAccess, ConversationContext, DeliveryContext,
    InlineContextPolicy, SubjectContext,
};
use greenroom_protocol::{AgentRunContext, Object};
use resources::Resources;
use serde::Serialize;
use serde_json::{Value, json};

mod resources;
#[cfg(test)]
mod tests;

/// Subjects that are a group of people.
const GROUPS: [&str; 4] = ["group", "channel", "room", "guild"];

/// A context in LangBot's spelling; what needs no other spelling is written from where it lies.
#[derive(Serialize)]
pub(crate) struct Told<'a> {
    run_id: &'a str,
    trigger: &'a AgentTrigger,
    event: AgentEventContext,
    conversation: Option<ConversationContext>,
    actor: &'a Option<ActorContext>,
    subject: &'a Option<SubjectContext>,
    input: Value,
    delivery: Delivery<'a>,
    resources: Resources<'a>,
    context: Access<'a>,
    state: &'a AgentRunState,
    runtime: AgentRuntimeContext,
    config: &'a Object,
    adapter: &'a Option<AdapterContext>,
    metadata: &'a Object,
    variables: Value,
    host: &'static str,
    protocol_version: &'a str,
    #[serde(flatten)]
    extra: &'a Object,
}

#[derive(Serialize)]
struct Delivery<'a> {
    #[serde(flatten)]
    told: &'a DeliveryContext,
    automatic_reply: bool,
}

#[derive(Serialize)]
struct Access<'a> {
    conversation_id: &'a Option<String>,
    thread_id: &'a Option<String>,
    latest_cursor: &'a Option<String>,
    event_seq: Option<i64>,
    transcript_seq: Option<i64>,
    has_history_before: bool,
    inline_policy: &'a InlineContextPolicy,
    available_apis: Apis,
    #[serde(flatten)]
    extra: &'a Object,
}

#[derive(Serialize)]
struct Apis {
    #[serde(flatten)]
    granted: ContextAPICapabilities,
    #[serde(flatten)]
    own: OwnApis,
    reply_stream: bool,
    #[serde(flatten)]
    absent: AbsentApis,
}

/// Calls that every run may make about itself.
#[derive(Serialize)]
struct OwnApis {
    prompt_get: bool,
    run_get: bool,
    run_list: bool,
    run_events_page: bool,
    run_cancel: bool,
}

const OWN_APIS: OwnApis = OwnApis {
    prompt_get: true,
    run_get: true,
    run_list: true,
    run_events_page: true,
    run_cancel: true,
};

/// What the host does not offer; told so that an older SDK does not have to guess.
#[derive(Serialize, Default)]
struct AbsentApis {
    run_append_result: bool,
    run_finalize: bool,
    r#box: bool,
}

impl<'a> Told<'a> {
    pub(crate) fn new(told: &'a AgentRunContext, manner: Manner, host_version: &str) -> Self {
        let party = Party::of(told);
        // Every field by name: one that is new has to be thought of here.
        let AgentRunContext {
            run_id,
            trigger,
            event: _,
            conversation,
            actor,
            subject,
            input: heard,
            delivery,
            resources,
            context,
            state,
            runtime,
            config,
            adapter,
            metadata,
            extra,
        } = told;
        // Protocol types have string keys only and no failing serialisers.
        let heard = serde_json::to_value(heard).expect("protocol types are JSON");
        let langbot_version = Some(host_version.to_owned());
        Self {
            run_id,
            trigger,
            event: event(told, &party),
            conversation: conversation.as_ref().map(|known| party.fill(known)),
            actor,
            subject,
            input: input(&heard, manner.dialect),
            delivery: Delivery { told: delivery, automatic_reply: true },
            resources: Resources::new(resources, manner.replies),
            context: Access::new(context, manner.replies),
            state,
            runtime: AgentRuntimeContext { langbot_version, ..runtime.clone() },
            config,
            adapter,
            metadata,
            variables: party.variables(told),
            host: "greenroom",
            protocol_version: &runtime.protocol_version,
            extra,
        }
    }
}

impl<'a> Access<'a> {
    fn new(access: &'a ContextAccess, reply_stream: bool) -> Self {
        let ContextAccess {
            conversation_id,
            thread_id,
            latest_cursor,
            event_seq,
            transcript_seq,
            has_history_before,
            inline_policy,
            available_apis,
            extra,
        } = access;
        Self {
            conversation_id,
            thread_id,
            latest_cursor,
            event_seq: *event_seq,
            transcript_seq: *transcript_seq,
            has_history_before: *has_history_before,
            inline_policy,
            available_apis: Apis {
                granted: *available_apis,
                own: OWN_APIS,
                reply_stream,
                absent: AbsentApis::default(),
            },
            extra,
        }
    }
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

    fn is_group(&self) -> bool {
        self.launcher_type == "group"
    }

    /// A conversation with what it does not say itself.
    fn fill(&self, conversation: &ConversationContext) -> ConversationContext {
        let mut told = conversation.clone();
        told.launcher_type.get_or_insert_with(|| self.launcher_type.to_owned());
        told.launcher_id.get_or_insert_with(|| self.launcher_id.clone());
        told.bot_id.get_or_insert_with(|| self.bot_id.clone());
        let more = [("sender_id", json!(self.sender_id)), ("session_id", self.session_id().into())];
        for (key, value) in more {
            let known = told.extra.entry(key).or_insert(Value::Null);
            if known.is_null() {
                *known = value;
            }
        }
        told
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

/// The event with the fields that the SDK's typed events are read from, where its own data has none of the
/// name.
fn event(context: &AgentRunContext, party: &Party) -> AgentEventContext {
    let mut event = context.event.clone();
    let mut put = |key: &str, value: Value| {
        if !event.data.contains_key(key) {
            event.data.insert(key.to_owned(), value);
        }
    };
    put("type", event.event_type.as_str().into());
    put("timestamp", event.event_time.map_or(0.0, |time| time as f64).into());
    put("bot_uuid", party.bot_id.as_str().into());
    put("adapter_name", event.source.as_str().into());
    if event.event_type == "message.received" {
        let chain =
            context.input.text.as_deref().map(|text| json!({"type": "Plain", "text": text}));
        put("message_id", event.event_id.as_str().into());
        put("message_chain", chain.into_iter().collect());
        let sender = (party.sender_id.as_deref(), party.sender_name.as_deref());
        put(
            "sender",
            json!({"id": sender.0.unwrap_or_default(), "nickname": sender.1.unwrap_or_default()}),
        );
        put("chat_type", if party.is_group() { "group" } else { "private" }.into());
        put("chat_id", party.launcher_id.as_str().into());
        if party.is_group() {
            let name = party.group_name.as_deref().unwrap_or_default();
            put("group", json!({"id": party.launcher_id, "name": name}));
        }
    }
    event
}
