//! The run context as a LangBot runner expects it.
//!
//! Invariant: one context serves both dialects, attachments excepted; what the runner is shown as allowed is
//! what the host grants, and nothing that the event said is changed, only spelled again and added to.

use super::content;
use super::{Dialect, RunnerProfile};
use greenroom_protocol::context::{
    ActorContext, AdapterContext, AgentRunState, AgentRuntimeContext, AgentTrigger,
    ContextAPICapabilities, ContextAccess, ConversationContext, DeliveryContext,
    InlineContextPolicy, SubjectContext,
};
use greenroom_protocol::{AgentRunContext, Object};
use party::{Event, Party, Variables};
use resources::Resources;
use serde::Serialize;
use serde_json::Value;

mod party;
mod resources;
#[cfg(test)]
mod tests;

/// A context in LangBot's spelling; what needs no other spelling is written from where it lies.
#[derive(Serialize)]
pub(crate) struct Told<'a> {
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
    adapter: &'a Option<AdapterContext>,
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
    pub(crate) fn new(
        told: &'a AgentRunContext,
        profile: RunnerProfile,
        host_version: &str,
    ) -> Self {
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
            event: Event::new(told, party),
            conversation: conversation.as_ref().map(|known| party.fill(known)),
            actor,
            subject,
            input: input(heard, profile.dialect),
            delivery: Delivery { told: delivery, automatic_reply: true },
            resources: Resources::new(resources, profile.replies),
            context: Access::new(context, profile.replies),
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
pub(crate) fn input(mut input: Value, dialect: Dialect) -> Value {
    let mut spell = |key: &str, again: fn(&Value) -> Value| {
        let said = input[key].as_array().map_or(&[][..], Vec::as_slice);
        input[key] = said.iter().map(again).collect();
    };
    spell("contents", content::to_langbot);
    if dialect == Dialect::Runner {
        spell("attachments", content::attachment);
    }
    input
}
