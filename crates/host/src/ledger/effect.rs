//! What results change beside the ledger: transcript, state, deliveries, the event log.
//!
//! Invariant: changes stay within the grant and the run's own event, and are part of the commit of the result
//! that caused them.

use super::Terms;
use crate::actions::{self, ActionRights};
use crate::context::Identity;
use crate::ids;
use crate::interactions;
use crate::settings::Approval;
use greenroom_protocol::api::platform::RequestActionParams;
use greenroom_protocol::payload::{
    ActionRequested, ArtifactCreated, Message, Payload, StateScope, ToolCallCompleted,
    ToolCallStarted,
};
use greenroom_protocol::result::kind;
use greenroom_protocol::{ArtifactRef, Object, Role, RunError};
use greenroom_store::types::{
    ApprovalKind, HostEvent, NewApproval, NewDelivery, NewItem, ResultRecord, StateWrite,
};
use greenroom_surfaces::{Content, MessagePart};
use serde_json::json;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) items: Vec<NewItem>,
    pub(crate) state: Vec<StateWrite>,
    pub(crate) deliveries: Vec<NewDelivery>,
    pub(crate) approvals: Vec<NewApproval>,
    pub(crate) log: Vec<HostEvent>,
    /// A second attempt would repeat something.
    pub(crate) effects: bool,
    /// Why actions were refused, for the diagnostics of the run.
    pub(crate) refused: Vec<String>,
}

impl Changes {
    pub(super) fn apply(
        &mut self,
        payload: Payload,
        record: &ResultRecord,
        identity: &Identity,
        terms: &Terms,
    ) {
        match payload {
            Payload::MessageCompleted(completed) => {
                self.message(&completed.message, record.sequence, identity);
                match interactions::asked_by(&completed.message, identity, record.at_ms) {
                    Some(Ok(question)) => self.log.push(question),
                    Some(Err(problem)) => self.refused.push(problem),
                    None => {}
                }
            }
            Payload::StateUpdated(update) => {
                if let Some(owner) = identity.state_owner(update.scope) {
                    let value = (!update.value.is_null()).then(|| update.value.to_string());
                    self.state.push(StateWrite {
                        owner,
                        name: update.key,
                        value,
                        owner_bytes_max: terms.state.owner_bytes_max,
                    });
                }
            }
            Payload::ToolCallStarted(call) => {
                self.effects = true;
                terms.tool_calls.begins(&call.tool_call_id);
            }
            Payload::ToolCallCompleted(call) => {
                // The host records the calls that it carries out itself.
                if terms.tool_calls.report(&call.tool_call_id) {
                    self.tool_call(&call, identity);
                }
            }
            Payload::ActionRequested(asked) => {
                self.action(asked, record, identity, &terms.actions);
            }
            Payload::ArtifactCreated(artifact) => {
                let body = json!({"run_id": identity.run_id, "artifact_id": artifact.artifact_id,
                    "name": artifact.name, "mime_type": artifact.mime_type,
                    "size_bytes": artifact.size_bytes, "sha256": artifact.sha256});
                self.host_event("artifact.created", record, identity, &body);
                self.file(artifact, record.sequence, identity);
            }
            Payload::MessageDelta(_)
            | Payload::RunCompleted(_)
            | Payload::RunFailed(_)
            | Payload::Unknown => {}
        }
    }

