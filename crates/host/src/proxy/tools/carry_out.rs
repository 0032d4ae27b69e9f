//! Carries out one tool call in a task of its own: it ends whether or not its caller still waits.
//!
//! Invariant: the credential lives as long as the call; when a run ends, its tool calls are cancelled and
//! their outcome is still recorded.

use super::progress::Progress;
use super::{outcome, questions};
use crate::credentials::{Credential, Issued};
use crate::host::Shared;
use crate::ids::{self, now_ms};
use crate::live::{Entered, LiveRun, Rights};
use crate::proxy::call::{Call, failed, stale};
use crate::telemetry::ToolSpan;
use futures_util::FutureExt;
use greenroom_protocol::api::tools::{ToolAuthority, ToolCallResult};
use greenroom_protocol::{AgentAPIError, Object};
use greenroom_runtime::ToolCaller;
use greenroom_store::commands::{BeginToolCall, Begun, CallStart, RunFence};
use greenroom_store::fault;
use greenroom_store::types::{HostEvent, OpenCall};
use greenroom_tools::{
    Admitted, Entry, Invocation, Risk, ToolFailure, ToolOutput, Toolbox, project_cli,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long a cancelled tool may take to end.
const CALLED_OFF_GRACE: Duration = Duration::from_secs(2);

/// The call that the runner wants.
pub(super) struct Request {
    pub(super) entry: Arc<Entry>,
    pub(super) tool_call_id: String,
    pub(super) args: Object,
    pub(super) authority: ToolAuthority,
    pub(super) entered: Entered,
}

pub(super) struct Work {
    pub(super) shared: Arc<Shared>,
    pub(super) live: Arc<LiveRun>,
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) entry: Arc<Entry>,
    pub(super) tool_call_id: String,
    pub(super) args: Object,
    pub(super) authority: ToolAuthority,
    pub(super) risk: Risk,
    pub(super) fence: RunFence,
    pub(super) identity: Arc<crate::context::Identity>,
    methods: BTreeSet<String>,
    skills: BTreeSet<String>,
    timeout: Duration,
    pub(super) result_bytes_max: usize,
    pub(super) progress: Progress,
    /// While this lives, the host shows the call in the conversation.
    pub(super) entered: Entered,
}

impl Work {
    pub(super) fn new(call: &Call<'_>, asked: Request, admitted: Admitted) -> Self {
        let Request { entry, tool_call_id, args, authority, entered } = asked;
        let Rights { grant, identity, resources, .. } = call.rights;
        Self {
            shared: Arc::clone(call.shared),
            live: Arc::clone(call.live),
            toolbox: Arc::clone(&resources.tools),
            tool_call_id,
            args,
            authority,
            risk: admitted.risk,
            fence: call.fence(),
            identity: Arc::new(identity.clone()),
            methods: grant.methods.clone(),
            skills: grant.skills.clone(),
            timeout: admitted.timeout,
            result_bytes_max: call.settings.limits.tool_result_bytes,
            progress: Progress::new(call.sink),
            entry,
            entered,
        }
    }

    /// The open call for the audit.
    pub(super) fn call_id(&self) -> String {
        format!("{}.{}", self.identity.run_id, self.tool_call_id)
    }

    /// What is stored before the call acts.
    pub(super) fn beginning(&self, open: Option<OpenCall>) -> BeginToolCall {
        BeginToolCall {
            fence: self.fence.clone(),
            conversation_id: self.identity.conversation_id.clone(),
            tool_call_id: self.tool_call_id.clone(),
            tool: self.entry.tool.name.clone(),
            risk: self.risk.as_str(),
            args: Value::Object(self.args.clone()).to_string(),
            log: self.log("started", json!({})),
            open,
            now_ms: now_ms(),
        }
    }

    /// The call in the event log, with its details.
    pub(super) fn log(&self, word: &str, more: Value) -> HostEvent {
        let mut body = json!({"run_id": self.identity.run_id, "tool_call_id": self.tool_call_id,
            "tool_name": self.entry.tool.name, "risk": self.risk.as_str(),
            "authority": self.authority});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        HostEvent {
            event_id: format!("{}.tool.{}.{word}", self.identity.run_id, self.tool_call_id),
            event_type: format!("tool.call.{word}"),
            body: body.to_string(),
        }
    }

