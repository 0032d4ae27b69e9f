//! Bringing output to surfaces: one first-in-first-out lane per target.
//!
//! Invariant: claimed before the socket is written to, settled after; the next of a lane goes out when the
//! one before is settled. A restart forgets pauses: whatever is open is tried at once, and the time that it
//! has waited so far is kept.

mod attempt;
mod lanes;
mod mailbox;
mod resolve;
mod schedule;

pub(crate) use attempt::conversation_of;
pub(crate) use mailbox::Mailbox;

use crate::host::Shared;
use attempt::{Attempted, attempt};
use greenroom_store::reads::deliveries::Lane;
use greenroom_store::types::DeliveryRow;
use greenroom_store::{StoreError, reads};
use lanes::{LANES_PER_SURFACE, Lanes, Left, Pause};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Targets read from the outbox at once.
const ROUND: usize = 1_000;
/// A look into the outbox for lanes that nobody has announced, as a safety net.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// When the store does not answer.
const STORE_AGAIN: Duration = Duration::from_secs(5);
/// Between two warnings about the same surface.
const WARN_AGAIN: Duration = Duration::from_secs(600);

/// What tasks that serve lanes report.
enum Report {
    /// The first delivery that was taken since the lane is served.
    Delivered(Lane),
    Left {
        lane: Lane,
        left: Left,
        failed: Option<Box<Failed>>,
    },
}

/// The attempt that a lane was left with.
struct Failed {
    row: DeliveryRow,
    error: String,
}

/// Serves the outbox until the host stops.
pub(crate) async fn deliver(shared: Arc<Shared>) {
    let (sender, mut reports) = mpsc::channel::<Report>(LANES_PER_SURFACE);
    let mut desk = Desk::default();
    let mut look = Look { at: Instant::now(), after: String::new() };
    loop {
        if look.at <= Instant::now() {
            look.round(&shared, &mut desk.lanes).await;
        }
        let notes = shared.deliveries.take();
        if notes.overflowed {
            look = Look { at: Instant::now(), after: String::new() };
        }
        notes.work.into_iter().for_each(|lane| desk.lanes.has_work(lane));
        notes.hurried.into_iter().for_each(|lane| desk.lanes.hurry(lane));
        if notes.hurry_all {
            desk.lanes.hurry_all();
        }
        while let Ok(report) = reports.try_recv() {
            desk.note(report);
        }
        for lane in desk.lanes.start(Instant::now()) {
            let (worker, reports) = (Arc::clone(&shared), sender.clone());
            shared.tasks.spawn("delivery lane", async move {
                let (left, failed) = serve(&worker, &lane, &reports).await;
                let _ = reports.send(Report::Left { lane, left, failed }).await;
            });
        }
        let due = desk.lanes.next_due().map_or(look.at, |due| due.min(look.at));
        tokio::select! {
            () = shared.deliveries.news() => {}
            report = reports.recv() => { report.into_iter().for_each(|report| desk.note(report)); }
            () = tokio::time::sleep_until(due) => {}
            () = shared.tasks.stopping().cancelled() => return,
        }
    }
}

/// Goes through the outbox, a round at a time.
struct Look {
    at: Instant,
    after: String,
}

impl Look {
    async fn round(&mut self, shared: &Shared, lanes: &mut Lanes) {
        let after = self.after.clone();
        let read = move |tx: &mut dyn greenroom_store::sql::Tx| {
            reads::deliveries::lanes(tx, &after, ROUND as i64)
        };
        let pause = match shared.store.read(read).await {
            Ok(found) => {
                let has_more = found.len() == ROUND;
                let last = found.last().map(|lane| lane.target.clone());
                self.after = last.filter(|_| has_more).unwrap_or_default();
                found.into_iter().for_each(|lane| lanes.found(lane));
                match (has_more, lanes.is_full()) {
                    (true, false) => Duration::ZERO,
                    (true, true) => STORE_AGAIN,
                    (false, _) => LOOK_AGAIN,
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                STORE_AGAIN
            }
        };
        self.at = Instant::now() + pause;
    }
}

/// The lanes, and what the log says about their surfaces.
#[derive(Default)]
struct Desk {
    lanes: Lanes,
    /// When a warning about a surface was written that has taken nothing since, or may not be repeated yet.
    warned: HashMap<String, Warned>,
}

struct Warned {
    at: Instant,
    is_back: bool,
}

impl Desk {
    fn note(&mut self, report: Report) {
        match report {
            Report::Delivered(lane) => {
                self.lanes.delivered(&lane);
                if let Some(warned) = self.warned.get_mut(&lane.surface).filter(|it| !it.is_back) {
                    warned.is_back = true;
                    tracing::info!(surface = lane.surface, "the surface takes deliveries again");
                }
            }
            Report::Left { lane, left, failed } => {
                self.lanes.left(&lane.target, left);
                if let Some(failed) = failed {
                    self.warn(&failed, Instant::now());
                }
            }
        }
    }

    /// Once when a surface begins to fail, then rarely: a thousand lanes may wait for it.
    fn warn(&mut self, Failed { row, error }: &Failed, now: Instant) {
        let DeliveryRow { run_id, delivery_id, surface, .. } = row;
        let (attempts, waiting) = (row.attempts + 1, self.lanes.waiting());
        let is_silent = |warned: &Warned| now.duration_since(warned.at) < WARN_AGAIN;
        if self.warned.get(surface).is_some_and(is_silent) {
            tracing::debug!(
                run.id = run_id,
                delivery.id = delivery_id,
                surface,
                attempts,
                error,
                "delivery failed, will retry"
            );
            return;
        }
        self.warned.insert(surface.clone(), Warned { at: now, is_back: false });
        tracing::warn!(
            run.id = run_id,
            delivery.id = delivery_id,
            surface,
            attempts,
            error,
            targets_waiting = waiting,
            "delivery failed, will retry"
        );
    }
}

/// Settles what waits for one target, one after the other, until one is not taken. What is under way when the
/// host stops gets the time the host gives its tasks, so that its outcome is known.
async fn serve(
    shared: &Arc<Shared>,
    lane: &Lane,
    reports: &mpsc::Sender<Report>,
) -> (Left, Option<Box<Failed>>) {
    let mut has_delivered = false;
    while !shared.tasks.stopping().is_cancelled() {
        match serve_next(shared, lane).await {
            Ok(Some((_, Attempted::Delivered))) => {
                if !std::mem::replace(&mut has_delivered, true) {
                    let _ = reports.send(Report::Delivered(lane.clone())).await;
                }
            }
            Ok(Some((_, Attempted::Settled))) => {}
            Ok(Some((row, Attempted::Failed { error, left }))) => {
                return (left, Some(Box::new(Failed { row, error })));
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, target = lane.target, "a delivery could not be settled");
                let due = Instant::now() + STORE_AGAIN;
                return (Left::Waiting { due, pause: Pause::Firm }, None);
            }
        }
    }
    (Left::Empty, None)
}

async fn serve_next(
    shared: &Arc<Shared>,
    lane: &Lane,
) -> Result<Option<(DeliveryRow, Attempted)>, StoreError> {
    let target = lane.target.clone();
    let next = shared.store.read(move |tx| reads::deliveries::next(tx, &target)).await?;
    let Some(row) = next else { return Ok(None) };
    let attempted = attempt(shared, &row).await?;
    Ok(Some((row, attempted)))
}
