//! The run context: the current event and handles, never history.
//!
//! Invariant: built by a pure function from the stored event, the frozen grant and the current state, so that
//! a run restarted after a crash gets the same context apart from its times, token and cursors.

use crate::binding::Bound;
use crate::cursor::Cursors;
use crate::grant::Grant;
use crate::ids::{self, DEFAULT_WORKSPACE};
use crate::redaction::Redactor;
use crate::resources::tool_block;
use greenroom_protocol::payload::StateScope;
use greenroom_protocol::{
    ActorContext, AdapterContext, AgentEventContext, AgentResources, AgentRunContext,
    AgentRunState, AgentRuntimeContext, AgentTrigger, ContextAccess, ConversationContext,
    DeliveryContext, InlineContextPolicy, InlineMode, NewEvent, Object, PROTOCOL_VERSION,
    RawEventRef, StaticContextRef, TriggerSource,
};
use greenroom_store::reads::conversations::Position;
use greenroom_store::records::{Person, TOKEN_MARK};
use greenroom_store::types::{NewDelivery, RunRow};
use greenroom_surfaces::{Capabilities, Content, OutboundMessage, action};
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
    /// The sender's trace, as its `traceparent` header names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
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

/// The identity of a run: everything that may own state, deliveries or artifacts.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub workspace_id: String,
    pub run_id: String,
    pub event_id: String,
    pub agent: String,
    pub runner_id: String,
    pub conversation_id: Option<String>,
    pub thread_id: Option<String>,
    pub actor_id: Option<String>,
    pub subject_id: Option<String>,
    pub surface: Option<String>,
    /// What the surface supports; none if it is not configured.
    pub capabilities: Option<Capabilities>,
    pub actor: Option<ActorContext>,
    /// The namespace of the actor's id.
    pub actors_of: String,
    /// The number of the run's event in its conversation.
    pub conversation_seq: Option<i64>,
    pub attempt: i64,
    /// The sender's trace.
    pub traceparent: Option<String>,
}

impl Identity {
    pub fn new(run: &RunRow, envelope: &Envelope) -> Self {
        let event = &envelope.event;
        let actor = event.actor.as_ref();
        let subject = event.subject.as_ref();
        Self {
            workspace_id: run.workspace_id.clone(),
            run_id: run.run_id.clone(),
            event_id: run.event_id.clone(),
            agent: run.agent.clone(),
            runner_id: run.runner_id.clone(),
            conversation_id: run.conversation_id.clone(),
            thread_id: event.thread_id.clone(),
            actor_id: actor.map(|actor| {
                let parts = [actor.actor_type.as_str(), text(&actor.actor_id)];
                // State of trusted senders is kept by the id alone.
                let own = envelope.actors_of.as_deref().filter(|of| of.contains(TOKEN_MARK));
                owner(&parts.into_iter().chain(own).collect::<Vec<_>>())
            }),
            subject_id: subject
                .map(|subject| owner(&[&subject.subject_type, text(&subject.subject_id)])),
            surface: run.surface.clone(),
            capabilities: None,
            actor: event.actor.clone(),
            actors_of: envelope.actors_of.clone().unwrap_or_else(|| event.source.clone()),
            conversation_seq: run.conversation_seq,
            attempt: run.attempt,
            traceparent: envelope.traceparent.clone(),
        }
    }

    /// The person that the run acts for; none without an actor id.
    pub fn person(&self) -> Option<Person> {
        Some(Person {
            workspace_id: self.workspace_id.clone(),
            source: self.actors_of.clone(),
            actor: self.actor.as_ref()?.actor_id.clone()?,
        })
    }

    /// The owner of the state of a scope; none if the event has no such party.
    pub fn state_owner(&self, scope: StateScope) -> Option<String> {
        let party = match scope {
            StateScope::Conversation => self.conversation_id.as_deref()?,
            StateScope::Actor => self.actor_id.as_deref()?,
            StateScope::Subject => self.subject_id.as_deref()?,
            StateScope::Runner => return Some(owner(&["runner", &self.runner_id])),
            StateScope::Binding => return Some(owner(&["binding", &self.agent])),
        };
        Some(owner(&[scope.as_str(), &self.agent, &self.runner_id, party]))
    }

