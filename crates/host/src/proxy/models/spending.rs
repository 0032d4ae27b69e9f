//! The cost of one model call: reserved before, recorded after, whatever happens in between.
//!
//! Invariant: a reservation is committed before the provider is called, and one row per call before its
//! answer is sent. A call that is cancelled is recorded with what is known of it; one whose host died is
//! charged with what was reserved (`ChargeInterrupted`). The commits of a call that costs nothing are not
//! awaited: they go with the next commit.

use super::super::call::{Call, failed, refuse};
use super::usage::{bounded, cost, guessed, is_credible, tokens};
use crate::budget::{Budget, Exceeded, Micro, Reservation, Wish, day_of};
use crate::host::Shared;
use crate::ids::{self, DEFAULT_WORKSPACE, now_ms};
use crate::live::LiveRun;
use greenroom_models::Model;
use greenroom_protocol::api::models::{ModelStreamItem, ProviderResponse};
use greenroom_protocol::error::run_code;
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use greenroom_store::commands::{BeginModelCall, RecordModelCall};
use greenroom_store::{Postponed, fault, reads};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the record of a call may wait for another commit.
const BEHIND_MAX: Duration = Duration::from_millis(200);

/// Output of a call without a limit whose host did not see its end.
const OUTPUT_TOKENS_ASSUMED: u64 = 4096;
/// Pays for calls of the host itself: no agent has this name.
const THE_HOST: &str = "";

pub(crate) struct Spending {
    shared: Arc<Shared>,
    live: Option<Arc<LiveRun>>,
    model: Arc<Model>,
    record: RecordModelCall,
    /// The charge if the host does not see its end.
    at_worst: Micro,
    started: Instant,
    input_bytes: usize,
    output_bytes: usize,
    usage: Option<Object>,
    stage: Stage,
    _reservation: Reservation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The provider was not called yet.
    Reserved,
    UnderWay,
    Settled,
}

/// What is known of a call before it is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) input_bytes: usize,
    /// Absent if there is no limit.
    pub(crate) output_tokens_max: Option<u64>,
}

impl Size {
    /// Of a call without output.
    pub(crate) fn of_input(input_bytes: usize) -> Self {
        Self { input_bytes, output_tokens_max: Some(0) }
    }
}

/// Who pays, and within which limits.
struct Payer<'a> {
    workspace_id: &'a str,
    run_id: &'a str,
    agent: &'a str,
    budget: Budget,
    run_spent: Micro,
    live: Option<&'a Arc<LiveRun>>,
}

impl Spending {
    /// Reserves the cost in the budgets, or ends the run.
    pub(super) async fn begin(
        call: &Call<'_>,
        model: &Arc<Model>,
        size: Size,
    ) -> Result<Self, AgentAPIError> {
        let identity = &call.rights.identity;
        let agent = call.settings.agents.iter().find(|agent| agent.name == identity.agent);
        let payer = Payer {
            workspace_id: &identity.workspace_id,
            run_id: &identity.run_id,
            agent: &identity.agent,
            budget: agent.map(|agent| agent.budget).unwrap_or_default(),
            run_spent: run_spent(call).await?,
            live: Some(call.live),
        };
        let reserved = Self::reserve(call.shared, &payer, model, call.method, size);
        let mut spending = reserved.map_err(|exceeded| {
            let message = format!("the budget does not allow this call: {exceeded}");
            call.live.end_with(run_code::BUDGET_EXCEEDED, message.clone());
            refuse(ErrorCode::RuntimeError, message).detail("reason", run_code::BUDGET_EXCEEDED)
        })?;
        spending.open().await?;
        Ok(spending)
    }

