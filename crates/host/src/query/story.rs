//! The story of a run: all stored facts about it except its results, in one answer.
//!
//! Invariant: bounded in size; `truncated` names the lists that were cut. Only recorded facts, and no secret,
//! are shown.

use super::{approval_view, delivery_view, event_view, model_calls, run_view};
use crate::context::Envelope;
use crate::host::Host;
use crate::ids::rfc3339;
use crate::replay::{REPLAY_OF, replays_of};
use greenroom_protocol::RunView;
use greenroom_store::commands::has_failed;
use greenroom_store::reads::approvals::ApprovalFilter;
use greenroom_store::reads::spend::{ModelCallRow, RunSpend};
use greenroom_store::sql::Tx;
use greenroom_store::types::{ApprovalRow, DeliveryRow, Diagnostic, EventRow, RunRow};
use greenroom_store::{StoreError, reads};
use serde_json::{Value, json};

/// Entries of each list.
const ENTRIES_MAX: usize = 200;
/// A larger event is shown without its input.
const EVENT_BYTES_MAX: usize = 64 * 1024;

/// The stored facts about a run.
struct Facts {
    run: RunRow,
    event: Option<EventRow>,
    grant: Option<String>,
    spend: RunSpend,
    model_calls: Vec<ModelCallRow>,
    deliveries: Vec<DeliveryRow>,
    approvals: Vec<ApprovalRow>,
    diagnostics: Vec<Diagnostic>,
    replays: Vec<EventRow>,
    /// The event that this one replays, and its run.
    origin: Option<(String, Option<String>)>,
}

/// The reader of a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Sees the configuration of the agent.
    Operator,
    /// Sees what its agents did and were granted.
    Sender,
}

impl Host {
    /// None if the run does not exist.
    pub async fn story(
        &self,
        workspace: &str,
        run_id: &str,
        audience: Audience,
    ) -> Result<Option<Value>, StoreError> {
        let (workspace, run_id) = (workspace.to_owned(), run_id.to_owned());
        let facts = self.store().read(move |tx| load(tx, &workspace, &run_id)).await?;
        Ok(facts.map(|facts| self.tell(facts, audience)))
    }

    fn tell(&self, facts: Facts, audience: Audience) -> Value {
        let binding = binding(&facts.run, facts.event.as_ref());
        let runner = self.runner_of(&facts.run);
        let grant = self.grant_view(&facts, audience);
        let (event, event_cut) = event(facts.event);
        let (calls, calls_cut) = cut(&facts.model_calls, model_call);
        let (deliveries, deliveries_cut) = cut(&facts.deliveries, delivery_view);
        let (approvals, approvals_cut) = cut(&facts.approvals, approval_view);
        let (diagnostics, diagnostics_cut) = cut(&facts.diagnostics, diagnostic);
        let (replays, replays_cut) = cut(&facts.replays, replay);
        let run = RunView { model_calls: Some(model_calls(facts.spend)), ..run_view(facts.run) };
        let origin =
            facts.origin.map(|(event_id, run_id)| json!({"event_id": event_id, "run_id": run_id}));
        let mut story = json!({
            "run": run, "event": event, "binding": binding, "grant": grant, "runner": runner,
            "model_calls": calls, "deliveries": deliveries, "approvals": approvals,
            "diagnostics": diagnostics, "replay_of": origin, "replays": replays,
            "truncated": {"event": event_cut, "model_calls": calls_cut,
                "deliveries": deliveries_cut, "approvals": approvals_cut,
                "diagnostics": diagnostics_cut, "replays": replays_cut},
        });
        self.redactor().value(&mut story);
        story
    }

    /// The process that offers the runner now, and the isolation that the run had.
    fn runner_of(&self, run: &RunRow) -> Value {
        let state = self.runner_state(&run.runner_id);
        let status = state
            .as_ref()
            .and_then(|state| serde_json::to_value(&state.status).ok()?.get("status").cloned());
        json!({"runner_id": run.runner_id, "isolation": run.isolation, "status": status,
            "name": state.as_ref().map(|state| &state.name),
            "plugin": state.as_ref().and_then(|state| state.plugin.as_ref()),
            "version": state.as_ref().and_then(|state| state.version.as_ref())})
    }

    fn grant_view(&self, facts: &Facts, audience: Audience) -> Value {
        let Some(body) = &facts.grant else { return Value::Null };
        let mut grant: Value = serde_json::from_str(body).unwrap_or_default();
        if let Some(grant) = grant.as_object_mut() {
            grant.insert("hash".to_owned(), json!(facts.run.grant_hash));
            if audience == Audience::Sender {
                grant.insert("config".to_owned(), Value::Null);
                grant.remove("files");
            }
        }
        grant
    }
}