    pub(super) async fn carry_out(self, start: CallStart) -> Result<ToolCallResult, AgentAPIError> {
        fault::point("before_tool");
        let started = Instant::now();
        let output = match self.credential() {
            Ok(credential) => {
                let work = self.invoke(credential.as_ref().map(Issued::expose));
                // Whatever fails, a call that was begun is ended.
                let output = AssertUnwindSafe(work).catch_unwind().await;
                output.unwrap_or_else(|_| ToolOutput::failure(broken()))
            }
            Err(failure) => ToolOutput::failure(failure),
        };
        fault::point("after_tool");
        self.measure(started, &output);
        outcome::settle(self, start, output).await
    }

    fn measure(&self, started: Instant, output: &ToolOutput) {
        let took = started.elapsed();
        self.shared.metrics.tool_call_duration.observe(took);
        let error = output.error.as_ref().map(|error| error.code.clone());
        let (tool, tool_call_id) = (self.entry.tool.name.as_str(), self.tool_call_id.as_str());
        let span = ToolSpan { tool, tool_call_id, took, error };
        self.shared.trace_tool_call(&self.identity, span);
    }

    /// The call does not reach its tool; it still gets an output.
    pub(super) async fn refuse(
        self,
        start: CallStart,
        failure: ToolFailure,
    ) -> Result<ToolCallResult, AgentAPIError> {
        outcome::settle(self, start, ToolOutput::failure(failure)).await
    }

    async fn invoke(&self, credential: Option<&str>) -> ToolOutput {
        fault::point("in_tool");
        let cancel = CancellationToken::new();
        let left = self.live.deadline.left().min(self.timeout);
        let invocation = Invocation {
            entry: &self.entry,
            args: &self.args,
            tool_call_id: &self.tool_call_id,
            run_id: &self.identity.run_id,
            caller: ToolCaller {
                conversation_id: self.identity.conversation_id.clone(),
                actor_id: self.identity.actor.as_ref().and_then(|actor| actor.actor_id.clone()),
            },
            methods: &self.methods,
            skills: &self.skills,
            credential,
            deadline: Instant::now() + left,
            cancel: cancel.clone(),
            progress: Some(self.progress.listener()),
            ask: Some(questions::listener(self)),
        };
        let mut work = std::pin::pin!(self.toolbox.invoke(invocation));
        tokio::select! {
            output = &mut work => output,
            never = self.progress.pass_on(&self.shared) => match never {},
            () = self.live.wait_for_end() => {
                cancel.cancel();
                let called_off = || ToolOutput::failure(ToolFailure::new(
                    "CANCELLED",
                    "the run ended before the tool did; what it had done by then stays done",
                ));
                timeout(CALLED_OFF_GRACE, work).await.unwrap_or_else(|_| called_off())
            }
        }
    }

    /// For methods of the project CLI: the right to act for the actor of the run's event, in this call.
    fn credential(&self) -> Result<Option<Issued>, ToolFailure> {
        if !self.entry.is_project_cli() {
            return Ok(None);
        }
        let asked = project_cli::Call::read(&self.args)?;
        let Some(person) = self.identity.person() else {
            let message = "the event of this run has no actor, so there is no user to act for";
            return Err(ToolFailure::new("NO_ACTOR", message));
        };
        let credential = Credential {
            person,
            run_id: self.identity.run_id.clone(),
            attempt: self.fence.attempt,
            tool_call_id: self.tool_call_id.clone(),
            methods: BTreeSet::from([format!("{}.{}", asked.module, asked.method)]),
        };
        let issued = self.shared.credentials.issue(credential, &self.live);
        let none = || ToolFailure::new("RUNTIME_ERROR", "the system has no random numbers");
        issued.map(Some).ok_or_else(none)
    }
}

/// Stores the call before it acts.
pub(super) async fn begin(
    call: &mut Call<'_>,
    work: Option<&Work>,
) -> Result<Begun, AgentAPIError> {
    let Some(work) = work else { return Err(stale()) };
    let open = call.keep_open(&work.call_id());
    let begun = call.shared.store.commit(work.beginning(open)).await;
    begun.map_err(|error| failed(&error))
}

fn broken() -> ToolFailure {
    let message = "the host failed while it called the tool; whether it took effect is not known";
    ToolFailure::new("RUNTIME_ERROR", message)
}

/// A new id for the transcript.
pub(super) fn item_id() -> String {
    ids::fresh("item")
}
