//! What the host does once a commit is durable: decided by pure functions, carried out in one place.
//!
//! Invariant: code that commits a command others wait for passes its outcome to `Shared::follow_up`. Nothing
//! else starts a run, publishes stored results, or wakes the tasks behind them.

use crate::context::Envelope;
use crate::feed::{Batch, Feed};
use crate::host::Shared;
use crate::run::RunTask;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{
    Accepted, Answered, Applied, ApplyResults, CancelRequest, Displaced, RequestAction, Requested,
    Wanted,
};
use greenroom_store::reads::deliveries::Lane;
use greenroom_store::types::{ApprovalRow, RunRow};
use greenroom_store::{fault, reads};
use std::sync::Arc;

/// Why a run ends that a newer event replaces.
const REPLACED: &str = "replaced by a newer event";

#[derive(Debug)]
pub(crate) enum FollowUp {
    /// Shows readers of a run the results that were stored.
    Publish { feed: Arc<Feed>, batch: Option<Batch> },
    /// Puts new items of a transcript into the search index.
    Index,
    /// Sends new deliveries.
    Deliver(Vec<Lane>),
    /// Serves a lane of the outbox at once, even if it waits for its next attempt.
    DeliverNow(Lane),
    /// Tells listeners that this run asked for an approval, which may expire before all others.
    AnnounceApproval { run_id: String },
    /// Wakes the call that waits for this approval.
    WakeApproval { approval_id: String },
    /// Wakes the call that waits for the outcome of this delivery.
    WakeDelivery { delivery_id: String },
    /// Counts runs that were queued or started.
    CountOpened(usize),
    /// Counts a run that ended.
    CountEnded(RunStatus),
    /// Shows readers the end of a run that was cancelled while it was queued.
    CloseQueued(RunRow),
    /// Cancels a run whose own task has to end it.
    CancelRunning { workspace_id: String, run_id: String, reason: &'static str },
    /// Carries out a run that the store says is running. Without its envelope, the stored event is read.
    Start { run: RunRow, envelope: Option<Arc<Envelope>> },
}

impl FollowUp {
    pub(crate) fn accepted(accepted: Accepted, envelope: Arc<Envelope>) -> Vec<FollowUp> {
        let (run, displaced) = match accepted {
            Accepted::New { run, displaced } => (run, displaced),
            Accepted::Steered { .. } => return vec![FollowUp::Index],
            Accepted::Repeated { .. }
            | Accepted::SteeredBefore { .. }
            | Accepted::Conflict
            | Accepted::LaneFull
            | Accepted::ForeignConversation => return Vec::new(),
        };
        let mut follow_ups = vec![FollowUp::Index];
        if let Some(run) = run {
            let Displaced { cancelled, requeued, replaced } = displaced;
            follow_ups.push(FollowUp::CountOpened(1 + requeued));
            follow_ups.extend(cancelled.into_iter().map(FollowUp::CloseQueued));
            follow_ups.extend(replaced.into_iter().map(|run_id| FollowUp::CancelRunning {
                workspace_id: run.workspace_id.clone(),
                run_id,
                reason: REPLACED,
            }));
            if run.status == RunStatus::Running {
                follow_ups.push(FollowUp::Start { run, envelope: Some(envelope) });
            }
        }
        follow_ups
    }

    pub(crate) fn applied(command: &ApplyResults, applied: Applied) -> Vec<FollowUp> {
        let Applied::Done { next, requeued } = applied else { return Vec::new() };
        let mut follow_ups = vec![FollowUp::Index];
        if !command.deliveries.is_empty() {
            let lanes = command.deliveries.iter().map(Lane::from).collect();
            follow_ups.push(FollowUp::Deliver(lanes));
        }
        if !command.approvals.is_empty() {
            follow_ups.push(FollowUp::AnnounceApproval { run_id: command.fence.run_id.clone() });
        }
        if let Some(terminal) = &command.terminal {
            follow_ups.push(FollowUp::CountEnded(terminal.status));
            follow_ups.push(FollowUp::CountOpened(requeued));
        }
        follow_ups.extend(next.map(|next| FollowUp::Start { run: *next, envelope: None }));
        follow_ups
    }

    pub(crate) fn cancelled(
        workspace_id: &str,
        run_id: &str,
        cancelled: &CancelRequest,
    ) -> Vec<FollowUp> {
        match cancelled {
            CancelRequest::Cancelled { run, next } => {
                let next = next.clone().map(|run| FollowUp::Start { run: *run, envelope: None });
                [FollowUp::CloseQueued((**run).clone())].into_iter().chain(next).collect()
            }
            CancelRequest::Running => vec![FollowUp::CancelRunning {
                workspace_id: workspace_id.to_owned(),
                run_id: run_id.to_owned(),
                reason: "cancelled",
            }],
            CancelRequest::NotFound | CancelRequest::Ended(_) => Vec::new(),
        }
    }