    /// A complete message: into the transcript and the outbox.
    pub(super) fn message(&mut self, message: &Message, sequence: i64, identity: &Identity) {
        self.effects = true;
        let text = message.content.text();
        let media: Vec<_> = message.media().collect();
        let segments = match &message.segments {
            Some(segments) => json!(segments),
            None if media.is_empty() => json!([]),
            None => json!(message.content),
        };
        let mut metadata = message.metadata.clone().unwrap_or_default();
        if let Some(id) = &message.message_id {
            metadata.insert("message_id".to_owned(), id.clone().into());
        }
        let artifacts: Vec<ArtifactRef> = media.iter().filter_map(|part| part.artifact()).collect();
        let body = json!({"segments": segments, "artifacts": artifacts, "metadata": metadata});
        self.items.push(NewItem {
            item_id: ids::fresh("item"),
            thread_id: identity.thread_id.clone(),
            session: identity.session.clone(),
            role: message.role.as_str(),
            event_id: Some(identity.event_id.clone()),
            run_id: Some(identity.run_id.clone()),
            actor_id: None,
            text: Some(text.replace('\0', "\u{fffd}")),
            body: body.to_string(),
        });
        let Some(surface) = &identity.surface else { return };
        // Such a message only records something for later runs.
        if text.is_empty() && media.is_empty() && message.segments.is_none() {
            return;
        }
        let text_max = identity.capabilities.as_ref().and_then(|can| can.text_max);
        let parts = text_max.map_or_else(|| vec![text.as_str()], |max| max.split(&text));
        for (index, part) in parts.iter().enumerate() {
            let message = MessagePart {
                role: message.role,
                content: (*part).to_owned(),
                segments: if index == 0 { segments.clone() } else { json!([]) },
                metadata: message.metadata.clone(),
                files: if index == 0 { identity.files(&artifacts) } else { Vec::new() },
            };
            let content = Content::Message { message, part: index + 1, parts: parts.len() };
            self.deliveries.push(identity.delivery(surface, sequence, content));
        }
    }

    /// A file that the run made: into the transcript and the outbox.
    fn file(&mut self, created: ArtifactCreated, sequence: i64, identity: &Identity) {
        let Some(artifact_id) = created.artifact_id else { return };
        self.effects = true;
        let artifact = ArtifactRef {
            artifact_id,
            name: created.name,
            mime_type: created.mime_type,
            size_bytes: created.size_bytes,
            sha256: created.sha256,
            metadata: Object::new(),
            extra: Object::new(),
        };
        let body = json!({"segments": [], "artifacts": [artifact],
            "metadata": {"result_type": kind::ARTIFACT_CREATED}});
        self.items.push(NewItem {
            item_id: ids::fresh("item"),
            thread_id: identity.thread_id.clone(),
            session: identity.session.clone(),
            role: Role::Assistant.as_str(),
            event_id: Some(identity.event_id.clone()),
            run_id: Some(identity.run_id.clone()),
            actor_id: None,
            text: None,
            body: body.to_string(),
        });
        let Some(surface) = &identity.surface else { return };
        for artifact in identity.files(&[artifact]) {
            let content = Content::File { artifact };
            self.deliveries.push(identity.delivery(surface, sequence, content));
        }
    }

    /// An action: into the outbox, asked about first, or only recorded because it is refused.
    fn action(
        &mut self,
        asked: ActionRequested,
        record: &ResultRecord,
        identity: &Identity,
        actions: &ActionRights,
    ) {
        self.effects = true;
        let mut body = json!({"run_id": identity.run_id, "action": asked.action,
            "target": asked.target, "payload": asked.payload, "executed": false});
        let asked = RequestActionParams {
            action: asked.action,
            target: asked.target.unwrap_or_default(),
            payload: asked.payload.unwrap_or_default(),
        };
        match actions::plan(asked, record.sequence, &actions.granted, identity) {
            Ok(planned) if planned.approval == Approval::Always => {
                body["executed"] = true.into();
                body["delivery_id"] = planned.delivery.delivery_id.as_str().into();
                self.deliveries.push(planned.delivery);
            }
            Ok(planned) => {
                let expires_at = record.at_ms + actions.expires_ms;
                let question = planned.question(ApprovalKind::Result, identity, expires_at);
                body["approval_id"] = question.approval_id.as_str().into();
                self.approvals.push(question);
            }
            Err(refused) => {
                body["reason"] = refused.reason().into();
                body["message"] = refused.to_string().into();
                self.refused.push(refused.to_string());
            }
        }
        self.host_event("action.requested", record, identity, &body);
    }

    /// A failed run: into the event log and the outbox.
    pub(super) fn failed(&mut self, error: &RunError, record: &ResultRecord, identity: &Identity) {
        let body = json!({"run_id": identity.run_id, "agent": identity.agent, "error": error});
        self.host_event("run.failed", record, identity, &body);
        if let Some(surface) = &identity.surface {
            self.effects = true;
            let content = Content::Failure { error: error.clone() };
            self.deliveries.push(identity.delivery(surface, record.sequence, content));
        }
    }