    /// For a call of the host itself: it counts for the budget of all agents together.
    pub(crate) async fn of_host(
        shared: &Arc<Shared>,
        model: &Arc<Model>,
        method: &'static str,
        size: Size,
    ) -> Result<Self, AgentAPIError> {
        let payer = Payer {
            workspace_id: DEFAULT_WORKSPACE,
            run_id: "",
            agent: THE_HOST,
            budget: Budget::default(),
            run_spent: 0,
            live: None,
        };
        let reserved = Self::reserve(shared, &payer, model, method, size);
        let mut spending = reserved.map_err(|exceeded| {
            refuse(ErrorCode::RuntimeError, format!("the budget does not allow it: {exceeded}"))
        })?;
        spending.open().await?;
        Ok(spending)
    }

    fn reserve(
        shared: &Arc<Shared>,
        payer: &Payer<'_>,
        model: &Arc<Model>,
        method: &'static str,
        size: Size,
    ) -> Result<Self, Exceeded> {
        let reckoned = |output: u64| {
            let usage = guessed(size.input_bytes, 0, size.output_tokens_max.unwrap_or(output));
            cost(model, &usage).unwrap_or(0)
        };
        let now_ms = now_ms();
        let wish = Wish {
            workspace_id: payer.workspace_id,
            run_id: payer.run_id,
            agent: payer.agent,
            budget: payer.budget,
            day: shared.settings.load().budget_day,
            run_spent: payer.run_spent,
            estimate: reckoned(0),
            now_ms,
        };
        let reservation = shared.budgets.reserve(&wish)?;
        let record = RecordModelCall {
            workspace_id: payer.workspace_id.to_owned(),
            call_id: ids::fresh("mc"),
            run_id: payer.run_id.to_owned(),
            agent: payer.agent.to_owned(),
            model: model.settings().name.clone(),
            method: method.into(),
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
            shared: Arc::clone(shared),
            live: payer.live.cloned(),
            model: Arc::clone(model),
            record,
            at_worst: reckoned(OUTPUT_TOKENS_ASSUMED),
            started: Instant::now(),
            input_bytes: size.input_bytes,
            output_bytes: 0,
            usage: None,
            stage: Stage::Reserved,
            _reservation: reservation,
        })
    }

    /// Commits the reservation: from here on the call is charged, even if the host dies.
    async fn open(&mut self) -> Result<(), AgentAPIError> {
        let record = &self.record;
        let begin = BeginModelCall {
            workspace_id: record.workspace_id.clone(),
            call_id: record.call_id.clone(),
            run_id: record.run_id.clone(),
            agent: record.agent.clone(),
            model: record.model.clone(),
            method: record.method.clone(),
            reserved_micro: self.at_worst,
            day: record.day,
            epoch: self.shared.store.epoch(),
            now_ms: record.now_ms,
        };
        let store = &self.shared.store;
        if self.at_worst == 0 {
            see_to(&self.shared, store.postpone(begin)).await?;
        } else {
            store.commit(begin).await.map_err(|error| failed(&error))?;
        }
        self.stage = Stage::UnderWay;
        fault::point("model_reserved");
        Ok(())
    }

    /// Output so far counts, also when the caller goes away.
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

    pub(super) async fn done(&mut self, response: &ProviderResponse) -> Result<(), AgentAPIError> {
        let reason = response.metadata.get("finish_reason").and_then(Value::as_str);
        self.commit(reason.unwrap_or("stop"), self.reported_usage()).await
    }

    /// Of calls without a stream.
    pub(crate) async fn counted(&mut self, usage: Option<Object>) -> Result<(), AgentAPIError> {
        self.commit("ok", usage.map(bounded)).await
    }

    pub(crate) async fn failed(&mut self, error: &AgentAPIError) {
        // What a provider used before it refused is known only if it says so.
        let guess = || guessed(self.input_bytes, self.output_bytes, 0);
        let usage = self.reported_usage().or_else(|| (self.output_bytes > 0).then(guess));
        if let Err(error) = self.commit(error.code.as_str(), usage).await {
            tracing::warn!(%error, "cannot record a failed model call");
        }
    }

    /// The usage that the provider reported, if it is plausible.
    fn reported_usage(&self) -> Option<Object> {
        self.usage.clone().filter(|usage| is_credible(usage, self.output_bytes))
    }

    async fn commit(&mut self, outcome: &str, usage: Option<Object>) -> Result<(), AgentAPIError> {
        let record = self.settle(outcome, usage);
        let store = &self.shared.store;
        if self.at_worst == 0 && record.charged_micro == 0 {
            return see_to(&self.shared, store.postpone(record)).await;
        }
        store.commit(record).await.map(drop).map_err(|error| failed(&error))
    }

    /// Records the usage, once.
    fn settle(&mut self, outcome: &str, usage: Option<Object>) -> RecordModelCall {
        self.stage = Stage::Settled;
        let known = usage.as_ref().and_then(|usage| cost(&self.model, usage));
        // Usage that is not reported is estimated: it must not count as free.
        let answered = outcome != "cancelled" && (self.output_bytes > 0 || usage.is_some());
        let guess = || cost(&self.model, &guessed(self.input_bytes, self.output_bytes, 0));
        let charged = known.or_else(|| guess().filter(|_| answered)).unwrap_or(0);
        // Counted on the day on which it ended, as in the store.
        let now_ms = now_ms();
        self.count(charged, now_ms);
        let took = self.started.elapsed();
        let tokens = usage.as_ref().and_then(tokens);
        self.shared.metrics.model_call(took, tokens);
        let record = RecordModelCall {
            outcome: outcome.to_owned(),
            day: day_of(now_ms),
            tokens,
            usage: usage.map(|usage| Value::Object(usage).to_string()),
            cost_micro: known,
            charged_micro: charged,
            duration_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
            ..self.record.clone()
        };
        if let Some(rights) = self.live.as_ref().and_then(|live| live.rights()) {
            self.shared.trace_model_call(&rights.identity, self.model.settings(), &record);
        }
        record
    }

    fn count(&self, cost: Micro, now_ms: i64) {
        if let Some(live) = &self.live {
            live.spend(cost);
        }
        let (workspace, agent) = (&self.record.workspace_id, &self.record.agent);
        self.shared.budgets.spent(workspace, agent, cost, now_ms);
    }
}

