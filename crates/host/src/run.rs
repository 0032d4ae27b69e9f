//! One run, from its start to its one terminal.
//!
//! Invariant: committed before acted on. The grant is stored before `run_agent`; results are stored before
//! they are shown (deltas within the reserved numbers excepted); the terminal is stored, conditional on
//! status, attempt and epoch, before anyone hears of it, and the next run of the lane starts in that very
//! transaction.

mod spill;
mod stop;

pub(crate) use stop::{failure, status_of};

use crate::actions::ActionRights;
use crate::approvals::expires_ms;
use crate::artifacts::Kept;
use crate::context::{ContextParts, Envelope, Identity};
use crate::feed::{Batch, Feed};
use crate::grant::Grant;
use crate::host::Shared;
use crate::ids::now_ms;
use crate::ledger::{Ledger, StateRights, Terms};
use crate::live::{LiveRun, Rights};
use crate::proxy::audit::Subject;
use crate::resources::{Resources, granted_resources};
use greenroom_protocol::error::run_code;
use greenroom_protocol::{AgentRunRequest, RunError, RunStatus, RunnerId};
use greenroom_runtime::{RunEvent, RunHandle, Unavailable};
use greenroom_store::StoreError;
use greenroom_store::commands::{Applied, ApplyResults, FreezeGrant};
use greenroom_store::fault;
use greenroom_store::types::{ResultRecord, RunRow};
use std::sync::Arc;
use std::time::Duration;
use stop::{Stop, ended, refused, unavailable};
use tokio::time::Instant;

/// Between two attempts to give a run to its runner.
const DISPATCH_AGAIN: Duration = Duration::from_millis(20);
/// How long shown deltas may stay unstored.
const FLUSH_AFTER: Duration = Duration::from_millis(100);
/// How much of them may stay unstored.
const FLUSH_BYTES: usize = 256 * 1024;

/// Between two tries to store results.
const STORE_AGAIN: Duration = Duration::from_millis(500);

pub(crate) struct RunTask {
    shared: Arc<Shared>,
    run: RunRow,
    envelope: Arc<Envelope>,
    live: Arc<LiveRun>,
    feed: Arc<Feed>,
    isolation: Option<String>,
    /// Bytes that results taken in refer to; their rows are not written yet.
    kept: Vec<Kept>,
}

impl RunTask {
    /// Carries a run out that the store says is running.
    pub(crate) async fn carry_out(shared: Arc<Shared>, run: RunRow, envelope: Arc<Envelope>) {
        let live = shared.live.enter(&run);
        let feed = shared.feeds.open(&run.run_id);
        let run_id = run.run_id.clone();
        let mut task = RunTask {
            shared: Arc::clone(&shared),
            run,
            envelope,
            live,
            feed,
            isolation: None,
            kept: Vec::new(),
        };
        tracing::debug!(run.id = %run_id, agent = %task.run.agent, "run starts");
        task.work().await;
        shared.feeds.close(&run_id);
        shared.live.leave(&run_id);
    }

    async fn work(&mut self) {
        let (mut ledger, mut handle) = match self.dispatch().await {
            Ok((grant, handle)) => (self.ledger(&grant), handle),
            Err(Stop::HandOn | Stop::Leave) => return,
            Err(Stop::End(status, error)) => return self.end_unstarted(status, error).await,
        };
        self.isolation = Some(handle.isolation().to_owned());
        let over = self.stream(&mut ledger, &mut handle).await;
        match over {
            Ok(()) if ledger.has_overflowed() => handle.cancel(run_code::OVERFLOW),
            Ok(()) => {}
            Err(Stop::End(status, error)) => {
                if status == RunStatus::Timeout {
                    self.live.overdue();
                }
                handle.cancel(&error.code);
                let held = ledger.end(status, error, now_ms());
                if self.store(&mut ledger, held).await.is_err() {
                    return;
                }
            }
            Err(Stop::HandOn) => {
                // What was shown so far is kept; whether that worked or not, the next start goes on from it.
                let _ = self.store(&mut ledger, Vec::new()).await;
                return;
            }
            Err(Stop::Leave) => return,
        }
        self.live.end();
        self.shared.feeds.close(&self.run.run_id);
        self.shared.live.leave(&self.run.run_id);
        self.listen_after_the_end(ledger, handle).await;
    }

