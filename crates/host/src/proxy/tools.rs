//! `tools.*`: granted tools, looked up and called.
//!
//! Invariant: a call that may change something is begun in the store before it acts and ended there before
//! its answer is told, also when the run or the caller is gone by then. Every such call, and every call of a
//! live run, has one output.

mod carry_out;
mod outcome;

use super::asking::ask;
use super::call::{Answer, Call, answer, refuse};
use super::resources::granted;
use crate::approvals::expires_ms;
use crate::ids::{self, now_ms};
use crate::resources::tool_resource;
use crate::settings::Approval;
use carry_out::{Asked, Work, begin};
use greenroom_protocol::api::Method;
use greenroom_protocol::api::tools::{
    ToolCallParams, ToolCallResult, ToolDetailParams, ToolSearchParams, ToolSearchResult,
};
use greenroom_protocol::{AgentAPIError, ErrorCode, Object, ToolResource};
use greenroom_store::types::{ApprovalKind, NewApproval};
use greenroom_tools::project_cli::{self, close_matches};
use greenroom_tools::{Admitted, Entry, Risk};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// Longest id that a model gives a call.
const CALL_ID_BYTES_MAX: usize = 256;
/// Largest parameters: they are kept with the call. Larger things are artifacts.
const ARGS_BYTES_MAX: usize = 1024 * 1024;
/// Largest parameters that somebody is asked about: they wait in memory and in lists.
const ASKED_BYTES_MAX: usize = 64 * 1024;

pub(super) async fn serve(call: &mut Call<'_>) -> Answer {
    match call.method {
        Method::ToolsSearch => search(call),
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

fn search(call: &mut Call<'_>) -> Answer {
    let params: ToolSearchParams = call.params()?;
    let grant = &call.rights.grant;
    let found = call.rights.resources.tools.search(
        &params.query,
        params.top_k as usize,
        &grant.tools.names,
    );
    let items = found.iter().map(|entry| tool_resource(entry, grant)).collect();
    answer(&ToolSearchResult { items })
}

/// A tool with what a run's context has no room for: the contracts of the project CLI's methods.
fn detail(call: &Call<'_>, entry: &Entry) -> ToolResource {
    let mut tool = tool_resource(entry, &call.rights.grant);
    if entry.is_project_cli() {
        let contracts = call.rights.resources.tools.contracts(&call.rights.grant.methods);
        tool.metadata.insert("contracts".to_owned(), Value::Object(contracts));
    }
    tool
}

/// A granted tool. One whose server is away just now is granted and not there.
fn find(call: &mut Call<'_>, name: &str) -> Result<Arc<Entry>, AgentAPIError> {
    let names = &call.rights.grant.tools.names;
    granted(call, "tool", name, |call| &call.rights.grant.tools.names).map_err(|error| {
        let known: Vec<String> = names.iter().cloned().collect();
        error.detail("close_matches", close_matches(name, &known))
    })?;
    call.rights.resources.tools.entry(name).ok_or_else(|| {
        let message = format!("`{name}` is not available now");
        refuse(ErrorCode::RuntimeError, message).retryable()
    })
}

/// Names that are kept in the audit as they are: what a model makes up may hold anything.
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
    call.on_the_word_of(params.authority.as_str());
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
    let args = params.parameters;
    let bytes = call.params.get().len();
    if bytes > ARGS_BYTES_MAX {
        let message = format!("the parameters of a tool have at most {ARGS_BYTES_MAX} bytes");
        return Err(refuse(ErrorCode::PayloadTooLarge, message));
    }
    // The first of the two checks that a method of the project CLI has to pass.
    let admitted = call.rights.resources.tools.admit(&entry, &args, &call.rights.grant.methods);
    let refused = Admitted { risk: Risk::Read, timeout: entry.tool.timeout };
    let Admitted { risk, timeout } = admitted.as_ref().copied().unwrap_or(refused);
    let scope = match project_cli::Call::read(&args) {
        Ok(asked) if entry.is_project_cli() && is_plain(&asked) => {
            format!("{}.{}", asked.module, asked.method)
        }
        _ => risk.as_str().to_owned(),
    };
    call.about(Some(&entry.tool.name), Some(scope.into()));
    if admitted.is_ok() {
        permit(call, &entry, &args, risk, &tool_call_id).await?;
    }
    let asked = Asked { entry, tool_call_id, args, authority: params.authority };
    let work = Work::new(call, asked, Admitted { risk, timeout });
    if risk != Risk::Read
        && let Some(before) = begin(call, &work).await?
    {
        return Ok(before);
    }
    let shared = Arc::clone(call.shared);
    let done = match admitted {
        Ok(_) => shared.tasks.spawn("tool call", work.carry_out()).await,
        Err(failure) => shared.tasks.spawn("tool call", work.refuse(failure)).await,
    };
    done.unwrap_or_else(|error| Err(refuse(ErrorCode::RuntimeError, error.to_string())))
}

/// Whether the grant lets a call of this risk pass, after somebody was asked where it says so.
async fn permit(
    call: &mut Call<'_>,
    entry: &Entry,
    args: &Object,
    risk: Risk,
    tool_call_id: &str,
) -> Result<(), AgentAPIError> {
    match call.rights.grant.risks.get(&risk).copied().unwrap_or(Approval::Ask) {
        Approval::Always => Ok(()),
        Approval::Never => {
            let message = format!("calls of the risk `{}` are not granted", risk.as_str());
            Err(refuse(ErrorCode::Unauthorized, message).detail("reason", "not_granted"))
        }
        Approval::Ask if call.params.get().len() > ASKED_BYTES_MAX => {
            let message =
                format!("a call that somebody is asked about has at most {ASKED_BYTES_MAX} bytes");
            Err(refuse(ErrorCode::PayloadTooLarge, message))
        }
        Approval::Ask => {
            let identity = &call.rights.identity;
            let mut target = json!({"tool_name": entry.tool.name, "tool_call_id": tool_call_id,
                "risk": risk.as_str(), "source": entry.tool.source.to_string()});
            call.shared.redactor.value(&mut target);
            let question = NewApproval {
                approval_id: ids::fresh("apr"),
                nonce: Uuid::new_v4().simple().to_string(),
                kind: ApprovalKind::Call,
                agent: identity.agent.clone(),
                runner_id: identity.runner_id.clone(),
                actor: identity.actor.as_ref().and_then(|actor| serde_json::to_string(actor).ok()),
                action: "tool.call".to_owned(),
                target: target.to_string(),
                payload: Value::Object(args.clone()).to_string(),
                delivery: None,
                expires_at: now_ms() + expires_ms(call.settings),
            };
            let call_id = format!("{}.{tool_call_id}", identity.run_id);
            ask(call, question, &call_id).await.map(drop)
        }
    }
}