    /// An outbox row. Its lane is that of its surface and conversation.
    pub(crate) fn delivery(&self, surface: &str, sequence: i64, content: Content) -> NewDelivery {
        let message = OutboundMessage {
            content,
            run_id: self.run_id.clone(),
            event_id: self.event_id.clone(),
            agent: self.agent.clone(),
            conversation_id: self.conversation_id.clone(),
            sequence,
        };
        NewDelivery {
            delivery_id: ids::fresh("dlv"),
            surface: surface.to_owned(),
            target: owner(&[&self.workspace_id, surface, text(&self.conversation_id)]),
            sequence,
            payload: message.to_json(),
        }
    }

    /// What the runner learns about where its answer goes.
    pub(crate) fn delivery_context(&self) -> DeliveryContext {
        let surface = self.surface.clone().unwrap_or_else(|| "api".to_owned());
        // Without a surface, readers of the API follow the stream.
        let Some(Capabilities { streaming, text_max, actions }) = &self.capabilities else {
            return DeliveryContext { surface, supports_streaming: true, ..Default::default() };
        };
        DeliveryContext {
            surface,
            supports_streaming: *streaming,
            supports_edit: actions.contains(action::MESSAGE_EDIT),
            supports_reaction: actions.contains(action::MESSAGE_REACT),
            max_message_size: text_max.map(|max| max.size() as u64),
            ..Default::default()
        }
    }
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
    pub state: AgentRunState,
    pub delivery: DeliveryContext,
    pub cursors: &'a Cursors,
    pub resources: AgentResources,
    /// For processes that call the host for the run over HTTP.
    pub run_token: Option<String>,
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
        let Self { run, envelope, grant, state, delivery, resources, .. } = self;
        let event = &envelope.event;
        let mut metadata = event.metadata.clone();
        metadata.insert("attempt".to_owned(), run.attempt.into());
        metadata.insert("agent".to_owned(), run.agent.clone().into());
        AgentRunContext {
            run_id: run.run_id.clone(),
            trigger: AgentTrigger {
                kind: event.event_type.clone(),
                source: envelope.trigger,
                timestamp: event.event_time.or(Some(run.created_at.div_euclid(1000))),
                extra: Object::new(),
            },
            event: AgentEventContext {
                event_id: run.event_id.clone(),
                event_type: event.event_type.clone(),
                event_time: event.event_time,
                source: event.source.clone(),
                source_event_type: None,
                raw_ref: envelope.raw_ref.clone(),
                data: event.data.clone(),
                extra: Object::new(),
            },
            conversation: event.conversation_id.as_ref().map(|id| ConversationContext {
                conversation_id: Some(id.clone()),
                thread_id: event.thread_id.clone(),
                launcher_type: None,
                launcher_id: None,
                bot_id: event.bot_id.clone(),
                workspace_id: Some(run.workspace_id.clone()),
                extra: Object::new(),
            }),
            actor: event.actor.clone(),
            subject: event.subject.clone(),
            input: event.input.clone(),
            delivery,
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
            has_history_before: run.transcript_seq.is_some_and(|seq| seq > 1),
            inline_policy: InlineContextPolicy {
                mode: InlineMode::CurrentEvent,
                delivered_count: 1,
                source_total_count: None,
                messages_complete: false,
                reason: None,
                extra: Object::new(),
            },
            available_apis: self.grant.available_apis(),
            extra: Object::new(),
        }
    }

    /// Hashes of the parts of a prompt that do not change between runs.
    fn static_refs(&self) -> BTreeMap<String, StaticContextRef> {
        match self.resources.tools.is_empty() {
            true => BTreeMap::new(),
            false => BTreeMap::from([("tools".to_owned(), tool_block(&self.resources))]),
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
            locale: None,
            timezone: self.timezone.clone(),
            static_refs: self.static_refs(),
            metadata,
            extra: Object::new(),
        }
    }
}

/// The workspace an event belongs to.
pub fn workspace_of(event: &NewEvent) -> &str {
    event.workspace_id.as_deref().unwrap_or(DEFAULT_WORKSPACE)
}

#[cfg(test)]
mod tests;
