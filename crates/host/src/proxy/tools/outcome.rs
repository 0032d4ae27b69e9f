//! The outcome of a tool call: canonical form, stored bytes, commit, answer (seed 004 §6 to §9).
//!
//! Invariant: `result` is the truth, `content` its complete JSON text; what users see is derived from it on
//! reading, and is never shown to the model.

use super::carry_out::{Work, item_id};
use crate::artifacts::{ArtifactError, Kept, Owner, owner_of};
use crate::follow_up::FollowUp;
use crate::host::Shared;
use crate::ids::now_ms;
use crate::proxy::call::{failed, refuse, stale};
use greenroom_protocol::api::platform::{ApprovalStatus, TOOL_INPUT};
use greenroom_protocol::api::tools::{ToolAuthority, ToolCallResult};
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use greenroom_store::commands::{CallStart, EndToolCall, Ended};
use greenroom_store::reads::approvals::ApprovalFilter;
use greenroom_store::reads::tools::OpenToolCall;
use greenroom_store::types::{HostEvent, NewItem};
use greenroom_store::{StoreError, reads};
use greenroom_tools::{Attachment, Status, ToolAgentOutput, ToolFailure, ToolOutput, post};
use serde_json::{Value, json};

/// Length limit of an error that is too long.
const ERROR_BYTES_SHOWN: usize = 2048;
/// Approvals of one run that are searched.
const QUESTIONS_MAX: i64 = 1000;
/// The code of a call that the grant or an approver did not allow.
const DENIED: &str = "DENIED";

/// Commits the outcome, then returns it.
pub(super) async fn settle(
    mut work: Work,
    start: CallStart,
    output: ToolOutput,
) -> Result<ToolCallResult, AgentAPIError> {
    let mut kept = Vec::new();
    let output = match keep_bytes(&work, output, &mut kept).await {
        Ok(output) => output,
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the bytes of a tool are lost"
            );
            let message = "the tool was called, but what it gave could not be kept";
            ToolOutput::failure(ToolFailure::new("RUNTIME_ERROR", message))
        }
    };
    let output = canonical(&work, output);
    let command = EndToolCall {
        fence: work.fence.clone(),
        start,
        tool_call_id: work.tool_call_id.clone(),
        tool: work.entry.tool.name.clone(),
        risk: work.risk.as_str(),
        args: Value::Object(work.args.clone()).to_string(),
        output: serde_json::to_string(&output).unwrap_or_default(),
        item: item(
            &output,
            Position {
                event_id: &work.identity.event_id,
                run_id: &work.identity.run_id,
                thread_id: work.identity.thread_id.clone(),
                authority: work.authority,
            },
        ),
        log: work.log("completed", said_last(&work, &output)),
        artifacts: kept.iter().map(|kept| kept.row.clone()).collect(),
        now_ms: now_ms(),
    };
    let ended = work.shared.store.commit(command).await.map_err(|error| failed(&error))?;
    work.shared.follow_up(vec![FollowUp::Index]).await;
    match ended {
        Ended::Recorded => {
            work.entered.recorded();
            answer(&output)
        }
        Ended::RecordedBefore(output) => {
            work.entered.recorded();
            told_before(&output)
        }
        Ended::OtherCall => Err(repeated_id()),
        Ended::Stale => Err(stale()),
    }
}

/// The outcome of the call, with its last progress.
fn said_last(work: &Work, output: &ToolAgentOutput) -> Value {
    let mut said = json!({"status": output.status, "error": output.error});
    if let Some(progress) = work.progress.last(&work.shared) {
        said["progress"] = progress;
    }
    said
}

/// Redacts secrets and post-processes, once.
fn canonical(work: &Work, mut output: ToolOutput) -> ToolAgentOutput {
    let redactor = &work.shared.redactor;
    redactor.value(&mut output.result);
    if let Some(error) = &mut output.error {
        error.code = redactor.text(&error.code).into_owned();
        error.message = redactor.text(&error.message).into_owned();
        error.details.values_mut().for_each(|detail| redactor.value(detail));
    }
    post::finish(&work.entry.tool.name, &work.tool_call_id, &work.args, output)
}