    /// A call of a tool of the client, without its result: a later event brings it.
    pub(super) fn pending_call(&mut self, call: &ToolCallStarted, identity: &Identity) {
        self.effects = true;
        let output = json!({"tool_name": call.tool_name, "tool_call_id": call.tool_call_id,
            "tool_call_args": call.parameters, "status": "pending"});
        let metadata = json!({"tool_call_id": call.tool_call_id, "tool_name": call.tool_name,
            "tool_agent_output": output});
        let body = json!({"segments": [], "artifacts": [], "metadata": metadata});
        self.items.push(NewItem {
            item_id: ids::fresh("item"),
            thread_id: identity.thread_id.clone(),
            session: identity.session.clone(),
            role: "tool",
            event_id: Some(identity.event_id.clone()),
            run_id: Some(identity.run_id.clone()),
            actor_id: None,
            text: None,
            body: body.to_string(),
        });
    }

    fn tool_call(&mut self, call: &ToolCallCompleted, identity: &Identity) {
        self.effects = true;
        let failed = !call.error.is_null();
        let text = match &call.result {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null if failed => {
                json!({"status": "failure", "error": call.error}).to_string()
            }
            other => other.to_string(),
        };
        let status = if failed { "failure" } else { "success" };
        let output = json!({"tool_name": call.tool_name, "tool_call_id": call.tool_call_id,
            "status": status, "result": call.result, "error": call.error});
        let metadata = json!({"tool_call_id": call.tool_call_id, "tool_name": call.tool_name,
            "error": call.error, "tool_agent_output": output});
        let body = json!({"segments": [], "artifacts": [], "metadata": metadata});
        self.items.push(NewItem {
            item_id: ids::fresh("item"),
            thread_id: identity.thread_id.clone(),
            session: identity.session.clone(),
            role: "tool",
            event_id: Some(identity.event_id.clone()),
            run_id: Some(identity.run_id.clone()),
            actor_id: None,
            text: Some(text.replace('\0', "\u{fffd}")),
            body: body.to_string(),
        });
        let body = json!({"run_id": identity.run_id, "tool_call_id": call.tool_call_id,
            "tool_name": call.tool_name, "error": call.error});
        self.log.push(HostEvent {
            event_id: ids::fresh("evt"),
            event_type: "tool.call.completed".to_owned(),
            body: body.to_string(),
        });
    }

    fn host_event(
        &mut self,
        event_type: &str,
        record: &ResultRecord,
        identity: &Identity,
        body: &serde_json::Value,
    ) {
        self.log.push(HostEvent {
            event_id: format!("{}.{}", identity.run_id, record.sequence),
            event_type: event_type.to_owned(),
            body: body.to_string(),
        });
    }
}

/// Which state a run may write, and how much.
#[derive(Debug, Clone, Default)]
pub(crate) struct StateRights {
    pub(crate) scopes: BTreeSet<StateScope>,
    pub(crate) value_bytes_max: usize,
    /// Limit for all state of one owner.
    pub(crate) owner_bytes_max: Option<i64>,
}

/// A runner speaks as the assistant or as a tool, never as a user or the system.
pub(super) fn check_role(result_kind: &str, role: Role) -> Result<(), String> {
    match role {
        Role::Assistant | Role::Tool => Ok(()),
        Role::User | Role::System => {
            Err(format!("`{result_kind}`: a runner may not speak as `{}`", role.as_str()))
        }
    }
}

/// Whether the payload is within the run's rights.
pub(super) fn check(
    payload: &Payload,
    identity: &Identity,
    state: &StateRights,
) -> Result<(), String> {
    let update = match payload {
        Payload::StateUpdated(update) => update,
        Payload::MessageCompleted(completed) => {
            return check_role(kind::MESSAGE_COMPLETED, completed.message.role);
        }
        _ => return Ok(()),
    };
    let scope = update.scope.as_str();
    if !state.scopes.contains(&update.scope) {
        return Err(format!("state of scope `{scope}` is not granted to this run"));
    }
    if identity.state_owner(update.scope).is_none() {
        return Err(format!("this event has no {scope}, so there is no state of it"));
    }
    let (bytes, bytes_max) = (update.value.to_string().len(), state.value_bytes_max);
    if bytes > bytes_max {
        return Err(format!(
            "a state value of {bytes} bytes is larger than the {bytes_max} allowed"
        ));
    }
    Ok(())
}