    pub(crate) fn requested(command: &RequestAction, requested: &Requested) -> Vec<FollowUp> {
        match (requested, &command.wanted) {
            (Requested::Pending, _) => {
                vec![FollowUp::AnnounceApproval { run_id: command.fence.run_id.clone() }]
            }
            (Requested::Queued, Wanted::Act { delivery, .. }) => {
                vec![FollowUp::Deliver(vec![Lane::from(delivery)])]
            }
            _ => Vec::new(),
        }
    }

    /// An answer that came too late may have found that the approval has expired: that is news as well.
    pub(crate) fn answered(approval_id: &str, answered: &Answered) -> Vec<FollowUp> {
        let mut follow_ups = vec![FollowUp::WakeApproval { approval_id: approval_id.to_owned() }];
        if let Answered::New(row) = answered {
            let lanes = row.request.delivery.iter().map(Lane::from).collect();
            follow_ups.push(FollowUp::Deliver(lanes));
        }
        follow_ups
    }

    pub(crate) fn expired(rows: Vec<ApprovalRow>) -> Vec<FollowUp> {
        let wake =
            |row: ApprovalRow| FollowUp::WakeApproval { approval_id: row.request.approval_id };
        rows.into_iter().map(wake).collect()
    }
}

impl Shared {
    /// Carries out what follows from a commit, in order.
    pub(crate) async fn follow_up(self: &Arc<Self>, follow_ups: Vec<FollowUp>) {
        for follow_up in follow_ups {
            match follow_up {
                FollowUp::Publish { feed, batch } => {
                    fault::point("before_publish");
                    feed.publish_stored(batch);
                    fault::point("after_publish");
                }
                FollowUp::Index => self.wake_indexing.notify_one(),
                FollowUp::Deliver(lanes) => self.deliveries.has_work(lanes),
                FollowUp::DeliverNow(lane) => self.deliveries.serve_now(lane),
                FollowUp::AnnounceApproval { run_id } => self.approvals.announce(&run_id),
                FollowUp::WakeApproval { approval_id } => {
                    self.approvals.answered.wake(&approval_id);
                }
                FollowUp::WakeDelivery { delivery_id } => {
                    self.approvals.delivered.wake(&delivery_id);
                }
                FollowUp::CountOpened(count) => self.metrics.opened(count),
                FollowUp::CountEnded(status) => self.metrics.closed(status),
                FollowUp::CloseQueued(run) => self.close_queued(&run).await,
                FollowUp::CancelRunning { workspace_id, run_id, reason } => {
                    let shared = Arc::clone(self);
                    self.tasks.spawn("cancel", async move {
                        if let Some(live) = shared.live_run(&workspace_id, &run_id).await {
                            live.cancel(reason);
                        }
                    });
                }
                FollowUp::Start { run, envelope } => self.start(run, envelope),
            }
        }
    }

    async fn close_queued(&self, run: &RunRow) {
        self.metrics.closed(run.status);
        let (run_id, after) = (run.run_id.clone(), run.last_seq - 1);
        let results = self.store.read(move |tx| reads::results::page(tx, &run_id, after, 8)).await;
        if let Ok(results) = results {
            let batch = Batch::new(&run.run_id, results);
            self.feeds.open(&run.run_id).publish_stored(Some(batch));
        }
        self.feeds.close(&run.run_id);
    }

    /// Enters the run where readers and cancellations look for it, then carries it out in a task of its own.
    fn start(self: &Arc<Self>, run: RunRow, envelope: Option<Arc<Envelope>>) {
        if run.last_seq == 0 {
            self.feeds.open(&run.run_id).begin(&run.workspace_id);
        }
        let live = self.live.enter(&run);
        let shared = Arc::clone(self);
        self.tasks.spawn("run", async move {
            let run_id = run.run_id.clone();
            let envelope = match envelope {
                Some(envelope) => Some(envelope),
                None => shared.envelope(&run).await,
            };
            match envelope {
                Some(envelope) => {
                    RunTask::new(Arc::clone(&shared), run, envelope, live).work().await;
                }
                None => tracing::error!(run.id = %run_id, "cannot read the event of a run"),
            }
            shared.feeds.close(&run_id);
            shared.live.leave(&run_id);
        });
    }
}
