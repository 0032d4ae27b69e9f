//! `harness.permission`: the host decides what an external harness may do with its own tools.
//!
//! Invariant: the frozen grant decides by kind; a kind that is not listed is refused. A question is committed as an
//! approval before the call waits for its answer, and no answer in time is a refusal.

use super::asking::{Decided, ask};
use super::call::{Answer, Call, answer, refuse, stale};
use crate::approvals::{SUBJECT, expires_ms};
use crate::ids::{self, now_ms};
use crate::settings::Approval;
use greenroom_protocol::api::harness::{
    HarnessDecision, HarnessPermission, HarnessPermissionParams, HarnessReason,
};
use greenroom_protocol::api::platform::{ApprovalStatus, ApprovalSubject, SubjectField};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::commands::Wanted;
use greenroom_store::types::{ApprovalKind, NewApproval};
use serde_json::{Value, json};
use uuid::Uuid;

/// Largest question: it stays in memory and in lists until it is answered.
const QUESTION_BYTES_MAX: usize = 256 * 1024;
/// Longest text of one field of a question.
const FIELD_BYTES_MAX: usize = 16 * 1024;

pub(super) async fn permission(call: &mut Call<'_>) -> Answer {
    let params: HarnessPermissionParams = call.params()?;
    let kind = params.kind;
    call.about(Some(kind.as_str()), Some("harness".into()));
    let policy = call.rights.grant.harness.get(&kind).copied().unwrap_or(Approval::Never);
    let by_grant =
        |decision| HarnessPermission { decision, reason: HarnessReason::Grant, approval_id: None };
    answer(&match policy {
        Approval::Always => by_grant(HarnessDecision::Allow),
        Approval::Never => {
            call.set_refusal(ErrorCode::Unauthorized);
            by_grant(HarnessDecision::Deny)
        }
        Approval::Ask => asked(call, params).await?,
    })
}

/// Asks a person.
async fn asked(
    call: &mut Call<'_>,
    params: HarnessPermissionParams,
) -> Result<HarnessPermission, AgentAPIError> {
    let bytes = call.params.get().len();
    if bytes > QUESTION_BYTES_MAX {
        let message = format!("a question has at most {QUESTION_BYTES_MAX} bytes, not {bytes}");
        return Err(refuse(ErrorCode::PayloadTooLarge, message));
    }
    let question = question(call, &params);
    let call_id = question.approval_id.clone();
    let wanted = Wanted::Ask(Box::new(question));
    match ask(call, wanted, &call_id).await? {
        Decided::Allowed { approval_id, .. } => Ok(HarnessPermission {
            decision: HarnessDecision::Allow,
            reason: HarnessReason::Answered,
            approval_id: Some(approval_id),
        }),
        Decided::Refused(error) => {
            call.set_refusal(ErrorCode::Unauthorized);
            let is_expired = error.details.get("reason").and_then(Value::as_str)
                == Some(ApprovalStatus::Expired.as_str());
            Ok(HarnessPermission {
                decision: HarnessDecision::Deny,
                reason: if is_expired { HarnessReason::Expired } else { HarnessReason::Answered },
                approval_id: Some(call_id),
            })
        }
        Decided::NotAsked(error) => Err(error),
        Decided::Earlier(_) => Err(stale()),
    }
}

fn question(call: &Call<'_>, params: &HarnessPermissionParams) -> NewApproval {
    let identity = &call.rights.identity;
    let mut target = json!({"kind": params.kind, "title": params.title,
        "tool_call_id": params.tool_call_id});
    target[SUBJECT] = json!(subject(params));
    call.shared.redactor.value(&mut target);
    NewApproval {
        approval_id: ids::fresh("apr"),
        nonce: Uuid::new_v4().simple().to_string(),
        kind: ApprovalKind::Call,
        agent: identity.agent.clone(),
        runner_id: identity.runner_id.clone(),
        actor: identity.actor.as_ref().and_then(|actor| serde_json::to_string(actor).ok()),
        action: format!("harness.{}", params.kind.as_str()),
        target: target.to_string(),
        payload: Value::Object(params.input.clone()).to_string(),
        delivery: None,
        expires_at: now_ms() + expires_ms(call.settings),
    }
}

/// What a person sees: the command, the paths, and each file before and after.
fn subject(params: &HarnessPermissionParams) -> ApprovalSubject {
    let field = |name: &str, value: &str, before: Option<&str>| SubjectField {
        name: name.to_owned(),
        value: cut(value),
        before: before.map(cut),
    };
    let command = params.command.as_deref().map(|command| field("command", command, None));
    let is_changed = |path: &&String| params.changes.iter().any(|change| change.path == **path);
    let paths: Vec<&str> =
        params.paths.iter().filter(|path| !is_changed(path)).map(String::as_str).collect();
    let paths = (!paths.is_empty()).then(|| field("path", &paths.join("\n"), None));
    let changes = params
        .changes
        .iter()
        .map(|change| field(&change.path, &change.new_text, change.old_text.as_deref()));
    ApprovalSubject {
        records: Vec::new(),
        fields: command.into_iter().chain(paths).chain(changes).collect(),
        left_out: 0,
    }
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    if text.len() <= FIELD_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=FIELD_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n… {} bytes more", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_protocol::api::harness::{HarnessFileChange, HarnessToolKind};

    #[test]
    fn a_question_shows_the_command_the_paths_and_each_change_once() {
        let params = HarnessPermissionParams {
            kind: HarnessToolKind::Edit,
            title: "Edit".to_owned(),
            command: Some("ls".to_owned()),
            paths: vec!["/a".to_owned(), "/b".to_owned()],
            changes: vec![HarnessFileChange {
                path: "/b".to_owned(),
                old_text: Some("1".to_owned()),
                new_text: "2".to_owned(),
            }],
            ..HarnessPermissionParams::default()
        };
        let expected = json!([{"name": "command", "value": "ls"}, {"name": "path", "value": "/a"},
            {"name": "/b", "value": "2", "before": "1"}]);
        assert_eq!(json!(subject(&params).fields), expected);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "é".repeat(FIELD_BYTES_MAX);
        let short = cut(&text);
        assert!(short.ends_with("bytes more") && short.starts_with('é'));
        assert_eq!(short.matches('é').count(), FIELD_BYTES_MAX / 2);
    }
}
