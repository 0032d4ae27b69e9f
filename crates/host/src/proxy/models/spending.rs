//! What one call of a model takes: reserved before, recorded after, whatever happens in between.
//!
//! Invariant: one row per call. A call that is given up is recorded with what can be told of it by then.

use super::super::call::{Call, failed, refuse};
use crate::budget::{Micro, Reservation, Wish, day_of};
use crate::host::Shared;
use crate::ids::now_ms;
use crate::live::LiveRun;
use greenroom_models::{Model, price};
use greenroom_protocol::api::models::{ModelStreamItem, ProviderResponse};
use greenroom_protocol::error::run_code;
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use greenroom_store::commands::RecordModelCall;
use greenroom_store::reads;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Bytes of text that are taken as one token where nobody has counted; few, so that estimates are high.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens that one call may be said to have taken.
const TOKENS_MAX: u64 = 1_000_000_000;
/// What one call may be said to have cost: a million dollars.
const COST_MAX: Micro = 1_000_000_000_000;

pub(super) struct Spending {
    shared: Arc<Shared>,
    live: Arc<LiveRun>,
    model: Arc<Model>,
    record: RecordModelCall,
    started: Instant,
    input_bytes: usize,
    output_bytes: usize,
    usage: Option<Object>,
    settled: AtomicBool,
    _reservation: Reservation,
}

/// What can be told of a call before it is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) input_bytes: usize,
    /// 0 where nobody knows.
    pub(super) output_tokens_max: u64,
}

impl Size {
    /// Of a call that puts nothing out.
    pub(super) fn of_input(input_bytes: usize) -> Self {
        Self { input_bytes, output_tokens_max: 0 }
    }
}

impl Spending {
    /// Makes room in the budgets, or ends the run.
    pub(super) async fn begin(
        call: &Call<'_>,
        model: &Arc<Model>,
        size: Size,
    ) -> Result<Self, AgentAPIError> {
        let identity = &call.rights.identity;
        let agent = call.settings.agents.iter().find(|agent| agent.name == identity.agent);
        let settings = model.settings();
        let guess = guessed(size.input_bytes, 0, size.output_tokens_max);
        let run_spent = run_spent(call).await?;
        let now_ms = now_ms();
        let wish = Wish {
            workspace_id: &identity.workspace_id,
            run_id: &identity.run_id,
            agent: &identity.agent,
            budget: agent.map(|agent| agent.budget).unwrap_or_default(),
            day: call.settings.budget_day,
            run_spent,
            estimate: settings.price.and_then(|p| price::cost_micro(&p, &guess)).unwrap_or(0),
            now_ms,
        };
        let reservation = call.shared.budgets.reserve(&wish).map_err(|exceeded| {
            let message = format!("the budget does not allow this call: {exceeded}");
            call.live.end_with(run_code::BUDGET_EXCEEDED, message.clone());
            refuse(ErrorCode::RuntimeError, message).detail("reason", run_code::BUDGET_EXCEEDED)
        })?;
        let record = RecordModelCall {
            workspace_id: identity.workspace_id.clone(),
            run_id: identity.run_id.clone(),
            agent: identity.agent.clone(),
            model: settings.name.clone(),
            method: call.method.as_str(),
            outcome: "cancelled".to_owned(),
            usage: None,
            tokens: None,
            cost_micro: None,
            charged_micro: 0,
            duration_ms: 0,
            day: day_of(now_ms),
            now_ms,
        };
        Ok(Self {
            shared: Arc::clone(call.shared),
            live: Arc::clone(call.live),
            model: Arc::clone(model),
            record,
            started: Instant::now(),
            input_bytes: size.input_bytes,
            output_bytes: 0,
            usage: None,
            settled: AtomicBool::new(false),
            _reservation: reservation,
        })
    }

    /// What has come so far counts, also when the caller goes away.
    pub(super) fn saw(&mut self, item: &ModelStreamItem) {
        self.output_bytes += match item {
            ModelStreamItem::TextDelta { text } | ModelStreamItem::ReasoningDelta { text } => {
                text.len()
            }
            ModelStreamItem::ToolCallDelta { args_text, .. } => args_text.len(),
            ModelStreamItem::Usage(usage) => {
                self.usage = Some(bounded(usage.clone()));
                0
            }
            _ => 0,
        };
    }

    pub(super) async fn done(&self, response: &ProviderResponse) -> Result<(), AgentAPIError> {
        let reason = response.metadata.get("finish_reason").and_then(Value::as_str);
        self.commit(reason.unwrap_or("stop"), self.usage.clone()).await
    }

    /// Of calls without a stream.
    pub(super) async fn counted(&self, usage: Option<Object>) -> Result<(), AgentAPIError> {
        self.commit("ok", usage.map(bounded)).await
    }

