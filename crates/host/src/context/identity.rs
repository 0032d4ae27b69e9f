//! Who a run acts for, and where its output goes.
//!
//! Invariant: made from the stored run and event alone, so nothing that a runner says changes it. A party without an id
//! owns nothing: two such parties cannot be told apart.

use super::{Envelope, owner, text};
use crate::artifacts::Links;
use crate::grant::Grant;
use crate::ids;
use crate::settings::Threads;
use greenroom_protocol::payload::StateScope;
use greenroom_protocol::{ActorContext, AdapterContext, ArtifactRef, DeliveryContext, Object};
use greenroom_store::records::{Person, TOKEN_MARK};
use greenroom_store::session_key;
use greenroom_store::types::{NewDelivery, RunRow};
use greenroom_surfaces::{Capabilities, Content, File, OutboundMessage, action};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

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
    pub bot_id: Option<String>,
    /// The run's bot and thread (`session_key`).
    pub session: String,
    pub threads: Threads,
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
    /// Events that the client of the run's event has replaced: the run's view of the history is without them.
    pub superseded: Vec<[i64; 2]>,
    /// The names of the client's own tools: a call of one is answered by a later event.
    pub client_tools: BTreeSet<String>,
    /// The sender's trace.
    pub traceparent: Option<String>,
    /// The message, thread, conversation and actor to answer.
    pub reply_target: Object,
    /// Makes the addresses of files for the surface.
    pub(crate) links: Option<Links>,
}

impl Identity {
    pub fn new(run: &RunRow, envelope: &Envelope) -> Self {
        let event = &envelope.event;
        let actor = event.actor.as_ref();
        let subject = event.subject.as_ref();
        // State of trusted senders is kept by the id alone.
        let own = envelope.actors_of.as_deref().filter(|of| of.contains(TOKEN_MARK));
        let actor_id = actor.and_then(|actor| known(&actor.actor_type, &actor.actor_id, own));
        let subject_id =
            subject.and_then(|subject| known(&subject.subject_type, &subject.subject_id, None));
        Self {
            workspace_id: run.workspace_id.clone(),
            run_id: run.run_id.clone(),
            event_id: run.event_id.clone(),
            agent: run.agent.clone(),
            runner_id: run.runner_id.clone(),
            conversation_id: run.conversation_id.clone(),
            thread_id: event.thread_id.clone(),
            bot_id: event.bot_id.clone(),
            session: session_key(event.bot_id.as_deref(), event.thread_id.as_deref()),
            threads: Threads::Apart,
            actor_id,
            subject_id,
            surface: run.surface.clone(),
            capabilities: None,
            actor: event.actor.clone(),
            actors_of: envelope.actors_of.clone().unwrap_or_else(|| event.source.clone()),
            conversation_seq: run.conversation_seq,
            attempt: run.attempt,
            superseded: envelope.superseded.clone(),
            client_tools: client_tools(envelope.adapter.as_ref()),
            traceparent: envelope.traceparent.clone(),
            reply_target: reply_target(run, envelope),
            links: None,
        }
    }

    /// The identity with how far its grant lets it reach within its conversation.
    pub(crate) fn within(mut self, grant: &Grant) -> Self {
        self.threads = grant.threads;
        self
    }

    /// The person that the run acts for; none without an actor id.
    pub fn person(&self) -> Option<Person> {
        Some(Person {
            workspace_id: self.workspace_id.clone(),
            source: self.actors_of.clone(),
            actor: self.actor.as_ref()?.actor_id.clone()?,
        })
    }

    /// The session that the run's view of its conversation is limited to; none if it sees all of it.
    pub(crate) fn own_session(&self) -> Option<&str> {
        match self.threads {
            Threads::Apart => Some(&self.session),
            Threads::Together => None,
        }
    }

    /// The same in every run of the session: workspace, bot, binding, runner, conversation and thread (seed 003 §6).
    /// It says nothing about them to a provider that gets it.
    pub(crate) fn session_key(&self) -> Option<String> {
        let conversation = self.conversation_id.as_deref()?;
        let session = self.own_session().unwrap_or_default();
        let parts = [&self.workspace_id, session, &self.agent, &self.runner_id, conversation];
        let hash = Sha256::digest(owner(&parts).as_bytes());
        Some(ids::hex(&hash[..16]))
    }