/// Attachments and results that are too large become artifacts of the run.
async fn keep_bytes(
    work: &Work,
    mut output: ToolOutput,
    kept: &mut Vec<Kept>,
) -> Result<ToolOutput, ArtifactError> {
    let owner = owner_of(&work.identity);
    let mut references = Vec::new();
    for Attachment { name, mime_type, bytes } in std::mem::take(&mut output.attachments) {
        let artifact = work.shared.keep_attachment(bytes, name, mime_type, owner.clone()).await?;
        references.push(crate::artifacts::reference(&artifact));
        kept.push(artifact);
    }
    put_references(&mut output.result, &references);
    if let Some(error) = &mut output.error {
        error.details.values_mut().for_each(|detail| put_references(detail, &references));
    }
    let text = output.result.to_string();
    if text.len() > work.result_bytes_max {
        let mut result = output.result;
        work.shared.redactor.value(&mut result);
        let (instead, artifact) = work.shared.keep_large(&result, owner.clone()).await?;
        kept.push(artifact);
        output.result = instead;
    }
    if let Some(error) = output.error.take() {
        output.error = Some(keep_error(work, error, owner, kept).await?);
    }
    Ok(output)
}

/// Errors may be of any length as well.
async fn keep_error(
    work: &Work,
    error: ToolFailure,
    owner: Owner,
    kept: &mut Vec<Kept>,
) -> Result<ToolFailure, ArtifactError> {
    let mut whole = json!(error);
    if whole.to_string().len() <= work.result_bytes_max {
        return Ok(error);
    }
    work.shared.redactor.value(&mut whole);
    let (instead, artifact) = work.shared.keep_large(&whole, owner).await?;
    kept.push(artifact);
    let short = |text: &str| text[..text.floor_char_boundary(ERROR_BYTES_SHOWN)].to_owned();
    let failure = ToolFailure::new(&short(&error.code), short(&error.message));
    Ok(failure.detail("artifact", instead["artifact"].clone()).detail("truncated", true))
}

/// `{"attachment": N}` becomes `{"artifact": {…}}`.
fn put_references(value: &mut Value, references: &[greenroom_protocol::ArtifactRef]) {
    match value {
        Value::Object(fields) => {
            let place = fields.get("attachment").and_then(Value::as_u64);
            let reference = place.and_then(|place| references.get(usize::try_from(place).ok()?));
            if let Some(reference) = reference {
                fields.remove("attachment");
                fields.insert("artifact".to_owned(), json!(reference));
            }
            fields.values_mut().for_each(|field| put_references(field, references));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put_references(item, references)),
        _ => {}
    }
}

/// A repeated call gets its earlier output.
pub(super) fn told_before(output: &str) -> Result<ToolCallResult, AgentAPIError> {
    let output: ToolAgentOutput = serde_json::from_str(output).map_err(|error| {
        refuse(ErrorCode::RuntimeError, format!("an output cannot be read: {error}"))
    })?;
    answer(&output)
}

/// Why a call was not allowed, for its output.
pub(super) fn denial(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(DENIED, message)
}

pub(super) fn repeated_id() -> AgentAPIError {
    let message = "another call of this run had this `tool_call_id`";
    refuse(ErrorCode::InvalidArgument, message).detail("reason", "repeated_id")
}

/// The output for the runner: without hints on presentation. A call that was not allowed is an error.
fn answer(output: &ToolAgentOutput) -> Result<ToolCallResult, AgentAPIError> {
    if let Some(denied) = output.error.as_ref().filter(|error| error.code == DENIED) {
        let mut refused = refuse(ErrorCode::Unauthorized, denied.message.clone());
        refused.details = denied.details.clone();
        return Err(refused);
    }
    let metadata = Object::from_iter([
        ("tool_call_id".to_owned(), output.tool_call_id.as_str().into()),
        ("status".to_owned(), json!(output.status)),
    ]);
    Ok(ToolCallResult {
        result: output.result.clone(),
        content: Some(post::content(output)),
        error: output.error.as_ref().map(|error| json!(error)),
        metadata: Some(metadata),
    })
}