fn load(tx: &mut dyn Tx, workspace: &str, run_id: &str) -> Result<Option<Facts>, StoreError> {
    let Some(run) = reads::runs::get(tx, workspace, run_id)? else { return Ok(None) };
    let event = reads::events::load(tx, workspace, run.event_seq)?;
    let grant = match &run.grant_hash {
        Some(hash) => reads::runs::grant(tx, hash)?,
        None => None,
    };
    let few = i64::try_from(ENTRIES_MAX + 1).unwrap_or(i64::MAX);
    let of_run = ApprovalFilter { status: None, run_id: Some(run_id.to_owned()) };
    let mut approvals = reads::approvals::page(tx, workspace, &of_run, None, few)?;
    approvals.reverse();
    let mut replays = reads::events::by_id_prefix(tx, workspace, &replays_of(&run.event_id), few)?;
    // A sender may choose such an id.
    replays.retain(|event| replayed(event).as_deref() == Some(run.event_id.as_str()));
    let origin = match event.as_ref().and_then(replayed) {
        Some(id) => {
            let first = reads::events::by_id(tx, workspace, &id)?.into_iter().next();
            Some((id, first.and_then(|event| event.run_id)))
        }
        None => None,
    };
    Ok(Some(Facts {
        event,
        grant,
        spend: reads::spend::sum_of_run(tx, workspace, run_id)?,
        model_calls: reads::spend::of_run(tx, workspace, run_id, few)?,
        deliveries: reads::deliveries::of_run(tx, workspace, run_id)?,
        approvals,
        diagnostics: reads::runs::diagnostics(tx, run_id, few)?,
        replays,
        origin,
        run,
    }))
}

/// The id of the event that this one replays.
fn replayed(event: &EventRow) -> Option<String> {
    let envelope: Envelope = serde_json::from_str(event.body.as_ref()?).ok()?;
    envelope.event.metadata.get(REPLAY_OF)?.as_str().map(str::to_owned)
}

/// The first entries as they are shown, and whether there are more.
fn cut<T>(entries: &[T], view: impl Fn(&T) -> Value) -> (Vec<Value>, bool) {
    (entries.iter().take(ENTRIES_MAX).map(view).collect(), entries.len() > ENTRIES_MAX)
}

fn event(row: Option<EventRow>) -> (Value, bool) {
    let Some(row) = row else { return (Value::Null, false) };
    let is_large = row.body.as_ref().is_some_and(|body| body.len() > EVENT_BYTES_MAX);
    let mut view = event_view(row);
    if is_large {
        view["event"] = Value::Null;
    }
    (view, is_large)
}

/// Why the agent was chosen, as recorded with the event.
fn binding(run: &RunRow, event: Option<&EventRow>) -> Value {
    let body = event.and_then(|event| event.body.as_deref());
    let envelope: Option<Envelope> = body.and_then(|body| serde_json::from_str(body).ok());
    let bound = envelope.and_then(|envelope| envelope.bound);
    let (reason, beside) = bound.map(|bound| (bound.reason, bound.beside)).unzip();
    json!({"agent": run.agent, "reason": reason, "beside": beside.unwrap_or_default(),
        "queue": run.queue.as_str(), "deadline_s": run.deadline_ms / 1000,
        "on_interrupt": run.on_interrupt.as_str(), "delivery": run.surface, "steers": run.steers,
        "waited_ms": run.started_at.map(|at| (at - run.created_at).max(0))})
}

fn model_call(call: &ModelCallRow) -> Value {
    let usage: Value =
        call.usage.as_ref().and_then(|usage| serde_json::from_str(usage).ok()).unwrap_or_default();
    let count = |key: &str| usage[key].as_i64();
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    let parts = input.zip(output).map(|(input, output)| input.saturating_add(output));
    json!({"model": call.model, "method": call.method, "at": rfc3339(call.created_at),
        "duration_ms": call.duration_ms, "input_tokens": input, "output_tokens": output,
        "cached_input_tokens": count("cached_input_tokens"),
        "tokens": count("total_tokens").or(parts),
        "cost_usd": call.cost_micro.map(|micro| micro as f64 / 1_000_000.0),
        "outcome": call.outcome, "failed": has_failed(&call.outcome)})
}

fn diagnostic(note: &Diagnostic) -> Value {
    json!({"kind": note.kind, "message": note.message, "created_at": rfc3339(note.created_at)})
}

fn replay(event: &EventRow) -> Value {
    json!({"run_id": event.run_id, "event_id": event.event_id,
        "created_at": rfc3339(event.created_at)})
}
