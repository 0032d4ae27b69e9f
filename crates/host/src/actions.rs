//! Actions on the surface that a run answers to: each becomes a delivery or is refused.
//!
//! Invariant: no IO. An action needs the frozen grant and a surface that supports it; it reaches only the run's
//! own surface and conversation, whatever its target is.

use crate::context::Identity;
use crate::ids;
use crate::settings::Approval;
use greenroom_protocol::api::platform::RequestActionParams;
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use greenroom_store::types::{ApprovalKind, HostEvent, NewApproval, NewDelivery};
use greenroom_surfaces::action::{MESSAGE_EDIT, MESSAGE_REACT, MESSAGE_SEND};
use greenroom_surfaces::{Capabilities, Content, TextMax};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Longest id of a message, and longest reaction.
const LABEL_BYTES_MAX: usize = 512;
/// Longest payload, as JSON: it stays in memory and in lists until it is answered.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// Which actions a run may request, and how long an approval may stay open.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActionRights {
    pub(crate) granted: BTreeMap<String, Approval>,
    pub(crate) expires_ms: i64,
    /// Pending approvals that the run may have.
    pub(crate) pending_max: i64,
}

/// Why an action is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("action `{0}` is not granted to this run")]
    NotGranted(String),
    #[error("the surface of this run does not support `{0}`")]
    Unsupported(String),
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("a message of this surface has at most {0}")]
    TooLong(TextMax),
    #[error("`payload` has at most {PAYLOAD_BYTES_MAX} bytes: send an artifact instead")]
    TooLarge,
}

impl Refused {
    /// The answer to the call that requested it.
    pub(crate) fn to_error(&self) -> AgentAPIError {
        let error = |code| AgentAPIError::new(code, self.to_string());
        match self {
            Refused::NotGranted(_) => {
                error(ErrorCode::Unauthorized).detail("reason", self.reason())
            }
            Refused::NotFound(_) => error(ErrorCode::NotFound),
            Refused::TooLong(_) | Refused::TooLarge => error(ErrorCode::PayloadTooLarge),
            Refused::Unsupported(_) | Refused::Invalid(_) => {
                error(ErrorCode::InvalidArgument).detail("reason", self.reason())
            }
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Refused::NotGranted(_) => "not_granted",
            Refused::Unsupported(_) => "unsupported",
            Refused::NotFound(_) => "not_found",
            Refused::Invalid(_) => "invalid",
            Refused::TooLong(_) => "too_long",
            Refused::TooLarge => "too_large",
        }
    }
}

/// An action that may be carried out, at once or after an approval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    pub(crate) approval: Approval,
    pub(crate) delivery: NewDelivery,
    action: String,
    target: Value,
    payload: Value,
}

/// Decides about an action; `sequence` is the number of the result that requested it, 0 for a call.
pub(crate) fn plan(
    request: RequestActionParams,
    sequence: i64,
    granted: &BTreeMap<String, Approval>,
    identity: &Identity,
) -> Result<Planned, Refused> {
    let RequestActionParams { action, target, payload } = request;
    let approval = granted.get(&action).copied().filter(|approval| *approval != Approval::Never);
    let Some(approval) = approval else { return Err(Refused::NotGranted(action)) };
    let surface = identity.surface.as_ref();
    let capable = |can: &Capabilities| can.actions.contains(&action);
    let Some(surface) = surface.filter(|_| identity.capabilities.as_ref().is_some_and(capable))
    else {
        return Err(Refused::Unsupported(action));
    };
    if json!(payload).to_string().len() > PAYLOAD_BYTES_MAX {
        return Err(Refused::TooLarge);
    }
    let target = own_target(&target, surface, identity)?;
    check(&action, &target, &payload, identity)?;
    let content = Content::Action {
        action: action.clone(),
        target: target.clone(),
        payload: payload.clone(),
    };
    let delivery = identity.delivery(surface, sequence, content);
    Ok(Planned { approval, delivery, action, target: target.into(), payload: payload.into() })
}

