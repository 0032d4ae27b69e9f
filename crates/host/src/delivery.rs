//! Bringing output to surfaces: one first-in-first-out lane per target.
//!
//! Invariant: claimed before the socket is written to, settled after; the next of a lane goes out when the
//! one before is settled. What may have arrived is `unknown` and not sent again, unless the surface says
//! that it drops repeated ids.

use crate::host::Shared;
use crate::ids::{self, now_ms};
use crate::metrics::Metrics;
use crate::settings::Webhook;
use crate::webhook::Sent;
use greenroom_store::commands::{ClaimDelivery, DeliveryOutcome, FinishDelivery};
use greenroom_store::reads::deliveries::Lane;
use greenroom_store::types::{DeliveryRow, DeliveryStatus, HostEvent};
use greenroom_store::{StoreError, fault, reads};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Targets looked at in one round.
const ROUND: i64 = 10_000;
/// Targets of one surface that are served at the same time; a surface that is down keeps no other waiting.
const LANES_PER_SURFACE: usize = 64;
/// When the store cannot be read, and as a safety net.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// When the store cannot be written to.
const STORE_AGAIN: Duration = Duration::from_millis(500);

/// Serves the outbox until the host stops.
pub(crate) async fn deliver(shared: Arc<Shared>) {
    let (done_sender, mut done) = mpsc::channel::<Lane>(LANES_PER_SURFACE);
    let mut busy = Busy::default();
    loop {
        while let Ok(lane) = done.try_recv() {
            busy.leave(&lane);
        }
        match shared.store.read(|tx| reads::deliveries::lanes(tx, ROUND)).await {
            Ok(lanes) => {
                for lane in lanes {
                    if busy.enter(&lane) {
                        let (shared, done) = (Arc::clone(&shared), done_sender.clone());
                        let tasks = shared.tasks.clone();
                        tasks.spawn("delivery lane", async move {
                            serve_lane(&shared, &lane).await;
                            let _ = done.send(lane).await;
                        });
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "the outbox cannot be read"),
        }
        tokio::select! {
            () = shared.wake_delivery.notified() => {}
            lane = done.recv() => { lane.iter().for_each(|lane| busy.leave(lane)); }
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = shared.tasks.stopping().cancelled() => return,
        }
    }
}

/// The lanes that are being served.
#[derive(Default)]
struct Busy {
    targets: HashSet<String>,
    by_surface: HashMap<String, usize>,
}

impl Busy {
    /// False when the lane is served already or its surface has enough to do.
    fn enter(&mut self, lane: &Lane) -> bool {
        let of_surface = self.by_surface.entry(lane.surface.clone()).or_default();
        let enters = *of_surface < LANES_PER_SURFACE && self.targets.insert(lane.target.clone());
        if enters {
            *of_surface += 1;
        }
        enters
    }

    fn leave(&mut self, lane: &Lane) {
        if self.targets.remove(&lane.target)
            && let Some(of_surface) = self.by_surface.get_mut(&lane.surface)
        {
            *of_surface -= 1;
        }
    }
}

/// Settles what waits for one target, one after the other. What is under way when the host stops gets the
/// time the host gives its tasks, so that its outcome is known.
async fn serve_lane(shared: &Shared, lane: &Lane) {
    while !shared.tasks.stopping().is_cancelled() {
        let target = lane.target.clone();
        let settled = match shared.store.read(move |tx| reads::deliveries::next(tx, &target)).await
        {
            Ok(Some(row)) => settle(shared, &row).await,
            Ok(None) => return,
            Err(error) => Err(error),
        };
        if let Err(error) = settled {
            tracing::warn!(%error, target = lane.target, "a delivery could not be settled");
            return;
        }
    }
}

/// Tries one delivery until it is settled or the host stops.
async fn settle(shared: &Shared, row: &DeliveryRow) -> Result<(), StoreError> {
    let mut attempts = row.attempts;
    let mut interrupted = row.status == DeliveryStatus::Claimed;
    loop {
        let settings = shared.settings.load_full();
        let surface = settings.surfaces.get(&row.surface);
        let claim = ClaimDelivery { id: row.id, now_ms: now_ms() };
        if !shared.store.claim_delivery(claim).await? {
            return Ok(());
        }
        attempts += 1;
        let last = attempts >= settings.limits.delivery_attempts;
        let outcome = attempt(shared, row, surface, interrupted, last).await;
        interrupted = false;
        fault::point("after_delivery");
        let again = matches!(outcome, DeliveryOutcome::Again { .. });
        finish(shared, row, outcome).await?;
        if !again {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(pause(attempts)) => {}
            () = shared.tasks.stopping().cancelled() => return Ok(()),
        }
    }
}

async fn attempt(
    shared: &Shared,
    row: &DeliveryRow,
    surface: Option<&Webhook>,
    interrupted: bool,
    last: bool,
) -> DeliveryOutcome {
    let Some(surface) = surface else {
        let error = format!("surface `{}` is not configured", row.surface);
        return DeliveryOutcome::Failed { error };
    };
    if interrupted && !surface.idempotent {
        let error = "the host ended while it was being sent".to_owned();
        return DeliveryOutcome::Unknown { error };
    }
    match shared.webhooks.send(surface, row).await {
        Sent::Taken => DeliveryOutcome::Done,
        Sent::Refused(error) => DeliveryOutcome::Failed { error },
        Sent::NotTaken(error) if last => DeliveryOutcome::Failed { error },
        Sent::NotTaken(error) => DeliveryOutcome::Again { error },
        Sent::Unknown(error) if surface.idempotent && !last => DeliveryOutcome::Again { error },
        Sent::Unknown(error) => DeliveryOutcome::Unknown { error },
    }
}

async fn finish(
    shared: &Shared,
    row: &DeliveryRow,
    outcome: DeliveryOutcome,
) -> Result<(), StoreError> {
    let (status, error) = match &outcome {
        DeliveryOutcome::Done => (Some("done"), None),
        DeliveryOutcome::Failed { error } => (Some("failed"), Some(error.clone())),
        DeliveryOutcome::Unknown { error } => (Some("unknown"), Some(error.clone())),
        DeliveryOutcome::Again { error } => (None, Some(error.clone())),
    };
    if let Some(error) = &error {
        tracing::warn!(run.id = row.run_id, surface = row.surface, error, "delivery not done");
    }
    let log = status.map(|status| {
        let counter = if status == "done" {
            &shared.metrics.deliveries_done
        } else {
            &shared.metrics.deliveries_not_done
        };
        Metrics::add(counter);
        let body = json!({"run_id": row.run_id, "delivery_id": row.delivery_id,
            "surface": row.surface, "sequence": row.sequence, "status": status, "error": error});
        HostEvent {
            event_id: ids::fresh("evt"),
            event_type: format!("delivery.{status}"),
            body: body.to_string(),
        }
    });
    let payload: serde_json::Value = serde_json::from_str(&row.payload).unwrap_or_default();
    let command = FinishDelivery {
        id: row.id,
        workspace_id: row.workspace_id.clone(),
        run_id: row.run_id.clone(),
        conversation_id: payload["conversation_id"].as_str().map(str::to_owned),
        outcome,
        log,
        now_ms: now_ms(),
    };
    // The outcome is known: a store that is away for a moment must not turn it into `unknown`.
    loop {
        match shared.store.finish_delivery(command.clone()).await {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Full)) => {
                tracing::warn!(%error, delivery = row.delivery_id, "an outcome is not stored yet");
                tokio::select! {
                    () = tokio::time::sleep(STORE_AGAIN) => {}
                    () = shared.tasks.stopping().cancelled() => return Err(error),
                }
            }
            finished => {
                shared.approvals.delivered.wake(&row.delivery_id);
                return finished.map(drop);
            }
        }
    }
}

/// Doubles from half a second up to a minute.
fn pause(attempts: i64) -> Duration {
    let doubled = 500_u64.saturating_mul(1 << attempts.clamp(0, 20).saturating_sub(1).max(0));
    Duration::from_millis(doubled.min(60_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surface_with_many_targets_keeps_no_other_waiting() {
        let lane = |surface: &str, target: usize| Lane {
            surface: surface.to_owned(),
            target: format!("{surface} {target}"),
        };
        let mut busy = Busy::default();
        let entered = (0..1000).filter(|target| busy.enter(&lane("down", *target))).count();
        assert_eq!(entered, LANES_PER_SURFACE);
        assert!(busy.enter(&lane("up", 0)));
        assert!(!busy.enter(&lane("up", 0)), "one at a time per target");
        busy.leave(&lane("down", 0));
        assert!(busy.enter(&lane("down", 999)));
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses: Vec<u128> = [1, 2, 3, 7, 8, 100].map(|n| pause(n).as_millis()).to_vec();
        assert_eq!(pauses, [500, 1000, 2000, 32_000, 60_000, 60_000]);
    }
}
