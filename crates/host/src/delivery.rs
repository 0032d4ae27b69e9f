//! Sends output to surfaces: one first-in-first-out lane per target.
//!
//! Invariant: a delivery is claimed before the socket write and settled after it; the next of a lane is sent
//! when the one before is settled. After a restart every open delivery is tried at once; the time it has
//! waited so far is kept.

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
use lanes::{LANES_PER_SURFACE, Lanes, Pause, Released};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Targets per read of the outbox.
const LANES_PER_READ: usize = 1_000;
/// Between two scans of the outbox for lanes that were not announced.
const SCAN_INTERVAL: Duration = Duration::from_secs(30);
/// Pause after a failed read or write of the store.
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Between two warnings about the same surface.
const WARN_INTERVAL: Duration = Duration::from_secs(600);

/// Reports of the tasks that serve lanes.
enum Report {
    /// The first delivery since the task started.
    Delivered(Lane),
    Released {
        lane: Lane,
        released: Released,
        failed: Option<Box<Failed>>,
    },
}

/// The failed attempt that ended the service of a lane.
struct Failed {
    row: DeliveryRow,
    error: String,
}

/// Serves the outbox until the host stops.
pub(crate) async fn deliver(shared: Arc<Shared>) {
    let (sender, mut reports) = mpsc::channel::<Report>(LANES_PER_SURFACE);
    let mut dispatcher = Dispatcher::default();
    let mut scan = Scan { at: Instant::now(), after: String::new() };
    loop {
        if scan.at <= Instant::now() {
            scan.read_next(&shared, &mut dispatcher.lanes).await;
        }
        let notes = shared.deliveries.take();
        if notes.overflowed {
            scan = Scan { at: Instant::now(), after: String::new() };
        }
        notes.work.into_iter().for_each(|lane| dispatcher.lanes.has_work(lane));
        notes.urgent.into_iter().for_each(|lane| dispatcher.lanes.serve_now(lane));
        if notes.serve_all_now {
            dispatcher.lanes.serve_all_now();
        }
        while let Ok(report) = reports.try_recv() {
            dispatcher.note(report);
        }
        for lane in dispatcher.lanes.start(Instant::now()) {
            let (worker, reports) = (Arc::clone(&shared), sender.clone());
            shared.tasks.spawn("delivery lane", async move {
                let (released, failed) = serve(&worker, &lane, &reports).await;
                let _ = reports.send(Report::Released { lane, released, failed }).await;
            });
        }
        let due = dispatcher.lanes.next_due().map_or(scan.at, |due| due.min(scan.at));
        tokio::select! {
            () = shared.deliveries.changed() => {}
            report = reports.recv() => { report.into_iter().for_each(|report| dispatcher.note(report)); }
            () = tokio::time::sleep_until(due) => {}
            () = shared.tasks.stopping().cancelled() => return,
        }
    }
}

/// Scans the outbox, `LANES_PER_READ` targets at a time.
struct Scan {
    at: Instant,
    after: String,
}

impl Scan {
    async fn read_next(&mut self, shared: &Shared, lanes: &mut Lanes) {
        let after = self.after.clone();
        let read = move |tx: &mut dyn greenroom_store::sql::Tx| {
            reads::deliveries::lanes(tx, &after, LANES_PER_READ as i64)
        };
        let pause = match shared.store.read(read).await {
            Ok(found) => {
                let has_more = found.len() == LANES_PER_READ;
                let last = found.last().map(|lane| lane.target.clone());
                self.after = last.filter(|_| has_more).unwrap_or_default();
                found.into_iter().for_each(|lane| lanes.found(lane));
                match (has_more, lanes.is_full()) {
                    (true, false) => Duration::ZERO,
                    (true, true) => STORE_RETRY_PAUSE,
                    (false, _) => SCAN_INTERVAL,
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the outbox");
                STORE_RETRY_PAUSE
            }
        };
        self.at = Instant::now() + pause;
    }
}

/// The lanes, and which warnings about their surfaces were logged.
#[derive(Default)]
struct Dispatcher {
    lanes: Lanes,
    /// Surfaces that fail, or whose warning must not be repeated yet.
    warned: HashMap<String, Warned>,
}

struct Warned {
    at: Instant,
    recovered: bool,
}

impl Dispatcher {
    fn note(&mut self, report: Report) {
        match report {
            Report::Delivered(lane) => {
                self.lanes.delivered(&lane);
                if let Some(warned) = self.warned.get_mut(&lane.surface).filter(|it| !it.recovered)
                {
                    warned.recovered = true;
                    tracing::info!(surface = lane.surface, "surface accepts deliveries again");
                }
            }
            Report::Released { lane, released, failed } => {
                self.lanes.released(&lane.target, released);
                if let Some(failed) = failed {
                    self.warn(&failed, Instant::now());
                }
            }
        }
    }

    /// Warns once when a surface begins to fail, then rarely: thousands of lanes may wait for it.
    fn warn(&mut self, Failed { row, error }: &Failed, now: Instant) {
        let DeliveryRow { run_id, delivery_id, surface, .. } = row;
        let (attempts, waiting) = (row.attempts + 1, self.lanes.waiting());
        let is_recent = |warned: &Warned| now.duration_since(warned.at) < WARN_INTERVAL;
        if self.warned.get(surface).is_some_and(is_recent) {
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
        self.warned.insert(surface.clone(), Warned { at: now, recovered: false });
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

/// Sends what waits for one target, in order, until an attempt fails. When the host stops, the attempt in
/// progress gets the shutdown grace time, so that its outcome is known.
async fn serve(
    shared: &Arc<Shared>,
    lane: &Lane,
    reports: &mpsc::Sender<Report>,
) -> (Released, Option<Box<Failed>>) {
    let mut has_delivered = false;
    while !shared.tasks.stopping().is_cancelled() {
        match serve_next(shared, lane).await {
            Ok(Some((_, Attempted::Delivered))) => {
                if !std::mem::replace(&mut has_delivered, true) {
                    let _ = reports.send(Report::Delivered(lane.clone())).await;
                }
            }
            Ok(Some((_, Attempted::Settled))) => {}
            Ok(Some((row, Attempted::Failed { error, released }))) => {
                return (released, Some(Box::new(Failed { row, error })));
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, target = lane.target, "cannot settle a delivery");
                let due = Instant::now() + STORE_RETRY_PAUSE;
                return (Released::Waiting { due, pause: Pause::Fixed }, None);
            }
        }
    }
    (Released::Empty, None)
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
