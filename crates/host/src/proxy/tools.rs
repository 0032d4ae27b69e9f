//! `tools.*`: granted tools, searched and called.
//!
//! Invariant: a call that may change something, or needs an approval, is begun in the store before it acts
//! and ended there before its answer is sent, even if the run or the caller is gone. Every decided call has
//! one output, which the conversation shows once; a repeated call gets the same output, and needs no second
//! approval.

mod carry_out;
mod outcome;
mod progress;
mod questions;
mod subject;

use super::asking::{Decided, ask};
use super::call::{Answer, Call, answer, failed_inside, refuse, stale};
use super::resources::granted;
use crate::approvals::{SUBJECT, expires_ms};
use crate::ids::{self, now_ms};
use crate::live::Taken;
use crate::resources::tool_resource;
use crate::settings::Approval;
use crate::tool_vectors;
use crate::ungranted::{List, Refused, Ungranted};
use carry_out::{Request, Work, begin};
use greenroom_protocol::api::Method;
use greenroom_protocol::api::platform::{ApprovalSubject, TOOL_CALL};
use greenroom_protocol::api::tools::{
    ToolCallParams, ToolCallResult, ToolDetailParams, ToolSearchParams, ToolSearchResult,
};
use greenroom_protocol::{AgentAPIError, ErrorCode, ToolResource};
use greenroom_store::commands::{Begun, CallStart, Wanted};
use greenroom_store::types::{ApprovalKind, NewApproval};
use greenroom_tools::project_cli::{self, close_matches};
use greenroom_tools::{Admitted, Entry, Risk, ToolFailure};
use outcome::{denial, repeated_id, told_before};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// Longest id of a tool call.
const CALL_ID_BYTES_MAX: usize = 256;
/// Largest parameters: they are stored with the call. Larger ones must be artifacts.
const ARGS_BYTES_MAX: usize = 1024 * 1024;
/// Largest parameters of a call that needs an approval: they are kept in memory and shown in lists.
const APPROVAL_BYTES_MAX: usize = 64 * 1024;

pub(super) async fn serve(call: &mut Call<'_>, method: Method) -> Answer {
    match method {
        Method::ToolsSearch => search(call).await,
        Method::ToolsGetDetail => {
            let params: ToolDetailParams = call.params()?;
            let entry = find(call, &params.tool_name)?;
            answer(&detail(call, &entry))
        }
        _ => {
            let params: ToolCallParams = call.params()?;
            answer(&call_tool(call, params).await?)
        }
    }
}

async fn search(call: &mut Call<'_>) -> Answer {
    let params: ToolSearchParams = call.params()?;
    let (grant, resources) = (&call.rights.grant, &call.rights.resources);
    let (names, top_k) = (&grant.tools.names, params.top_k as usize);
    let vectors = tool_vectors::find(call.shared, resources, &params.query, names).await;
    let found = match vectors {
        Some(vectors) => resources.tools.search_near(&params.query, &vectors, top_k, names),
        None => resources.tools.search(&params.query, top_k, names),
    };
    let items = found.iter().map(|entry| tool_resource(entry, grant, &resources.tools)).collect();
    answer(&ToolSearchResult { items })
}

/// A tool with the contracts of the project CLI's methods, which do not fit into a run's context.
fn detail(call: &Call<'_>, entry: &Entry) -> ToolResource {
    let mut tool = tool_resource(entry, &call.rights.grant, &call.rights.resources.tools);
    if entry.is_project_cli() {
        let contracts = call.rights.resources.tools.contracts(&call.rights.grant.methods);
        tool.metadata.insert("contracts".to_owned(), Value::Object(contracts));
    }
    tool
}

/// A granted tool. A tool whose server is down is granted but unavailable.
fn find(call: &mut Call<'_>, name: &str) -> Result<Arc<Entry>, AgentAPIError> {
    let names = &call.rights.grant.tools.names;
    let is_granted = granted(call, "tool", name, |grant, name| grant.tools.names.contains(name));
    if let Err(error) = is_granted {
        if let Some(known) = meant(&call.rights.resources.tools.names(), name) {
            note_missing(call, List::Tools, known);
        }
        let known: Vec<String> = names.iter().cloned().collect();
        return Err(error.detail("close_matches", close_matches(name, &known)));
    }
    call.rights.resources.tools.entry(name).ok_or_else(|| {
        let message = format!("`{name}` is not available now");
        refuse(ErrorCode::RuntimeError, message).retryable()
    })
}

