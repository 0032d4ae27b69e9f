//! One run, from its start to its one terminal.
//!
//! Invariant: committed before acted on. The grant is stored before `run_agent`; results are stored before
//! they are published (except deltas within the reserved numbers); the terminal is stored, conditional on
//! status, attempt and epoch, before it is published, and the next run of the lane starts in that transaction.

mod dispatch;
mod inline;
mod spill;
mod stop;

pub(crate) use stop::{failure, status_of};

use crate::actions::ActionRights;
use crate::approvals::expires_ms;
use crate::artifacts::Kept;
use crate::context::{Envelope, Identity};
use crate::feed::{Batch, Feed};
use crate::follow_up::FollowUp;
use crate::grant::Grant;
use crate::host::Shared;
use crate::ids::now_ms;
use crate::ledger::{Intake, Ledger, StateRights, Terms};
use crate::live::LiveRun;
use greenroom_protocol::error::run_code;
use greenroom_protocol::result::kind;
use greenroom_protocol::{RawResult, RunError, RunStatus};
use greenroom_runtime::{Heard, RunEvent, RunHandle};
use greenroom_store::StoreError;
use greenroom_store::commands::{Applied, ApplyResults};
use greenroom_store::types::{ResultRecord, RunRow};
use std::sync::Arc;
use std::time::Duration;
use stop::{Stop, ended, refused};
use tokio::time::Instant;

/// How long deltas that were published stay unstored at most.
const FLUSH_AFTER: Duration = Duration::from_millis(100);
/// How many bytes of them stay unstored at most.
const FLUSH_BYTES: usize = 256 * 1024;
/// How long a complete message waits for the end of the run, which usually follows: one commit stores both.
const END_AFTER: Duration = Duration::from_millis(1);

/// The diagnostic of a run that a second process carried out.
const MOVED: &str = "the first process was replaced before it had read the run: \
    another carried it out";

/// Between two attempts to store results.
const STORE_RETRY: Duration = Duration::from_millis(500);

pub(crate) struct RunTask {
    shared: Arc<Shared>,
    run: RunRow,
    envelope: Arc<Envelope>,
    live: Arc<LiveRun>,
    feed: Arc<Feed>,
    isolation: Option<String>,
    /// Pinned bytes that results refer to, until their rows are stored.
    kept: Vec<Kept>,
    /// Results to publish once they are stored.
    held: Vec<ResultRecord>,
    /// Results of the runner that its own reads may not see yet.
    unapplied: usize,
    /// The text of its last message, if a plugin listens.
    answer: Option<String>,
    is_heard: bool,
}

/// When results are to be stored.
enum Storing {
    Now,
    Within(Duration),
    Nothing,
}

impl RunTask {
    pub(crate) fn new(
        shared: Arc<Shared>,
        run: RunRow,
        envelope: Arc<Envelope>,
        live: Arc<LiveRun>,
    ) -> Self {
        let feed = shared.feeds.open(&run.run_id);
        let is_heard = shared.runtime.is_heard(&run.agent);
        RunTask {
            shared,
            run,
            envelope,
            live,
            feed,
            isolation: None,
            kept: Vec::new(),
            held: Vec::new(),
            unapplied: 0,
            answer: None,
            is_heard,
        }
    }

    /// Carries out a run that the store says is running.
    pub(crate) async fn work(mut self) {
        tracing::debug!(run.id = %self.run.run_id, agent = %self.run.agent, "run starts");
        let mut is_moved = false;
        let (mut ledger, handle, over) = loop {
            let (mut ledger, mut handle) = match self.dispatch().await {
                Ok((grant, handle)) => (self.ledger(&grant), handle),
                Err(Stop::End(status, error)) => return self.end_unstarted(status, error).await,
                Err(Stop::HandOn | Stop::Leave | Stop::NotDelivered) => return,
            };
            self.isolation = Some(handle.isolation().to_owned());
            if is_moved {
                ledger.note("moved", MOVED, now_ms());
            }
            self.live.set_seat(handle.seat());
            self.live.set_with_runner(true);
            match self.stream(&mut ledger, &mut handle).await {
                Err(Stop::NotDelivered) => {
                    tracing::info!(run.id = %self.run.run_id, "run moved to another process");
                    is_moved = true;
                    self.live.set_with_runner(false);
                }
                over => break (ledger, handle, over),
            }
        };
        match over {
            Ok(()) if ledger.has_overflowed() => handle.cancel(run_code::OVERFLOW),
            Ok(()) => {}
            Err(Stop::End(status, error)) => {
                if status == RunStatus::Timeout {
                    self.live.overdue();
                }
                handle.cancel(&error.code);
                self.held.extend(ledger.end(status, error, now_ms()));
                if self.store(&mut ledger).await.is_err() {
                    return;
                }
            }
            Err(Stop::HandOn) => {
                // The next start continues from what is stored, whether this commit succeeds or not.
                let _ = self.store_and_tell(&mut ledger).await;
                return;
            }
            Err(Stop::Leave | Stop::NotDelivered) => return,
        }
        self.live.end();
        self.shared.feeds.close(&self.run.run_id);
        self.shared.live.leave(&self.run.run_id);
        self.tell_listeners();
        self.listen_after_the_end(ledger, handle).await;
    }