    /// Whether something of a conversation and session is the run's own.
    pub(crate) fn is_own(&self, conversation: Option<&str>, session: &str) -> bool {
        conversation.is_some()
            && conversation == self.conversation_id.as_deref()
            && self.own_session().is_none_or(|own| own == session)
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
        let mut whose = owner(&[scope.as_str(), &self.agent, &self.runner_id, party]);
        if scope == StateScope::Conversation {
            // The empty key of a conversation without bot and thread gives the owner that earlier versions used.
            whose.push_str(self.own_session().unwrap_or_default());
        }
        Some(whose)
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
            thread_id: self.thread_id.clone(),
            bot_id: self.bot_id.clone(),
            reply_target: self.reply_target.clone(),
        };
        NewDelivery {
            delivery_id: ids::fresh("dlv"),
            surface: surface.to_owned(),
            target: owner(&[&self.workspace_id, surface, text(&self.conversation_id)]),
            sequence,
            payload: message.to_json(),
        }
    }

    /// Files for the surface, if it takes them.
    pub(crate) fn files(&self, artifacts: &[ArtifactRef]) -> Vec<File> {
        let takes_files = self.capabilities.as_ref().is_some_and(|can| can.files);
        let Some(links) = self.links.as_ref().filter(|_| takes_files) else { return Vec::new() };
        artifacts.iter().map(|artifact| links.file(&self.workspace_id, artifact)).collect()
    }

    /// What the runner learns about where its answer goes.
    pub(crate) fn delivery_context(&self) -> DeliveryContext {
        let surface = self.surface.clone().unwrap_or_else(|| "api".to_owned());
        // Without a surface, readers of the API follow the stream.
        let over_api = Capabilities { streaming: true, files: true, ..Capabilities::default() };
        let can = self.capabilities.as_ref().unwrap_or(&over_api);
        DeliveryContext {
            surface,
            reply_target: Some(self.reply_target.clone()),
            supports_streaming: can.streaming,
            supports_edit: can.actions.contains(action::MESSAGE_EDIT),
            supports_reaction: can.actions.contains(action::MESSAGE_REACT),
            max_message_size: can.text_max.map(|max| max.size() as u64),
            platform_capabilities: capabilities(can),
            extra: Object::new(),
        }
    }
}

/// The names of the tools that a client offers with its event.
pub(crate) fn client_tools(adapter: Option<&AdapterContext>) -> BTreeSet<String> {
    let tools = adapter.and_then(|adapter| adapter.extra.get("tools")).and_then(Value::as_array);
    let names = tools.into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}

/// A party of an event, within the namespace of its id; none without an id.
fn known(kind: &str, id: &Option<String>, of: Option<&str>) -> Option<String> {
    let id = id.as_deref().filter(|id| !id.is_empty())?;
    Some(owner(&[kind, id].into_iter().chain(of).collect::<Vec<_>>()))
}

fn capabilities(can: &Capabilities) -> Object {
    let mut told = Object::from_iter([
        ("streaming".to_owned(), can.streaming.into()),
        ("files".to_owned(), can.files.into()),
        ("actions".to_owned(), json!(can.actions)),
    ]);
    if let Some(max) = can.text_max {
        told.insert("text_max".to_owned(), json!({"size": max.size(), "unit": max.unit()}));
    }
    told
}

/// Where an answer belongs. A platform's own id of the message is in `data` or `metadata`; without one, it is the
/// event's.
fn reply_target(run: &RunRow, envelope: &Envelope) -> Object {
    let event = &envelope.event;
    let message_id = [&event.data, &event.metadata]
        .into_iter()
        .find_map(|given| given.get("message_id").filter(|id| id.is_string() || id.is_number()));
    let message_id = message_id.cloned().unwrap_or_else(|| run.event_id.clone().into());
    let actor_id = event.actor.as_ref().and_then(|actor| actor.actor_id.clone());
    let parts = [
        ("message_id", Some(message_id)),
        ("thread_id", event.thread_id.clone().map(Value::from)),
        ("conversation_id", run.conversation_id.clone().map(Value::from)),
        ("actor_id", actor_id.map(Value::from)),
        ("bot_id", event.bot_id.clone().map(Value::from)),
    ];
    parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