/// The called tool, also by the form of its name that providers use: `files_read` for `files.read`.
fn meant<'n>(known: &'n [String], name: &str) -> Option<&'n str> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let is_meant = |known: &&String| *known == name || known.chars().map(plain).eq(name.chars());
    known.iter().find(is_meant).map(String::as_str)
}

/// For the operator: the runner learns nothing of what exists beyond its grant.
fn note_missing(call: &Call<'_>, list: List, name: &str) {
    let identity = &call.rights.identity;
    let refused = Refused { run_id: &identity.run_id, agent: &identity.agent, list, name };
    Ungranted::note(call.shared, call.settings, &refused);
}

/// Names that are safe in an audit record: a model may make up anything.
fn is_plain(asked: &project_cli::Call) -> bool {
    let plain = |name: &str| {
        name.len() <= CALL_ID_BYTES_MAX
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    plain(&asked.module) && plain(&asked.method)
}

fn is_call_id(id: &str) -> bool {
    (1..=CALL_ID_BYTES_MAX).contains(&id.len()) && !id.contains(char::is_control)
}

async fn call_tool(
    call: &mut Call<'_>,
    params: ToolCallParams,
) -> Result<ToolCallResult, AgentAPIError> {
    call.set_authority(params.authority.as_str());
    let entry = find(call, &params.tool_name)?;
    let tool_call_id = match params.tool_call_id {
        Some(id) if is_call_id(&id) => id,
        Some(_) => {
            let message =
                format!("`tool_call_id` has 1 to {CALL_ID_BYTES_MAX} bytes, no control characters");
            return Err(refuse(ErrorCode::InvalidArgument, message));
        }
        None => ids::fresh("call"),
    };
    let args = call.rights.resources.tools.prepared(&entry, params.parameters);
    let bytes = call.params.get().len();
    if bytes > ARGS_BYTES_MAX {
        let message = format!("the parameters of a tool have at most {ARGS_BYTES_MAX} bytes");
        return Err(refuse(ErrorCode::PayloadTooLarge, message));
    }
    // The first of two checks of a project CLI method.
    let admitted = call.rights.resources.tools.admit(&entry, &args, &call.rights.grant.methods);
    let refused = Admitted { risk: Risk::Read, timeout: entry.tool.timeout };
    let Admitted { risk, timeout } = admitted.as_ref().copied().unwrap_or(refused);
    let scope = match project_cli::Call::read(&args) {
        Ok(asked) if entry.is_project_cli() && is_plain(&asked) => {
            format!("{}.{}", asked.module, asked.method)
        }
        _ => risk.as_str().to_owned(),
    };
    let is_refused = admitted.as_ref().is_err_and(|error| error.code == project_cli::NOT_ALLOWED);
    if is_refused && call.rights.resources.tools.methods().contains(&scope) {
        note_missing(call, List::Modules, &scope);
    }
    call.about(Some(&entry.tool.name), Some(scope.into()));
    let entered = call.live.tool_calls.enter(&tool_call_id).map_err(|taken| match taken {
        Taken::InProgress => under_way(),
        Taken::Reported => repeated_id(),
    })?;
    let asked = Request { entry, tool_call_id, args, authority: params.authority, entered };
    let work = Work::new(call, asked, Admitted { risk, timeout });
    match admitted {
        Ok(_) => permit(call, work).await,
        Err(failure) => {
            call.set_refusal(match failure.code.as_str() {
                project_cli::NOT_ALLOWED => ErrorCode::Unauthorized,
                _ => ErrorCode::InvalidArgument,
            });
            in_task(work, |work| work.refuse(CallStart::Unrecorded, failure)).await
        }
    }
}

/// Carries a call out if the grant allows its risk, after an approval where the grant requires one.
async fn permit(call: &mut Call<'_>, work: Work) -> Result<ToolCallResult, AgentAPIError> {
    match call.rights.grant.risks.get(&work.risk).copied().unwrap_or(Approval::Ask) {
        Approval::Always if work.risk == Risk::Read => {
            in_task(work, |work| work.carry_out(CallStart::Unrecorded)).await
        }
        Approval::Always => {
            let mut waiting = Waiting(Some(work));
            let begun = begin(call, waiting.0.as_ref()).await?;
            let Some(work) = waiting.0.take() else { return Err(stale()) };
            act(work, begun).await
        }
        Approval::Never => {
            let message = format!("calls of the risk `{}` are not granted", work.risk.as_str());
            let denied = denial(message).detail("reason", "not_granted");
            in_task(work, |work| work.refuse(CallStart::Unrecorded, denied)).await
        }
        Approval::Ask if call.params.get().len() > APPROVAL_BYTES_MAX => {
            let message =
                format!("a call that needs an approval has at most {APPROVAL_BYTES_MAX} bytes");
            Err(refuse(ErrorCode::PayloadTooLarge, message))
        }
        Approval::Ask => ask_first(call, work).await,
    }
}

/// The call is begun with the approval request, so that it gets its one output whatever is decided.
async fn ask_first(call: &mut Call<'_>, work: Work) -> Result<ToolCallResult, AgentAPIError> {
    let question = question(call, &work, subject::of(&work).await);
    let wanted = Wanted::AskForTool(Box::new(question), Box::new(work.beginning(None)));
    let call_id = work.call_id();
    let mut waiting = Waiting(Some(work));
    let asked = ask(call, wanted, &call_id).await?;
    let Some(work) = waiting.0.take() else { return Err(stale()) };
    match asked {
        Decided::Allowed { edited: None, .. } => act(work, Begun::Started).await,
        // Checked with the answer, and again where it acts.
        Decided::Allowed { edited: Some(args), .. } => {
            match call.rights.admit_edited(&work.entry.tool.name, &args) {
                Ok(admitted) => act(work.edited(args, admitted), Begun::Started).await,
                Err(failure) => {
                    in_task(work, |work| work.refuse(CallStart::Recorded, failure)).await
                }
            }
        }
        Decided::Refused(error) => {
            let mut denied = denial(error.message);
            denied.details = error.details;
            in_task(work, |work| work.refuse(CallStart::Recorded, denied)).await
        }
        Decided::Earlier(begun) => act(work, begun).await,
        Decided::NotAsked(error) => Err(error),
    }
}

/// Carries out a call that was begun now. A repeated call gets its earlier output.
async fn act(mut work: Work, begun: Begun) -> Result<ToolCallResult, AgentAPIError> {
    match begun {
        Begun::Started => in_task(work, |work| work.carry_out(CallStart::Recorded)).await,
        Begun::Finished(output) => {
            work.entered.recorded();
            told_before(&output)
        }
        Begun::InProgress => Err(under_way()),
        Begun::OtherCall => Err(repeated_id()),
        Begun::Stale => Err(stale()),
    }
}

fn question(call: &Call<'_>, work: &Work, subject: Option<ApprovalSubject>) -> NewApproval {
    let identity = &call.rights.identity;
    let tool = &work.entry.tool;
    let mut target = json!({"tool_name": tool.name, "tool_call_id": work.tool_call_id,
        "risk": work.risk.as_str(), "source": tool.source.to_string()});
    if let Some(subject) = subject {
        target[SUBJECT] = json!(subject);
    }
    call.shared.redactor.value(&mut target);
    NewApproval {
        approval_id: ids::fresh("apr"),
        nonce: Uuid::new_v4().simple().to_string(),
        kind: ApprovalKind::Call,
        agent: identity.agent.clone(),
        runner_id: identity.runner_id.clone(),
        actor: identity.actor.as_ref().and_then(|actor| serde_json::to_string(actor).ok()),
        action: TOOL_CALL.to_owned(),
        target: target.to_string(),
        payload: Value::Object(work.args.clone()).to_string(),
        delivery: None,
        expires_at: now_ms() + expires_ms(call.settings),
    }
}

/// A call that waits for its commit or its approval; dropped with its caller.
struct Waiting(Option<Work>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(work) = self.0.take() else { return };
        let tasks = work.shared.tasks.clone();
        tasks.spawn("tool call given up", async move {
            let message = "the call was cancelled before it began; nothing was done";
            let given_up = ToolFailure::new("CANCELLED", message);
            // A call that was never begun has nothing to end.
            let _ = work.refuse(CallStart::Recorded, given_up).await;
        });
    }
}

/// Ends a call in a task of the host, whether or not the caller still waits.
async fn in_task<F>(
    work: Work,
    end: impl FnOnce(Work) -> F,
) -> Result<ToolCallResult, AgentAPIError>
where
    F: Future<Output = Result<ToolCallResult, AgentAPIError>> + Send + 'static,
{
    let tasks = work.shared.tasks.clone();
    let done = tasks.spawn("tool call", end(work)).await;
    done.unwrap_or_else(|_| Err(failed_inside()))
}

fn under_way() -> AgentAPIError {
    let message = "a call with this `tool_call_id` is under way";
    refuse(ErrorCode::InvalidArgument, message).detail("reason", "under_way")
}