/// The caller went away; the provider, once called, has worked all the same.
impl Drop for Spending {
    fn drop(&mut self) {
        let record = match self.stage {
            Stage::Settled => return,
            Stage::Reserved => RecordModelCall {
                cost_micro: self.model.settings().price.map(|_| 0),
                ..self.record.clone()
            },
            Stage::UnderWay => {
                let guess = guessed(self.input_bytes, self.output_bytes, 0);
                let usage = self.reported_usage().unwrap_or(guess);
                self.settle("cancelled", Some(usage))
            }
        };
        self.shared.store.postpone(record);
        // Immediately: what ends the run may be in progress already.
        flush(&self.shared, Duration::ZERO);
    }
}

/// Postponed records go with the next commit, or by themselves after a moment.
async fn see_to(shared: &Arc<Shared>, postponed: Postponed) -> Result<(), AgentAPIError> {
    match postponed {
        Postponed::First => flush(shared, BEHIND_MAX),
        Postponed::Behind => {}
        Postponed::Full => shared.store.flush().await.map_err(|error| failed(&error))?,
    }
    Ok(())
}

fn flush(shared: &Arc<Shared>, after: Duration) {
    let (store, stopping) = (shared.store.clone(), shared.tasks.stopping().clone());
    shared.tasks.spawn("records of model calls", async move {
        // A closed store writes them too.
        tokio::select! {
            () = tokio::time::sleep(after) => {}
            () = stopping.cancelled() => {}
        }
        if let Err(error) = store.flush().await {
            tracing::warn!(%error, "cannot record model calls");
        }
    });
}

/// What the run has cost, earlier attempts included.
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
    Ok(sum.charged_micro.max(here))
}
