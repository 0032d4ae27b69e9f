//! The run context as a LangBot runner expects it.
//!
//! Invariant: one context serves both dialects, attachments excepted; the context shows as allowed what the
//! host grants; nothing in the event is changed, only renamed and added to.

use super::content;
use super::{Dialect, RunnerProfile};
use greenroom_protocol::context::{
    ActorContext, AdapterContext, AgentRunState, AgentRuntimeContext, AgentTrigger,
    ContextAPICapabilities, ContextAccess, ConversationContext, DeliveryContext,
    InlineContextPolicy, SubjectContext,
};
use greenroom_protocol::interaction::INTERACTION;
use greenroom_protocol::{AgentRunContext, Object};
use party::{Event, Party, Variables};
use resources::Resources;
use serde::Serialize;
use serde_json::Value;
use std::time::SystemTime;

pub(super) use party::session;

mod party;
mod resources;
#[cfg(test)]
mod tests;

/// A context in LangBot's form; unchanged parts are serialised without a copy.
#[derive(Serialize)]
pub(crate) struct LangbotContext<'a> {
    run_id: &'a str,
    trigger: &'a AgentTrigger,
    event: Event<'a>,
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
    adapter: AdapterContext,
    metadata: &'a Object,
    variables: Variables<'a>,
    host: &'static str,
    protocol_version: &'a str,
    #[serde(flatten)]
    extra: &'a Object,
}

#[derive(Serialize)]
struct Delivery<'a> {
    #[serde(flatten)]
    inner: &'a DeliveryContext,
    automatic_reply: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    interactions: Option<Forms>,
}

/// What readers of the API can show of a form.
#[derive(Serialize)]
struct Forms {
    field_types: [&'static str; 6],
    action_styles: [&'static str; 3],
    supports_updates: bool,
}

const FORMS: Forms = Forms {
    field_types: ["text", "textarea", "select", "multiselect", "number", "boolean"],
    action_styles: ["default", "primary", "danger"],
    supports_updates: false,
};
/// The surface of a run without one: its readers follow it by the API.
const NO_SURFACE: &str = "api";

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

/// What the host does not offer, stated so that an older SDK need not guess.
#[derive(Serialize, Default)]
struct AbsentApis {
    run_append_result: bool,
    run_finalize: bool,
    r#box: bool,
}

impl<'a> LangbotContext<'a> {
    pub(crate) fn new(
        run_context: &'a AgentRunContext,
        profile: RunnerProfile,
        host_version: &str,
    ) -> Self {
        let party = Party::of(run_context);
        // Every field by name, so that a new one does not compile until it is handled.
        let AgentRunContext {
            run_id,
            trigger,
            event: _,
            conversation,
            actor,
            subject,
            input: given_input,
            delivery,
            resources,
            context,
            state,
            runtime,
            config,
            adapter,
            metadata,
            extra,
        } = run_context;
        // Protocol types have string keys only and no failing serialisers.
        let given_input = serde_json::to_value(given_input).expect("protocol types are JSON");
        let langbot_version = Some(host_version.to_owned());
        Self {
            run_id,
            trigger,
            event: Event::new(run_context, party),
            conversation: conversation.as_ref().map(|known| party.fill(known)),
            actor,
            subject,
            input: input(given_input, profile.dialect),
            delivery: Delivery {
                inner: delivery,
                automatic_reply: true,
                interactions: (profile.asks && delivery.surface == NO_SURFACE).then_some(FORMS),
            },
            resources: Resources::new(resources, run_context, profile.replies),
            context: Access::new(context, profile.replies),
            state,
            runtime: AgentRuntimeContext { langbot_version, ..runtime.clone() },
            config,
            adapter: with_params(adapter.as_ref(), &party.variables(run_context)),
            metadata,
            variables: party.variables(run_context),
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
            // `history.page` applies it.
            superseded: _,
            // LangBot has none.
            session_key: _,
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

/// The adapter's data with the variables of the event, which plugins pass on to their services.
fn with_params(adapter: Option<&AdapterContext>, variables: &Variables<'_>) -> AdapterContext {
    let mut adapter = adapter.cloned().unwrap_or_default();
    // Variables have string keys only and no failing serialisers.
    let variables = serde_json::to_value(variables).expect("variables are JSON");
    adapter.extra.entry("params").or_insert(variables);
    adapter
}

/// An input in the form of a dialect; also for a steering message. As in LangBot, every file is both among the
/// contents and among the attachments.
pub(crate) fn input(mut input: Value, dialect: Dialect) -> Value {
    let list = |key: &str| input[key].as_array().cloned().unwrap_or_default();
    let (mut contents, mut attachments) = (list("contents"), list("attachments"));
    let has = |list: &[Value], one: &Value| {
        let id = &one["artifact_id"];
        !id.is_null() && list.iter().any(|other| other["artifact_id"] == *id)
    };
    let only_attached: Vec<Value> =
        attachments.iter().filter(|one| !has(&contents, one)).map(content::element).collect();
    let only_shown = contents.iter().filter(|one| one["type"] != "text" && !has(&attachments, one));
    let only_shown: Vec<Value> = only_shown.cloned().collect();
    let has_text = contents.iter().any(|one| one["type"] == "text");
    if !only_attached.is_empty()
        && !has_text
        && let Some(text) = input["text"].as_str().filter(|text| !text.is_empty())
    {
        // Contents replace the text where a plugin reads them.
        contents.insert(0, serde_json::json!({"type": "text", "text": text}));
    }
    contents.extend(only_attached);
    attachments.extend(only_shown);
    if input[INTERACTION].is_object() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        input[INTERACTION]["submitted_at"] = now.as_secs().into();
    }
    input["contents"] = contents.iter().map(content::to_langbot).collect();
    input["attachments"] =
        attachments.iter().map(|one| content::attachment(one, dialect)).collect();
    input
}
