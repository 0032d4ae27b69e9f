//! The run context: the current event and handles, never history.
//!
//! Invariant: built by a pure function from the stored event, the frozen grant and the current state, so that
//! a run restarted after a crash gets the same context apart from its times, token and cursors.

mod identity;

pub use identity::Identity;
pub(crate) use identity::client_tools;

use crate::binding::Bound;
use crate::cursor::Cursors;
use crate::grant::Grant;
use crate::ids::DEFAULT_WORKSPACE;
use crate::redaction::Redactor;
use greenroom_protocol::{
    AdapterContext, AgentEventContext, AgentResources, AgentRunContext, AgentRunState,
    AgentRuntimeContext, AgentTrigger, ContextAccess, ConversationContext, InlineContextPolicy,
    InlineMode, NewEvent, Object, PROTOCOL_VERSION, RawEventRef, StaticContextRef, SubjectContext,
    TriggerSource,
};
use greenroom_store::reads::conversations::Position;
use greenroom_store::types::RunRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// An event as it is stored: from the sender, with what the host knows about how it came in. An added field
/// has a default (decision 015).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Envelope {
    pub trigger: TriggerSource,
    /// The limited token that sent it: its run reaches no other conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_to: Option<String>,
    /// The namespace of its actor's id, where that is not `source`: its sender has actors of its own (decision 028).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actors_of: Option<String>,
    /// The artifact with the event's `data`, if that was too large to store inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_ref: Option<RawEventRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<AdapterContext>,
    /// Earlier events of the conversation that its client has replaced, as first and last number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<[i64; 2]>,
    /// The sender's trace, as its `traceparent` header names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The language of the sender, if the entrance knows it and the event does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Why its agent was chosen; none if it is unbound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    pub event: NewEvent,
}

/// Removes secrets of this host.
pub(crate) fn clean_adapter(mut adapter: AdapterContext, redactor: &Redactor) -> AdapterContext {
    let redactor = redactor.exact();
    adapter.extra.values_mut().for_each(|value| redactor.value(value));
    adapter
}

/// Joins parts so that no two lists of parts give the same text.
pub(crate) fn owner(parts: &[&str]) -> String {
    serde_json::to_string(parts).unwrap_or_default()
}

fn text(part: &Option<String>) -> &str {
    part.as_deref().unwrap_or_default()
}

/// The inputs of a context.
pub struct ContextParts<'a> {
    pub run: &'a RunRow,
    pub envelope: &'a Envelope,
    pub grant: &'a Grant,
    pub identity: &'a Identity,
    pub state: AgentRunState,
    /// Whether the run's session has items before its event.
    pub has_history_before: bool,
    pub cursors: &'a Cursors,
    pub resources: AgentResources,
    pub static_refs: BTreeMap<String, StaticContextRef>,
    /// For processes that call the host for the run over HTTP.
    pub run_token: Option<String>,
    /// Where they reach it, if they are on this machine.
    pub host_url: String,
    /// With which the runner continues the trace of its run.
    pub traceparent: Option<String>,
    pub remaining: Duration,
    pub now_ms: i64,
    pub timezone: Option<String>,
}

