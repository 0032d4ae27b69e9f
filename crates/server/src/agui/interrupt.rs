//! Approvals as AG-UI interrupts, and their answers.
//!
//! Invariant: one run of the host may wait through several AG-UI runs. The interrupt id contains the approval id
//! and the position where the stream ended, so nothing else is stored. Answering is idempotent.

use super::event::Interrupt;
use super::input::{ResumeEntry, ResumeStatus};
use crate::access::Caller;
use crate::response::Problem;
use crate::router::App;
use greenroom_host::{ApprovalAnswer, ApprovalQuery, GivenAnswer};
use greenroom_protocol::Object;
use greenroom_protocol::api::platform::{ApprovalStatus, ApprovalView, TOOL_INPUT};
use greenroom_store::StoreError;
use greenroom_store::commands::Decision;
use greenroom_store::reads::runs::RunFilter;
use greenroom_tools::project_cli::TOOL_NAME;
use greenroom_tools::ui::Language;
use greenroom_tools::{Risk, subject};
use serde_json::{Value, json};

/// Pending approvals of a run that are read.
const PENDING_MAX: usize = 200;
/// Runs of a thread that are read.
const RUNS_MAX: usize = 50;

/// A rejected request. Nothing was started.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// The answered run, and where its stream continues.
pub(crate) struct Resumed {
    pub(crate) run_id: String,
    pub(crate) after: i64,
}

pub(crate) async fn pending(
    app: &App,
    workspace: &str,
    run_id: &str,
) -> Result<Vec<ApprovalView>, StoreError> {
    let status = Some(ApprovalStatus::Pending);
    let query = ApprovalQuery { status, run_id: Some(run_id.to_owned()) };
    let page = app.host.approvals(workspace, query, None, PENDING_MAX).await?;
    let mut items = page.map(|page| page.items).unwrap_or_default();
    items.reverse();
    Ok(items)
}

/// Pending approvals of all runs of an agent in a thread.
pub(crate) async fn pending_in(
    app: &App,
    workspace: &str,
    (thread, agent): (&str, &str),
) -> Result<Vec<ApprovalView>, StoreError> {
    let filter = RunFilter {
        conversation_id: Some(thread.to_owned()),
        agent: Some(agent.to_owned()),
        status: Some(greenroom_protocol::RunStatus::Running),
        ..RunFilter::default()
    };
    let runs = app.host.runs(workspace, filter, None, RUNS_MAX).await?;
    let mut approvals = Vec::new();
    for run in runs.map(|page| page.items).unwrap_or_default() {
        approvals.extend(pending(app, workspace, &run.run_id).await?);
    }
    Ok(approvals)
}

/// An approval as an interrupt of a stream that ended after sequence number `after`.
pub(crate) fn from_approval(
    approval: &ApprovalView,
    (after, language): (i64, Language),
    client_id: impl Fn(&str) -> Option<String>,
) -> Interrupt {
    let named = approval.target.get("tool_call_id").and_then(Value::as_str);
    let tool_call_id = named.and_then(client_id);
    Interrupt {
        id: format!("{}.{after}", approval.approval_id),
        reason: if tool_call_id.is_some() { "tool_call" } else { "greenroom:action" },
        message: message(approval, language),
        tool_call_id,
        response_schema: response_schema(approval),
        expires_at: approval.expires_at.clone(),
        metadata: json!({"approval_id": approval.approval_id, "run_id": approval.run_id,
            "action": approval.action, "target": approval.target, "payload": approval.payload,
            "subject": approval.subject}),
    }
}

/// What an answer looks like: a question of a tool's server has values, a call may get other arguments.
fn response_schema(approval: &ApprovalView) -> Value {
    let mut schema = json!({"type": "object", "required": ["approved"],
        "properties": {"approved": {"type": "boolean"}}});
    if let Some(form) = approval.payload.get("requested_schema") {
        schema["properties"]["values"] = form.clone();
    }
    if approval.action == "tool.call" {
        schema["properties"]["editedArgs"] = json!({"type": "object"});
    }
    schema
}