    fn ledger(&self, grant: &Grant) -> Ledger {
        let identity = self.shared.identity(&self.run, &self.envelope);
        let settings = self.shared.settings.load();
        let state = StateRights {
            scopes: grant.state.clone(),
            value_bytes_max: settings.limits.state_value_bytes,
            owner_bytes_max: i64::try_from(settings.limits.state_owner_bytes).ok(),
        };
        let result_bytes_max = settings.limits.result_bytes;
        let actions = ActionRights {
            granted: grant.actions.clone(),
            expires_ms: expires_ms(&settings),
            pending_max: settings.limits.approvals_pending,
        };
        let redactor = self.shared.redactor.clone();
        let tool_calls = Arc::clone(&self.live.tool_calls);
        let terms = Terms { state, actions, result_bytes_max, redactor, tool_calls };
        let numbers = (self.run.last_seq, self.run.reserved_seq);
        Ledger::new(Arc::new(identity), terms, numbers)
    }

    /// Waits for the runner, freezes the grant, tells the runner to start. A process that goes away before it
    /// has heard of the run leaves it to its successor.
    async fn dispatch(&mut self) -> Result<(Arc<Grant>, RunHandle), Stop> {
        let runner_id = RunnerId::parse(&self.run.runner_id)
            .map_err(|error| unavailable(error.to_string(), false))?;
        let until = Instant::now() + self.shared.settings.load().limits.runner_start;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let descriptor = tokio::select! {
                found = self.shared.runtime.ready(&runner_id, left) => {
                    found.map_err(|error| unavailable(error.to_string(), true))?
                }
                stop = self.stopped() => return Err(stop),
            };
            let grant = match self.run.grant_hash.clone() {
                Some(hash) => self.frozen(&hash).await?,
                None => self.freeze(&descriptor.manifest).await?,
            };
            match self.hand_over(&runner_id, &grant).await? {
                Ok(handle) => return Ok((grant, handle)),
                Err(error) if Instant::now() + DISPATCH_AGAIN > until => {
                    return Err(unavailable(error.to_string(), true));
                }
                Err(_) => tokio::time::sleep(DISPATCH_AGAIN).await,
            }
        }
    }

    async fn hand_over(
        &self,
        runner_id: &RunnerId,
        grant: &Arc<Grant>,
    ) -> Result<Result<RunHandle, Unavailable>, Stop> {
        let resources = self.shared.resources.load_full();
        let context = loop {
            match self.context(grant, &resources).await {
                Ok(context) => break context,
                Err(error) => self.wait_for_store(&error).await?,
            }
        };
        let request = AgentRunRequest {
            runner_id: runner_id.clone(),
            runner_name: runner_id.runner().to_owned(),
            context,
        };
        fault::point("before_run_agent");
        // From here on the runner may call: its rights stand before it hears of the run.
        let identity = self.shared.identity(&self.run, &self.envelope);
        let attempt = self.run.attempt;
        let subject = Arc::new(Subject {
            workspace_id: self.run.workspace_id.clone(),
            run_id: Some(self.run.run_id.clone()),
            attempt: Some(attempt),
            agent: self.run.agent.clone(),
        });
        let grant = Arc::clone(grant);
        self.live.granted(Rights { grant, resources, identity, attempt, subject });
        let handle = self.shared.runtime.start_run(request).await;
        fault::point("after_run_agent");
        Ok(handle)
    }

    async fn frozen(&self, hash: &str) -> Result<Arc<Grant>, Stop> {
        loop {
            match self.shared.grant(hash).await {
                Ok(grant) => return Ok(grant),
                Err(error) => self.wait_for_store(&error).await?,
            }
        }
    }

    /// Not everything was known when the event came: the grant is made now, and stored first.
    async fn freeze(
        &mut self,
        manifest: &greenroom_protocol::AgentRunnerManifest,
    ) -> Result<Arc<Grant>, Stop> {
        let settings = self.shared.settings.load();
        let agent = settings.agents.iter().find(|agent| agent.name == self.run.agent);
        let agent = agent.ok_or_else(|| {
            unavailable(format!("agent `{}` is no longer configured", self.run.agent), false)
        })?;
        let resources = self.shared.resources.load_full();
        let patience = settings.limits.runner_start;
        tokio::select! {
            () = resources.tools.settled(&agent.grant.tools, patience) => {}
            stop = self.stopped() => return Err(stop),
        }
        let grant = Arc::new(Grant::build(agent, manifest, &resources.names()));
        let doc = grant.to_doc();
        self.run.grant_hash = Some(doc.hash.clone());
        let command = FreezeGrant {
            workspace_id: self.run.workspace_id.clone(),
            run_id: self.run.run_id.clone(),
            attempt: self.run.attempt,
            epoch: self.run.epoch,
            grant: doc,
            steers: grant.steering,
        };
        loop {
            match self.shared.store.freeze_grant(command.clone()).await {
                Ok(true) => return Ok(grant),
                Ok(false) => return Err(Stop::Leave),
                Err(error) => self.wait_for_store(&error).await?,
            }
        }
    }

    async fn context(
        &self,
        grant: &Grant,
        resources: &Resources,
    ) -> Result<greenroom_protocol::AgentRunContext, StoreError> {
        let identity = Identity::new(&self.run, &self.envelope);
        let state = self.shared.state_snapshot(&identity, grant).await?;
        let delivery = self.shared.delivery_context(&identity);
        let parts = ContextParts {
            run: &self.run,
            envelope: &self.envelope,
            grant,
            state,
            delivery,
            cursors: &self.shared.cursors,
            run_token: self.shared.live.issue_token(&self.run.run_id, self.run.attempt),
            resources: granted_resources(grant, resources),
            remaining: self.live.deadline.left(),
            now_ms: now_ms(),
            timezone: self.shared.settings.load().timezone.clone(),
        };
        Ok(parts.build())
    }

    /// Takes results in until the run is over; `Ok` means that its terminal is stored and shown.
    async fn stream(&mut self, ledger: &mut Ledger, handle: &mut RunHandle) -> Result<(), Stop> {
        let mut flush_at = None;
        loop {
            let flush = flush_at.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                stop = self.stopped() => return Err(stop),
                event = handle.next() => match event {
                    RunEvent::Results(results) => {
                        let count = results.len();
                        let results = self.spill(ledger, results).await?;
                        let intake = ledger.take_in(results, now_ms());
                        self.shared.metrics.results(intake.live.len() + intake.held.len());
                        if !intake.live.is_empty() {
                            self.feed.publish_unstored(Batch::new(&self.run.run_id, intake.live));
                            flush_at.get_or_insert_with(|| Instant::now() + FLUSH_AFTER);
                        }
                        if !intake.held.is_empty() || ledger.unstored_bytes() > FLUSH_BYTES {
                            self.store(ledger, intake.held).await?;
                            flush_at = None;
                        }
                        if ledger.is_over() {
                            return Ok(());
                        }
                        self.live.applied(count);
                    }
                    RunEvent::End(end) => return Err(ended(end)),
                },
                () = tokio::time::sleep_until(flush), if flush_at.is_some() => {
                    self.store(ledger, Vec::new()).await?;
                    flush_at = None;
                }
            }
        }
    }

    /// Resolves when the run has to stop: cancelled, out of time, or the host goes down.
    async fn stopped(&self) -> Stop {
        tokio::select! {
            ending = self.live.ending() => {
                Stop::End(status_of(ending.code), failure(ending.code, ending.reason, false))
            }
            () = self.live.deadline.passed() => {
                let message = format!("the run took longer than {} s", self.run.deadline_ms / 1000);
                Stop::End(RunStatus::Timeout, failure(run_code::DEADLINE_EXCEEDED, message, true))
            }
            () = self.shared.tasks.stopping().cancelled() => Stop::HandOn,
        }
    }

    /// Commits everything since the last time, then shows what waited for it.
    async fn store(&mut self, ledger: &mut Ledger, held: Vec<ResultRecord>) -> Result<(), Stop> {
        let folded = self.fold(ledger).await;
        let pending = ledger.commit();
        let terminal = pending.terminal.clone();
        let delivers = !pending.changes.deliveries.is_empty();
        let asks = !pending.changes.approvals.is_empty();
        self.run.effects |= pending.changes.effects;
        let epoch_now = self.shared.store.epoch();
        let mut command =
            pending.into_command(&self.run, epoch_now, self.isolation.clone(), now_ms());
        command.artifacts = self.rows_of(&held);
        command.artifacts.extend(folded.iter().map(|kept| kept.row.clone()));
        let Applied::Done { next, requeued } = self.apply(command).await? else {
            tracing::warn!(run.id = %self.run.run_id, "the run is no longer ours, its output is dropped");
            return Err(Stop::Leave);
        };
        self.kept.clear();
        fault::point("before_publish");
        let batch = (!held.is_empty()).then(|| Batch::new(&self.run.run_id, held));
        self.feed.publish_stored(batch);
        fault::point("after_publish");
        self.shared.wake_indexing.notify_one();
        if delivers {
            self.shared.wake_delivery.notify_one();
        }
        if asks {
            self.shared.approvals.due.notify_one();
            self.shared.approvals.asked.tell(&self.run.run_id);
        }
        if let Some(terminal) = terminal {
            self.shared.ended(&self.run, &terminal);
        }
        self.shared.metrics.opened(requeued);
        if let Some(next) = next {
            Shared::start(&self.shared, *next, None);
        }
        Ok(())
    }

    /// Commits, and waits for space or for the database to come back: what a runner has said is not dropped
    /// because the store cannot take it just now.
    async fn apply(&self, command: ApplyResults) -> Result<Applied, Stop> {
        let command = Arc::new(command);
        loop {
            match self.shared.store.apply(Arc::clone(&command)).await {
                Ok(applied) => return Ok(applied),
                Err(error) if error.is_passing() => {
                    tracing::warn!(%error, run.id = %self.run.run_id, "results wait for the store");
                }
                Err(error) => return Err(refused(&error)),
            }
            tokio::select! {
                () = tokio::time::sleep(STORE_AGAIN) => {}
                () = self.shared.tasks.stopping().cancelled() => return Err(Stop::Leave),
            }
        }
    }

    /// Before a run has started: waits a little when the store may answer later, else says how it ends. No
    /// run of this host is left without its task.
    async fn wait_for_store(&self, error: &StoreError) -> Result<(), Stop> {
        if !error.is_passing() {
            return Err(refused(error));
        }
        tracing::warn!(%error, run.id = %self.run.run_id, "a run waits for the store");
        tokio::select! {
            () = tokio::time::sleep(STORE_AGAIN) => Ok(()),
            stop = self.stopped() => Err(stop),
        }
    }

    async fn end_unstarted(&mut self, status: RunStatus, error: RunError) {
        let identity = Arc::new(Identity::new(&self.run, &self.envelope));
        let numbers = (self.run.last_seq, self.run.reserved_seq);
        let terms = Terms { redactor: self.shared.redactor.clone(), ..Terms::default() };
        let mut ledger = Ledger::new(identity, terms, numbers);
        let held = ledger.end(status, error, now_ms());
        if self.store(&mut ledger, held).await.is_ok() {
            self.live.end();
        }
    }

    /// Results that come after the end take no number, but are kept as diagnostics.
    async fn listen_after_the_end(&self, mut ledger: Ledger, mut handle: RunHandle) {
        let grace = self.shared.settings.load().limits.cancel_grace;
        let until = Instant::now() + grace;
        while let Ok(RunEvent::Results(results)) =
            tokio::time::timeout_at(until, handle.next()).await
        {
            ledger.take_in(results, now_ms());
        }
        let diagnostics = ledger.take_diagnostics();
        if !diagnostics.is_empty() {
            self.shared.record(&self.run.run_id, diagnostics).await;
        }
    }
}