    pub(super) async fn failed(&self, error: &AgentAPIError) {
        // What the provider took in before it refused is only known where it said so.
        let guess = || guessed(self.input_bytes, self.output_bytes, 0);
        let usage = self.usage.clone().or_else(|| (self.output_bytes > 0).then(guess));
        if let Err(error) = self.commit(error.code.as_str(), usage).await {
            tracing::warn!(%error, "a failed call of a model could not be recorded");
        }
    }

    async fn commit(&self, outcome: &str, usage: Option<Object>) -> Result<(), AgentAPIError> {
        let record = self.settle(outcome, usage);
        let recorded = self.shared.store.record_model_call(record).await;
        recorded.map_err(|error| failed(&error))
    }

    /// Counts what the call took, once.
    fn settle(&self, outcome: &str, usage: Option<Object>) -> RecordModelCall {
        self.settled.store(true, Ordering::Relaxed);
        let cost = usage.as_ref().and_then(|usage| self.cost(usage));
        // An answer whose usage nobody tells is no free one: budgets reckon with what can be guessed.
        let answered = outcome != "cancelled" && (self.output_bytes > 0 || usage.is_some());
        let guess = || self.cost(&guessed(self.input_bytes, self.output_bytes, 0));
        let charged = cost.or_else(|| guess().filter(|_| answered)).unwrap_or(0);
        // On the day on which it ended, in the store as here.
        let now_ms = now_ms();
        self.count(charged, now_ms);
        RecordModelCall {
            outcome: outcome.to_owned(),
            day: day_of(now_ms),
            tokens: usage.as_ref().and_then(tokens),
            usage: usage.map(|usage| Value::Object(usage).to_string()),
            cost_micro: cost,
            charged_micro: charged,
            duration_ms: i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX),
            ..self.record.clone()
        }
    }

    fn cost(&self, usage: &Object) -> Option<Micro> {
        let cost = self.model.settings().price.and_then(|price| price::cost_micro(&price, usage));
        cost.map(|cost| cost.clamp(0, COST_MAX))
    }

    fn count(&self, cost: Micro, now_ms: i64) {
        self.live.spend(cost);
        let (workspace, agent) = (&self.record.workspace_id, &self.record.agent);
        self.shared.budgets.spent(workspace, agent, cost, now_ms);
    }
}

/// The caller went away: the provider has worked all the same.
impl Drop for Spending {
    fn drop(&mut self) {
        if self.settled.load(Ordering::Relaxed) {
            return;
        }
        let guess = guessed(self.input_bytes, self.output_bytes, 0);
        let usage = self.usage.clone().unwrap_or(guess);
        let record = self.settle("cancelled", Some(usage));
        let shared = Arc::clone(&self.shared);
        self.shared.tasks.spawn("model call given up", async move {
            if let Err(error) = shared.store.record_model_call(record).await {
                tracing::warn!(%error, "a call of a model that was given up could not be recorded");
            }
        });
    }
}

/// What the run has cost, attempts before this one included.
async fn run_spent(call: &Call<'_>) -> Result<Micro, AgentAPIError> {
    let here = call.live.spent();
    if call.rights.attempt <= 1 {
        return Ok(here);
    }
    let identity = &call.rights.identity;
    let (workspace, run_id) = (identity.workspace_id.clone(), identity.run_id.clone());
    let read =
        call.shared.store.read(move |tx| reads::spend::sum_of_run(tx, &workspace, &run_id)).await;
    let sum = read.map_err(|error| failed(&error))?;
    Ok(sum.cost_micro.unwrap_or(0).max(here))
}

fn guessed(input_bytes: usize, output_bytes: usize, most_out: u64) -> Object {
    let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
    let output = tokens(output_bytes).max(most_out);
    Object::from_iter([
        ("input_tokens".to_owned(), tokens(input_bytes).into()),
        ("output_tokens".to_owned(), output.into()),
        ("estimated".to_owned(), true.into()),
    ])
}

/// Counts as a provider may have them; a row of nonsense must not spoil the sums of a day.
fn bounded(mut usage: Object) -> Object {
    for count in usage.values_mut() {
        if count.as_u64().is_some_and(|count| count > TOKENS_MAX) {
            *count = TOKENS_MAX.into();
        }
    }
    usage
}

/// In and out together, unless nothing is known of them.
fn tokens(usage: &Object) -> Option<i64> {
    let count = |key: &str| usage.get(key).and_then(Value::as_i64);
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    let parts = input.or(output).map(|_| input.unwrap_or(0).saturating_add(output.unwrap_or(0)));
    count("total_tokens").or(parts)
}