/// The question: action, subject and risk; or what a tool's server asks.
fn message(approval: &ApprovalView, language: Language) -> String {
    let part =
        |object: &Object, key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    if approval.action == TOOL_INPUT {
        let server = part(&approval.target, "server").unwrap_or_default();
        let asked = part(&approval.payload, "message").unwrap_or_default();
        let url = part(&approval.payload, "url").map(|url| format!(" {url}")).unwrap_or_default();
        return match language {
            Language::English => format!("The tool server `{server}` asks: {asked}{url}"),
            Language::Chinese => format!("工具服务器 `{server}` 询问：{asked}{url}"),
        };
    }
    let method = part(&approval.payload, "module").zip(part(&approval.payload, "method"));
    let what = match (part(&approval.target, "tool_name"), method) {
        (Some(tool), Some((module, method))) if tool == TOOL_NAME => format!("{module}.{method}"),
        (Some(tool), _) => tool,
        (None, _) => approval.action.clone(),
    };
    let about = approval.subject.as_ref().map(|subject| subject::line(subject, language, None));
    let risk = part(&approval.target, "risk").and_then(|risk| Risk::parse(&risk));
    let warning = subject::warning(risk.unwrap_or(Risk::External), language);
    match language {
        Language::English => {
            let about = about.map(|about| format!(": {about}")).unwrap_or_default();
            format!("The agent wants to run `{what}`{about}. {warning}")
        }
        Language::Chinese => {
            let about = about.map(|about| format!("：{about}")).unwrap_or_default();
            format!("智能体想执行 `{what}`{about}。{warning}")
        }
    }
}

pub(crate) fn unknown(interrupt_id: &str) -> Rejection {
    reject("not_found", format!("unknown interrupt `{interrupt_id}`"))
}

/// Answers interrupts. All pending approvals of the run must be answered together.
pub(crate) async fn resume(
    app: &App,
    caller: &Caller,
    workspace: &str,
    (thread, agent): (&str, &str),
    entries: &[ResumeEntry],
) -> Result<Result<Resumed, Rejection>, Problem> {
    let approver = caller.require_approver()?.to_owned();
    let mut answers = Vec::new();
    for entry in entries {
        let unknown = || unknown(&entry.interrupt_id);
        let Some((id, after)) = parse_id(&entry.interrupt_id) else { return Ok(Err(unknown())) };
        let approval = app.host.approval(workspace, id).await?.filter(|approval| {
            let same_thread = approval.conversation_id.as_deref() == Some(thread);
            same_thread && approval.agent == agent && caller.require_agent(agent).is_ok()
        });
        let Some(approval) = approval else { return Ok(Err(unknown())) };
        match decision(entry) {
            Ok((decision, edited)) => {
                let values = entry.payload.get("values").and_then(Value::as_object).cloned();
                let given = GivenAnswer { decision, by: approver.clone(), values, edited };
                answers.push((approval, given, after, entry.status));
            }
            Err(message) => return Ok(Err(reject("invalid_argument", message))),
        }
    }
    let Some((run_id, after)) = answers.first().map(|one| (one.0.run_id.clone(), one.2)) else {
        return Ok(Err(reject("invalid_argument", "`resume` is empty".to_owned())));
    };
    if answers.iter().any(|one| one.0.run_id != run_id) {
        let message = "`resume` contains interrupts of several runs".to_owned();
        return Ok(Err(reject("invalid_argument", message)));
    }
    let waiting = pending(app, workspace, &run_id).await?;
    let is_answered = |id: &str| answers.iter().any(|(approval, ..)| approval.approval_id == id);
    if let Some(left) = waiting.iter().find(|one| !is_answered(&one.approval_id)) {
        return Ok(Err(still_pending(std::slice::from_ref(left))));
    }
    let after = answers.iter().map(|one| one.2).fold(after, i64::max);
    for (approval, given, _, status) in answers {
        let (id, nonce) = (&approval.approval_id, approval.nonce.clone());
        let answered = app.host.answer_approval(workspace, id, nonce, given).await?;
        match answered {
            ApprovalAnswer::Invalid(reason) => return Ok(Err(reject("invalid_argument", reason))),
            ApprovalAnswer::InvalidArgs(reason) => {
                return Ok(Err(reject("invalid_argument", format!("`editedArgs`: {reason}"))));
            }
            _ => {}
        }
        if let Some(message) = conflict(&answered, status) {
            return Ok(Err(reject("interrupt_settled", message.to_owned())));
        }
    }
    Ok(Ok(Resumed { run_id, after }))
}