impl ContextParts<'_> {
    pub fn build(self) -> AgentRunContext {
        let access = self.access();
        let runtime = self.runtime();
        let conversation = self.conversation();
        let event_time = self.event_time();
        let Self { run, envelope, grant, identity, state, resources, .. } = self;
        let event = &envelope.event;
        let mut metadata = event.metadata.clone();
        metadata.insert("attempt".to_owned(), run.attempt.into());
        metadata.insert("agent".to_owned(), run.agent.clone().into());
        AgentRunContext {
            run_id: run.run_id.clone(),
            trigger: AgentTrigger {
                kind: event.event_type.clone(),
                source: envelope.trigger,
                timestamp: Some(event_time),
                extra: Object::new(),
            },
            event: AgentEventContext {
                event_id: run.event_id.clone(),
                event_type: event.event_type.clone(),
                event_time: Some(event_time),
                source: event.source.clone(),
                source_event_type: event.source_event_type.clone(),
                raw_ref: envelope.raw_ref.clone(),
                data: event.data.clone(),
                extra: Object::new(),
            },
            conversation: Some(conversation),
            actor: event.actor.clone(),
            subject: event.subject.clone(),
            input: event.input.clone(),
            delivery: identity.delivery_context(),
            resources,
            context: access,
            state,
            runtime,
            config: grant.config.clone(),
            adapter: envelope.adapter.clone(),
            metadata,
            extra: Object::new(),
        }
    }

    /// The time of the event, or of its acceptance.
    fn event_time(&self) -> i64 {
        self.envelope.event.event_time.unwrap_or_else(|| self.run.created_at.div_euclid(1000))
    }

    /// Where the event belongs; bot and workspace are known also without a conversation.
    fn conversation(&self) -> ConversationContext {
        let event = &self.envelope.event;
        let (launcher_type, launcher_id) = launcher(event);
        ConversationContext {
            conversation_id: event.conversation_id.clone(),
            thread_id: event.thread_id.clone(),
            launcher_type: launcher_id.as_ref().map(|_| launcher_type.to_owned()),
            launcher_id,
            bot_id: event.bot_id.clone(),
            workspace_id: Some(self.run.workspace_id.clone()),
            extra: Object::new(),
        }
    }

    /// The language: of the event, of its actor, or of the entrance.
    fn locale(&self) -> Option<String> {
        let event = &self.envelope.event;
        let actor = event.actor.as_ref();
        let of_actor = actor.and_then(|actor| {
            actor.metadata.get("locale").or_else(|| actor.extra.get("locale"))?.as_str()
        });
        let given = event.locale.as_deref().or(of_actor).or(self.envelope.locale.as_deref());
        given.map(str::to_owned)
    }

    fn access(&self) -> ContextAccess {
        let run = self.run;
        let before = run.conversation_seq.map(|seq| Position::before_event(seq).to_string());
        let cursor = run.conversation_id.as_deref().zip(before).map(|(conversation, before)| {
            self.cursors.seal(&["history", &run.workspace_id, conversation], &before)
        });
        ContextAccess {
            conversation_id: run.conversation_id.clone(),
            thread_id: self.envelope.event.thread_id.clone(),
            latest_cursor: cursor,
            event_seq: run.conversation_seq,
            transcript_seq: run.transcript_seq,
            has_history_before: self.has_history_before,
            superseded: self.envelope.superseded.clone(),
            session_key: self.identity.session_key(),
            inline_policy: InlineContextPolicy {
                mode: InlineMode::CurrentEvent,
                delivered_count: 1,
                source_total_count: None,
                messages_complete: false,
                reason: None,
                extra: Object::new(),
            },
            available_apis: self.grant.available_apis(self.identity),
            extra: Object::new(),
        }
    }

    fn runtime(&self) -> AgentRuntimeContext {
        let remaining_ms = u64::try_from(self.remaining.as_millis()).unwrap_or(u64::MAX);
        let now_s = self.now_ms as f64 / 1000.0;
        let mut metadata = Object::new();
        metadata.insert("remaining_ms".to_owned(), remaining_ms.into());
        metadata.insert("host_version".to_owned(), env!("CARGO_PKG_VERSION").into());
        if let Some(token) = &self.run_token {
            metadata.insert("run_token".to_owned(), token.clone().into());
            metadata.insert("host_url".to_owned(), self.host_url.clone().into());
        }
        if let Some(traceparent) = &self.traceparent {
            metadata.insert("traceparent".to_owned(), traceparent.clone().into());
        }
        AgentRuntimeContext {
            host: "greenroom".to_owned(),
            protocol_version: PROTOCOL_VERSION.to_owned(),
            langbot_version: None,
            trace_id: self.run.run_id.clone(),
            deadline_at: Some(now_s + self.remaining.as_secs_f64()),
            locale: self.locale(),
            timezone: self.timezone.clone(),
            static_refs: self.static_refs.clone(),
            metadata,
            extra: Object::new(),
        }
    }
}

/// Who started the conversation, as LangBot counts it: the group that the event is about, else the person.
fn launcher(event: &NewEvent) -> (&'static str, Option<String>) {
    let conversation = || event.conversation_id.clone();
    match event.subject.as_ref().and_then(SubjectContext::group) {
        Some(group) => ("group", group.id.map(str::to_owned).or_else(conversation)),
        None => {
            let person = event.actor.as_ref().and_then(|actor| actor.actor_id.clone());
            ("person", person.or_else(conversation))
        }
    }
}

/// The workspace an event belongs to.
pub fn workspace_of(event: &NewEvent) -> &str {
    event.workspace_id.as_deref().unwrap_or(DEFAULT_WORKSPACE)
}

#[cfg(test)]
mod tests;