impl Planned {
    /// The approval to request first.
    pub(crate) fn question(
        &self,
        kind: ApprovalKind,
        identity: &Identity,
        expires_at: i64,
    ) -> NewApproval {
        NewApproval {
            approval_id: ids::fresh("apr"),
            nonce: Uuid::new_v4().simple().to_string(),
            kind,
            agent: identity.agent.clone(),
            runner_id: identity.runner_id.clone(),
            actor: identity.actor.as_ref().and_then(|actor| serde_json::to_string(actor).ok()),
            action: self.action.clone(),
            target: self.target.to_string(),
            payload: self.payload.to_string(),
            delivery: Some(self.delivery.clone()),
            expires_at,
        }
    }

    /// The event log entry of an action that needs no approval.
    pub(crate) fn log(&self, identity: &Identity) -> HostEvent {
        let body = json!({"run_id": identity.run_id, "action": self.action,
            "target": self.target, "payload": self.payload, "executed": true,
            "delivery_id": self.delivery.delivery_id});
        HostEvent {
            event_id: format!("{}.requested", self.delivery.delivery_id),
            event_type: "action.requested".to_owned(),
            body: body.to_string(),
        }
    }
}

/// The target with the run's own surface and conversation filled in. Others are reported as not found.
fn own_target(target: &Object, surface: &str, identity: &Identity) -> Result<Object, Refused> {
    let mut own = Object::new();
    own.insert("surface".to_owned(), surface.into());
    let own_ids =
        [("conversation_id", &identity.conversation_id), ("thread_id", &identity.thread_id)];
    for (name, value) in own_ids {
        if let Some(value) = value {
            own.insert(name.to_owned(), value.as_str().into());
        }
    }
    for (name, value) in target {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            ("message_id", Value::String(id)) if is_label(id) => {
                own.insert(name.clone(), value.clone());
            }
            ("surface", value) if own.get(name) != Some(value) => {
                return Err(Refused::NotFound("surface"));
            }
            ("conversation_id", value) if own.get(name) != Some(value) => {
                return Err(Refused::NotFound("conversation"));
            }
            ("thread_id", value) if own.get(name) != Some(value) => {
                return Err(Refused::NotFound("thread"));
            }
            ("surface" | "conversation_id" | "thread_id", _) => {}
            ("message_id", _) => {
                return Err(Refused::Invalid("`target.message_id` must be a short text".into()));
            }
            _ => {
                let known = "surface, conversation_id, thread_id and message_id";
                return Err(Refused::Invalid(format!("a `target` has {known} only")));
            }
        }
    }
    Ok(own)
}

/// Checks what an action requires.
fn check(
    action: &str,
    target: &Object,
    payload: &Object,
    identity: &Identity,
) -> Result<(), Refused> {
    let names_message = target.contains_key("message_id");
    if action != MESSAGE_SEND && !names_message {
        return Err(Refused::Invalid(format!("`{action}` needs `target.message_id`")));
    }
    let has_text = matches!(action, MESSAGE_SEND | MESSAGE_EDIT);
    if has_text && payload.is_empty() {
        return Err(Refused::Invalid(format!("`{action}` needs a `payload`, such as a `text`")));
    }
    let reaction = ["reaction", "emoji"].iter().find_map(|name| payload.get(*name)?.as_str());
    if action == MESSAGE_REACT && !reaction.is_some_and(is_label) {
        return Err(Refused::Invalid("`message.react` needs `payload.reaction`".to_owned()));
    }
    let text = payload.get("text").and_then(Value::as_str).unwrap_or_default();
    match identity.capabilities.as_ref().and_then(|can| can.text_max) {
        Some(max) if has_text && !max.fits(text) => Err(Refused::TooLong(max)),
        _ => Ok(()),
    }
}

fn is_label(text: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests;