pub(crate) fn still_pending(approvals: &[ApprovalView]) -> Rejection {
    let ids: Vec<&str> = approvals.iter().map(|one| one.approval_id.as_str()).collect();
    let message = format!("this thread has pending approvals: {}", ids.join(", "));
    reject("interrupt_pending", message)
}

fn reject(code: &'static str, message: String) -> Rejection {
    Rejection { code, message }
}

fn parse_id(interrupt_id: &str) -> Option<(&str, i64)> {
    let (approval_id, after) = interrupt_id.rsplit_once('.')?;
    Some((approval_id, crate::query::number(after)?))
}

/// Only an explicit `true` approves. `editedArgs` replaces the arguments of an approved call.
fn decision(entry: &ResumeEntry) -> Result<(Decision, Option<Object>), String> {
    if entry.status == ResumeStatus::Cancelled {
        return Ok((Decision::Deny, None));
    }
    let edited = match entry.payload.get("editedArgs") {
        None | Some(Value::Null) => None,
        Some(Value::Object(edited)) => Some(edited.clone()),
        Some(_) => return Err("`editedArgs` must be an object".to_owned()),
    };
    match entry.payload.get("approved").unwrap_or(&entry.payload) {
        Value::Bool(true) => Ok((Decision::Allow, edited)),
        Value::Bool(false) => Ok((Decision::Deny, None)),
        _ => {
            Err("`payload` of a resolved interrupt must be `{\"approved\": true or false}`"
                .to_owned())
        }
    }
}

/// Why an earlier decision contradicts this answer.
fn conflict(answered: &ApprovalAnswer, status: ResumeStatus) -> Option<&'static str> {
    match answered {
        ApprovalAnswer::Decided(_)
        | ApprovalAnswer::Invalid(_)
        | ApprovalAnswer::InvalidArgs(_) => None,
        // Cancelling is compatible with every earlier decision.
        ApprovalAnswer::Settled(_) if status == ResumeStatus::Cancelled => None,
        ApprovalAnswer::Settled(approval) => Some(match approval.status {
            ApprovalStatus::Allowed => "this action was already allowed",
            ApprovalStatus::Denied => "this action was already denied",
            ApprovalStatus::Expired => "this interrupt has expired and can only be cancelled",
            ApprovalStatus::Cancelled => "the run that requested this action is over",
            ApprovalStatus::Pending => "this interrupt could not be settled, try again",
        }),
        ApprovalAnswer::WrongNonce | ApprovalAnswer::NotFound => {
            Some("this interrupt no longer exists")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(status: ResumeStatus, payload: Value) -> ResumeEntry {
        ResumeEntry { interrupt_id: "apr_1.7".into(), status, payload }
    }

    #[test]
    fn only_an_explicit_true_approves() {
        let resolved = |payload| decision(&entry(ResumeStatus::Resolved, payload));
        assert_eq!(resolved(json!({"approved": true})), Ok((Decision::Allow, None)));
        assert_eq!(resolved(json!(true)), Ok((Decision::Allow, None)));
        assert_eq!(resolved(json!({"approved": false})), Ok((Decision::Deny, None)));
        for unclear in [json!(null), json!({}), json!("yes"), json!({"approved": "true"}), json!(1)]
        {
            assert!(resolved(unclear.clone()).is_err(), "{unclear}");
        }
        let edited = json!({"a": 1}).as_object().cloned();
        let allowed = Ok((Decision::Allow, edited));
        assert_eq!(resolved(json!({"approved": true, "editedArgs": {"a": 1}})), allowed);
        assert!(resolved(json!({"approved": true, "editedArgs": [1]})).is_err());
        assert!(resolved(json!({"editedArgs": {"a": 1}})).is_err());
        let cancelled = decision(&entry(ResumeStatus::Cancelled, json!({"approved": true})));
        assert_eq!(cancelled, Ok((Decision::Deny, None)));
    }

    #[test]
    fn an_id_contains_the_approval_and_the_position() {
        assert_eq!(parse_id("apr_1.7"), Some(("apr_1", 7)));
        assert_eq!(parse_id("a.b.0"), Some(("a.b", 0)));
        for other in ["", "apr_1", "apr_1.", "apr_1.-7", "apr_1.x"] {
            assert_eq!(parse_id(other), None, "{other}");
        }
    }
}
