//! Binds an event to its agent, and its answer to a surface.
//!
//! Invariant: a sender reaches only agents of its token; a replay delivers nothing.

use super::{AGUI_SOURCE, Refusal, Sender};
use crate::binding::{Bound, Match, by_name, resolve, unlisted_warning};
use crate::context::Envelope;
use crate::ids;
use crate::replay::REPLAY_OF;
use crate::settings::{Agent, Settings};
use greenroom_protocol::NewEvent;
use greenroom_store::commands::NewRun;
use greenroom_store::session_key;
use greenroom_store::types::NewItem;
use serde_json::{Value, json};

pub(super) fn bind<'a>(
    settings: &'a Settings,
    sender: &Sender,
    event: &NewEvent,
    workspace: &str,
) -> Result<Option<(&'a Agent, Bound)>, Refusal> {
    let may_reach = |agent: &Agent| sender.may_reach(&agent.name);
    // An agent that the token may not reach looks like one that does not exist.
    if let Some(named) = event.agent.as_ref().filter(|named| !sender.may_reach(named)) {
        return Err(Refusal::UnknownAgent(named.clone()));
    }
    let mut found = resolve(&settings.agents, event, workspace);
    if matches!(&found, Match::One(agent, _) if !may_reach(agent))
        && let Some(named) =
            settings.agents.iter().find(|agent| event.agent.as_ref() == Some(&agent.name))
    {
        // A slash command does not lead to an agent that the token may not reach.
        found = by_name(named, event);
    }
    match found {
        Match::One(agent, bound) if may_reach(agent) => Ok(Some((agent, bound))),
        Match::One(agent, _) => Err(Refusal::NotAllowed(agent.name.clone())),
        Match::None => Ok(None),
        Match::Unknown => Err(Refusal::UnknownAgent(event.agent.clone().unwrap_or_default())),
        Match::Tie(names) => Err(Refusal::Tie(names.into_iter().map(str::to_owned).collect())),
    }
}

/// The surface of the answer: from the event, else from the agent.
pub(crate) fn surface(
    settings: &Settings,
    sender: Option<&Sender>,
    event: &NewEvent,
    agent: Option<&Agent>,
) -> Result<Option<String>, Refusal> {
    if is_replay(event) {
        return Ok(None);
    }
    let named = event.delivery.as_ref().map(|delivery| delivery.surface.as_str());
    match named {
        // The API itself: the sender reads the results of the run.
        Some("api") => Ok(None),
        Some(name)
            if settings.surfaces.contains_key(name)
                && sender.is_none_or(|sender| may_name(sender, settings, name)) =>
        {
            Ok(Some(name.to_owned()))
        }
        Some(name) => {
            Err(Refusal::Invalid(format!("`delivery.surface`: there is no surface `{name}`")))
        }
        None => Ok(agent.and_then(|agent| agent.delivery.clone())),
    }
}

/// A limited sender names the surfaces of its agents; any other does not exist for it.
fn may_name(sender: &Sender, settings: &Settings, surface: &str) -> bool {
    let delivers = |agent: &Agent| agent.delivery.as_deref() == Some(surface);
    let mut own = settings.agents.iter().filter(|agent| sender.may_reach(&agent.name));
    sender.limit.is_none() || own.any(delivers)
}

pub(super) fn is_replay(event: &NewEvent) -> bool {
    event.metadata.contains_key(REPLAY_OF)
}

/// What the sender should know about an event that is accepted.
pub(super) fn warnings(envelope: &Envelope) -> Vec<String> {
    let is_unlisted = envelope.bound.as_ref().is_some_and(|bound| bound.unlisted);
    let agent = envelope.event.agent.as_ref().filter(|_| is_unlisted);
    agent.map(|agent| unlisted_warning(agent, &envelope.event.event_type)).into_iter().collect()
}

/// The fields that identify an event and say where it belongs.
pub(super) fn ids(event: &NewEvent) -> [Option<&str>; 10] {
    [
        Some(&event.event_type),
        Some(&event.source),
        event.event_id.as_deref(),
        event.bot_id.as_deref(),
        event.workspace_id.as_deref(),
        event.conversation_id.as_deref(),
        event.thread_id.as_deref(),
        event.agent.as_deref(),
        event.actor.as_ref().and_then(|actor| actor.actor_id.as_deref()),
        event.subject.as_ref().and_then(|subject| subject.subject_id.as_deref()),
    ]
}

/// The key in the metadata of an item that holds its client's own id of the message.
pub(super) const CLIENT_MESSAGE: &str = "client_message_id";

/// The id that the client of AG-UI gave its message; null for an event of such a client that is no message.
fn client_message_id(event: &NewEvent) -> Option<&Value> {
    (event.source == AGUI_SOURCE).then(|| event.metadata.get("message_id").unwrap_or(&Value::Null))
}

/// The event as the transcript shows it.
pub(super) fn item(event: &NewEvent, event_id: &str, run: Option<&NewRun>) -> NewItem {
    let is_message = event.event_type.starts_with("message.");
    let mut metadata = json!({"event_type": event.event_type});
    if let Some(message_id) = client_message_id(event) {
        metadata[CLIENT_MESSAGE] = message_id.clone();
    }
    let body = json!({
        "actor": event.actor,
        "segments": event.input.contents,
        "artifacts": event.input.attachments,
        "metadata": metadata,
    });
    NewItem {
        item_id: ids::fresh("item"),
        thread_id: event.thread_id.clone(),
        session: session_key(event.bot_id.as_deref(), event.thread_id.as_deref()),
        role: if is_message { "user" } else { "event" },
        event_id: Some(event_id.to_owned()),
        run_id: run.map(|run| run.run_id.clone()),
        actor_id: event.actor.as_ref().and_then(|actor| actor.actor_id.clone()),
        text: event.input.text.as_ref().map(|text| text.replace('\0', "\u{fffd}")),
        body: body.to_string(),
    }
}