/// The position of an output in the transcript.
struct Position<'a> {
    event_id: &'a str,
    run_id: &'a str,
    thread_id: Option<String>,
    authority: ToolAuthority,
}

fn item(output: &ToolAgentOutput, position: Position<'_>) -> NewItem {
    let mut metadata = json!({"tool_call_id": output.tool_call_id, "tool_name": output.tool_name,
        "error": output.error, "tool_agent_output": output});
    if position.authority == ToolAuthority::User {
        metadata["authority"] = position.authority.as_str().into();
    }
    NewItem {
        item_id: item_id(),
        thread_id: position.thread_id,
        session: String::new(),
        role: "tool",
        event_id: Some(position.event_id.to_owned()),
        run_id: Some(position.run_id.to_owned()),
        actor_id: None,
        text: Some(post::content(output).replace('\0', "\u{fffd}")),
        body: json!({"segments": [], "artifacts": [], "metadata": metadata}).to_string(),
    }
}

impl Shared {
    /// A call that an earlier host began: its end is unknown, and its output says so.
    pub(crate) async fn settle_interrupted(&self, open: OpenToolCall) -> Result<Ended, StoreError> {
        let message = match self.was_only_asked(&open).await? {
            true => "the host was interrupted before anybody allowed the call: nothing was done",
            false => {
                "the host was interrupted while the tool ran: whether it took effect is not known"
            }
        };
        let output = ToolAgentOutput {
            tool_name: open.tool.clone(),
            tool_call_id: open.tool_call_id.clone(),
            tool_call_args: serde_json::from_str(&open.args).unwrap_or_default(),
            status: Status::Failure,
            result: Value::Null,
            error: Some(ToolFailure::new("INTERRUPTED", message)),
            ui_hints: None,
        };
        let log = HostEvent {
            event_id: format!("{}.tool.{}.completed", open.run_id, open.tool_call_id),
            event_type: "tool.call.completed".to_owned(),
            body: json!({"run_id": open.run_id, "tool_call_id": open.tool_call_id,
                "tool_name": open.tool, "risk": open.risk, "status": output.status,
                "error": output.error})
            .to_string(),
        };
        let command = EndToolCall {
            start: CallStart::Recorded,
            fence: greenroom_store::commands::RunFence {
                workspace_id: open.workspace_id,
                run_id: open.run_id.clone(),
                attempt: open.attempt,
                epoch: open.epoch,
            },
            tool_call_id: open.tool_call_id,
            tool: open.tool,
            risk: "write",
            args: open.args,
            output: serde_json::to_string(&output).unwrap_or_default(),
            item: item(
                &output,
                Position {
                    event_id: &open.event_id,
                    run_id: &open.run_id,
                    thread_id: None,
                    authority: ToolAuthority::Agent,
                },
            ),
            log,
            artifacts: Vec::new(),
            now_ms: now_ms(),
        };
        self.store.commit(command).await
    }

    /// Whether a call waited for an approval that it did not get.
    async fn was_only_asked(&self, open: &OpenToolCall) -> Result<bool, StoreError> {
        let workspace = open.workspace_id.clone();
        let filter = ApprovalFilter { run_id: Some(open.run_id.clone()), status: None };
        let read = self
            .store
            .read(move |tx| reads::approvals::page(tx, &workspace, &filter, None, QUESTIONS_MAX));
        let questions = read.await?;
        // Questions of a tool's server were asked during the call.
        let questions = questions.iter().filter(|row| row.request.action != TOOL_INPUT);
        let mut about = questions.filter(|row| {
            let target: Value = serde_json::from_str(&row.request.target).unwrap_or_default();
            target["tool_call_id"] == open.tool_call_id.as_str()
        });
        Ok(about.next().is_some_and(|row| row.status != ApprovalStatus::Allowed))
    }
}