    /// Plugins that listen learn of the event once its run has ended.
    fn tell_listeners(&mut self) {
        if self.is_heard {
            let (event, answer) = (self.envelope.event.clone(), self.answer.take());
            self.shared.runtime.tell(Heard { agent: self.run.agent.clone(), event, answer });
        }
    }

    fn ledger(&self, grant: &Grant) -> Ledger {
        let identity = self.shared.identity(&self.run, &self.envelope).within(grant);
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

    /// Takes results until the run has ended; `Ok` means that its terminal is stored and published.
    async fn stream(&mut self, ledger: &mut Ledger, handle: &mut RunHandle) -> Result<(), Stop> {
        let mut store_at = None;
        let (stopped, due) = (self.stopped(), tokio::time::sleep_until(Instant::now()));
        tokio::pin!(stopped, due);
        loop {
            let is_due = tokio::select! {
                biased;
                stop = &mut stopped => return Err(stop),
                // Before the results: a runner that never pauses must not delay it.
                () = &mut due, if store_at.is_some() => true,
                event = handle.next() => match event {
                    RunEvent::Results(results) => match self.take_in(ledger, handle, results).await? {
                        Storing::Now => true,
                        Storing::Within(time) => {
                            let then = Instant::now() + time;
                            if store_at.is_none_or(|at| then < at) {
                                store_at = Some(then);
                                due.as_mut().reset(then);
                            }
                            false
                        }
                        Storing::Nothing => false,
                    },
                    RunEvent::End(end) => return Err(ended(end)),
                },
                () = self.live.flush_requested(), if self.unapplied > 0 => true,
            };
            if is_due {
                self.store_and_tell(ledger).await?;
                store_at = None;
                if ledger.is_over() {
                    return Ok(());
                }
            }
        }
    }

    /// Stores pending results and wakes the reads that wait for them.
    async fn store_and_tell(&mut self, ledger: &mut Ledger) -> Result<(), Stop> {
        self.store(ledger).await?;
        self.live.applied(std::mem::take(&mut self.unapplied));
        Ok(())
    }

    /// Numbers results, publishes those that need not be stored first, and says when the rest is to be stored.
    async fn take_in(
        &mut self,
        ledger: &mut Ledger,
        handle: &RunHandle,
        results: Vec<RawResult>,
    ) -> Result<Storing, Stop> {
        let count = results.len();
        if !self.held.is_empty() && self.spills(&results) {
            // Storing bytes may be slow: complete results do not wait for it.
            self.store_and_tell(ledger).await?;
        }
        let results = self.spill(ledger, results).await?;
        let Intake { live, held } = ledger.take_in(results, now_ms());
        self.shared.metrics.results(live.len() + held.len());
        let ends_a_message = !held.is_empty()
            && self.held.is_empty()
            && held.iter().all(|result| result.kind == kind::MESSAGE_COMPLETED);
        let shows = !live.is_empty();
        if !self.held.is_empty() {
            // Results are published in order.
            self.held.extend(live);
        } else if shows {
            self.feed.publish_unstored(Batch::new(&self.run.run_id, live));
        }
        self.held.extend(held);
        if self.held.is_empty() && ledger.unstored_bytes() <= FLUSH_BYTES && !ledger.is_over() {
            self.live.applied(count);
            return Ok(if shows { Storing::Within(FLUSH_AFTER) } else { Storing::Nothing });
        }
        self.unapplied += count;
        if !ends_a_message {
            return Ok(Storing::Now);
        }
        Ok(Storing::Within(END_AFTER + handle.read_delay().unwrap_or_default()))
    }

    /// Resolves when the run has to stop: cancelled, past its deadline, or the host shuts down.
    fn stopped(&self) -> impl Future<Output = Stop> + use<> {
        let (live, shared) = (Arc::clone(&self.live), Arc::clone(&self.shared));
        let deadline_s = self.run.deadline_ms / 1000;
        async move {
            tokio::select! {
                ending = live.ending() => {
                    Stop::End(status_of(ending.code), failure(ending.code, ending.reason, false))
                }
                () = live.deadline.passed() => {
                    let message = format!("the run took longer than {deadline_s} s");
                    Stop::End(RunStatus::Timeout, failure(run_code::DEADLINE_EXCEEDED, message, true))
                }
                () = shared.tasks.stopping().cancelled() => Stop::HandOn,
            }
        }
    }

    /// Commits everything since the last commit, then publishes the results that waited for it.
    async fn store(&mut self, ledger: &mut Ledger) -> Result<(), Stop> {
        let held = std::mem::take(&mut self.held);
        let folded = self.fold(ledger).await;
        let pending = ledger.commit();
        self.run.effects |= pending.changes.effects;
        let epoch_now = self.shared.store.epoch();
        let mut command =
            pending.into_command(&self.run, epoch_now, self.isolation.clone(), now_ms());
        command.artifacts = self.rows_of(&held);
        command.artifacts.extend(folded.iter().map(|kept| kept.row.clone()));
        let command = Arc::new(command);
        let applied = self.apply(&command).await?;
        if applied == Applied::Stale {
            tracing::warn!(run.id = %self.run.run_id, "output of an earlier attempt dropped");
            return Err(Stop::Leave);
        }
        self.kept.clear();
        if self.is_heard {
            let last = command.items.iter().rfind(|item| item.role == "assistant");
            self.answer = last.and_then(|item| item.text.clone()).or(self.answer.take());
        }
        let batch = (!held.is_empty()).then(|| Batch::new(&self.run.run_id, held));
        let mut follow_ups = vec![FollowUp::Publish { feed: Arc::clone(&self.feed), batch }];
        follow_ups.extend(FollowUp::applied(&command, applied));
        self.shared.follow_up(follow_ups).await;
        if let Some(terminal) = &command.terminal {
            self.shared.log_end(&self.run, &self.envelope, terminal);
        }
        Ok(())
    }

    /// Commits, and retries while the store is full or unavailable: results of a runner are not dropped.
    async fn apply(&self, command: &Arc<ApplyResults>) -> Result<Applied, Stop> {
        loop {
            match self.shared.store.commit(Arc::clone(command)).await {
                Ok(applied) => return Ok(applied),
                Err(error) if error.is_passing() => {
                    tracing::warn!(%error, run.id = %self.run.run_id, "cannot store results, will retry");
                }
                Err(error) => return Err(refused(&error)),
            }
            tokio::select! {
                () = tokio::time::sleep(STORE_RETRY) => {}
                () = self.shared.tasks.stopping().cancelled() => return Err(Stop::Leave),
            }
        }
    }

    /// Before a run has started: waits if the store may recover, else says how the run ends.
    async fn wait_for_store(&self, error: &StoreError) -> Result<(), Stop> {
        if !error.is_passing() {
            return Err(refused(error));
        }
        tracing::warn!(%error, run.id = %self.run.run_id, "cannot start run, will retry");
        tokio::select! {
            () = tokio::time::sleep(STORE_RETRY) => Ok(()),
            stop = self.stopped() => Err(stop),
        }
    }

    async fn end_unstarted(&mut self, status: RunStatus, error: RunError) {
        let identity = Arc::new(Identity::new(&self.run, &self.envelope));
        let numbers = (self.run.last_seq, self.run.reserved_seq);
        let terms = Terms { redactor: self.shared.redactor.clone(), ..Terms::default() };
        let mut ledger = Ledger::new(identity, terms, numbers);
        self.held.extend(ledger.end(status, error, now_ms()));
        if self.store(&mut ledger).await.is_ok() {
            self.live.end();
            self.tell_listeners();
        }
    }

    /// Results after the end take no number; they are stored as diagnostics.
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
