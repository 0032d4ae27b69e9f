//! Questions of a tool's server to the user: stored as approvals with a form, which the waiting call gets the answer of.
//!
//! Invariant: a question is committed before it is shown, answered once, and withdrawn when its call stops waiting; the
//! run's deadline is paused meanwhile.

use super::carry_out::Work;
use crate::approvals::{Waiter, expires_ms};
use crate::host::Shared;
use crate::ids::{self, now_ms};
use crate::live::LiveRun;
use crate::proxy::asking::{self, Withdrawn};
use greenroom_protocol::api::platform::{ApprovalStatus, TOOL_INPUT};
use greenroom_store::commands::{RequestAction, Requested, RunFence, Wanted};
use greenroom_store::reads;
use greenroom_store::types::{ApprovalKind, NewApproval};
use greenroom_tools::schema::Schema;
use greenroom_tools::{Answer, Asks, OnQuestion, Question};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// What the questions of one call need.
struct Asker {
    shared: Arc<Shared>,
    live: Arc<LiveRun>,
    identity: Arc<crate::context::Identity>,
    fence: RunFence,
    tool: String,
    tool_call_id: String,
}

/// Puts the questions of this call to the user.
pub(super) fn listener(work: &Work) -> OnQuestion {
    let asker = Arc::new(Asker {
        shared: Arc::clone(&work.shared),
        live: Arc::clone(&work.live),
        identity: Arc::clone(&work.identity),
        fence: work.fence.clone(),
        tool: work.entry.tool.name.clone(),
        tool_call_id: work.tool_call_id.clone(),
    });
    Arc::new(move |question| {
        let asker = Arc::clone(&asker);
        Box::pin(async move { asker.ask(question).await })
    })
}

impl Asker {
    async fn ask(&self, question: Question) -> Answer {
        if let Asks::Form(schema) = &question.asks
            && let Err(error) = Schema::compile(schema)
        {
            tracing::warn!(tool = self.tool, %error, "a question has an unusable form and is declined");
            return Answer::Declined;
        }
        let approval = self.approval(question);
        let approval_id = approval.approval_id.clone();
        let answered = self.shared.approvals.answered.enter(&approval_id);
        let _pause = self.live.deadline.pause();
        let workspace = self.fence.workspace_id.clone();
        let mut withdrawn = Withdrawn::new(&self.shared, (workspace.clone(), approval_id.clone()));
        let command = RequestAction {
            fence: self.fence.clone(),
            conversation_id: self.identity.conversation_id.clone(),
            wanted: Wanted::Ask(Box::new(approval)),
            pending_max: self.shared.settings.load().limits.approvals_pending,
            call: None,
            now_ms: now_ms(),
        };
        if !matches!(asking::commit(&self.shared, command).await, Ok(Requested::Pending)) {
            withdrawn.settled();
            return Answer::Cancelled;
        }
        let answer = self.answer(&answered, &workspace, &approval_id).await;
        withdrawn.settled();
        answer
    }

    async fn answer(&self, answered: &Waiter<'_>, workspace: &str, approval_id: &str) -> Answer {
        match asking::decision(&self.shared, answered, (workspace, approval_id)).await {
            ApprovalStatus::Allowed => {}
            ApprovalStatus::Denied => return Answer::Declined,
            _ => return Answer::Cancelled,
        }
        let (workspace, id) = (workspace.to_owned(), approval_id.to_owned());
        let read = self.shared.store.read(move |tx| reads::approvals::get(tx, &workspace, &id));
        let payload = match read.await {
            Ok(Some(row)) => serde_json::from_str(&row.request.payload).unwrap_or(Value::Null),
            _ => Value::Null,
        };
        match &payload["answer"] {
            Value::Object(values) => Answer::Accepted(values.clone()),
            _ => Answer::Cancelled,
        }
    }

    fn approval(&self, question: Question) -> NewApproval {
        let Question { server, message, asks } = question;
        let mut payload = match asks {
            Asks::Form(schema) => {
                json!({"mode": "form", "message": message, "requested_schema": schema})
            }
            Asks::Url(url) => json!({"mode": "url", "message": message, "url": url}),
        };
        self.shared.redactor.value(&mut payload);
        let target = json!({"tool_name": self.tool, "tool_call_id": self.tool_call_id,
            "server": server, "risk": "external"});
        NewApproval {
            approval_id: ids::fresh("apr"),
            nonce: Uuid::new_v4().simple().to_string(),
            kind: ApprovalKind::Call,
            agent: self.identity.agent.clone(),
            runner_id: self.identity.runner_id.clone(),
            actor: self.identity.actor.as_ref().and_then(|one| serde_json::to_string(one).ok()),
            action: TOOL_INPUT.to_owned(),
            target: target.to_string(),
            payload: payload.to_string(),
            delivery: None,
            expires_at: now_ms() + expires_ms(&self.shared.settings.load()),
        }
    }
}
