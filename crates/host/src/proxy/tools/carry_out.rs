//! One call of a tool, carried out on its own: it ends whether or not somebody waits for it.
//!
//! Invariant: the credential lives as long as the call; a run that ends calls its tools off and still has
//! their outcome recorded.

use super::outcome;
use crate::credentials::{Credential, Issued};
use crate::host::Shared;
use crate::ids::{self, now_ms};
use crate::live::{LiveRun, Rights};
use crate::proxy::call::{Call, failed, refuse, stale};
use greenroom_protocol::api::tools::{ToolAuthority, ToolCallResult};
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use greenroom_store::commands::{BeginToolCall, Begun, RunFence};
use greenroom_store::fault;
use greenroom_store::types::HostEvent;
use greenroom_tools::{
    Admitted, Entry, Invocation, Risk, ToolFailure, ToolOutput, Toolbox, project_cli,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long a tool that was called off may take to say so.
const CALLED_OFF_GRACE: Duration = Duration::from_secs(2);

/// What the runner wants called.
pub(super) struct Asked {
    pub(super) entry: Arc<Entry>,
    pub(super) tool_call_id: String,
    pub(super) args: Object,
    pub(super) authority: ToolAuthority,
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
    deadline: Instant,
    pub(super) result_bytes_max: usize,
}

impl Work {
    pub(super) fn new(call: &Call<'_>, asked: Asked, admitted: Admitted) -> Self {
        let Asked { entry, tool_call_id, args, authority } = asked;
        let Rights { grant, identity, resources, .. } = call.rights;
        let left = call.live.deadline.left().min(admitted.timeout);
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
            deadline: Instant::now() + left,
            result_bytes_max: call.settings.limits.tool_result_bytes,
            entry,
        }
    }

    /// The call as the event log has it, with what is said about it.
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

    pub(super) async fn carry_out(self) -> Result<ToolCallResult, AgentAPIError> {
        // What the runner tells of the call from here on adds nothing to what the host records of it.
        self.live.tool_calls.note(&self.tool_call_id);
        fault::point("before_tool");
        let output = match self.credential() {
            Ok(credential) => self.invoke(credential.as_ref().map(Issued::expose)).await,
            Err(failure) => ToolOutput::failure(failure),
        };
        fault::point("after_tool");
        outcome::settle(self, output).await
    }

    /// The call does not reach its tool; it has an output all the same.
    pub(super) async fn refuse(
        self,
        failure: ToolFailure,
    ) -> Result<ToolCallResult, AgentAPIError> {
        outcome::settle(self, ToolOutput::failure(failure)).await
    }

    async fn invoke(&self, credential: Option<&str>) -> ToolOutput {
        let cancel = CancellationToken::new();
        let invocation = Invocation {
            entry: &self.entry,
            args: &self.args,
            tool_call_id: &self.tool_call_id,
            run_id: &self.identity.run_id,
            methods: &self.methods,
            skills: &self.skills,
            credential,
            deadline: self.deadline,
            cancel: cancel.clone(),
        };
        let mut work = std::pin::pin!(self.toolbox.invoke(invocation));
        tokio::select! {
            output = &mut work => output,
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
        let actor = self.identity.actor.as_ref().and_then(|actor| actor.actor_id.clone());
        let Some(actor) = actor else {
            let message = "the event of this run has no actor, so there is nobody to act for";
            return Err(ToolFailure::new("NO_ACTOR", message));
        };
        let credential = Credential {
            workspace_id: self.identity.workspace_id.clone(),
            actor,
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

/// Keeps what is about to be done. A call that was made before is answered as it was then.
pub(super) async fn begin(
    call: &mut Call<'_>,
    work: &Work,
) -> Result<Option<ToolCallResult>, AgentAPIError> {
    let call_id = format!("{}.{}", work.identity.run_id, work.tool_call_id);
    let command = BeginToolCall {
        fence: work.fence.clone(),
        conversation_id: work.identity.conversation_id.clone(),
        tool_call_id: work.tool_call_id.clone(),
        tool: work.entry.tool.name.clone(),
        risk: work.risk.as_str(),
        args: Value::Object(work.args.clone()).to_string(),
        log: work.log("started", json!({})),
        open: call.keep_open(&call_id),
        now_ms: now_ms(),
    };
    let begun = call.shared.store.begin_tool_call(command).await;
    match begun.map_err(|error| failed(&error))? {
        Begun::Now => Ok(None),
        Begun::Before(output) => outcome::told_before(&output).map(Some),
        Begun::UnderWay => {
            let message = "a call with this `tool_call_id` is under way";
            Err(refuse(ErrorCode::InvalidArgument, message).detail("reason", "under_way"))
        }
        Begun::OtherCall => Err(outcome::repeated_id()),
        Begun::Stale => Err(stale()),
    }
}

/// A fresh id for the transcript.
pub(super) fn item_id() -> String {
    ids::fresh("item")
}
