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
use greenroom_store::types::{DeliveryRow, DeliveryStatus, HostEvent};
use greenroom_store::{StoreError, fault, reads};
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Deliveries looked at in one round.
const ROUND: i64 = 1000;
/// Targets that are served at the same time.
const TARGETS_AT_ONCE: usize = 64;
/// When the store cannot be read, and as a safety net.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Serves the outbox until the host stops.
pub(crate) async fn deliver(shared: Arc<Shared>) {
    let (done_sender, mut done) = mpsc::channel::<String>(TARGETS_AT_ONCE);
    let mut busy: HashMap<String, ()> = HashMap::new();
    loop {
        while let Ok(target) = done.try_recv() {
            busy.remove(&target);
        }
        match waiting(&shared).await {
            Ok(lanes) => {
                for (target, lane) in lanes {
                    if busy.len() < TARGETS_AT_ONCE && !busy.contains_key(&target) {
                        busy.insert(target.clone(), ());
                        let (shared, done) = (Arc::clone(&shared), done_sender.clone());
                        let tasks = shared.tasks.clone();
                        tasks.spawn("delivery lane", async move {
                            serve_lane(&shared, lane).await;
                            let _ = done.send(target).await;
                        });
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "the outbox cannot be read"),
        }
        tokio::select! {
            () = shared.wake_delivery.notified() => {}
            target = done.recv() => { busy.remove(&target.unwrap_or_default()); }
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = shared.tasks.stopping().cancelled() => return,
        }
    }
}

/// What is not settled, by target, in order.
async fn waiting(shared: &Shared) -> Result<HashMap<String, VecDeque<DeliveryRow>>, StoreError> {
    let rows = shared.store.read(|tx| reads::deliveries::open(tx, 0, ROUND)).await?;
    let mut lanes: HashMap<String, VecDeque<DeliveryRow>> = HashMap::new();
    for row in rows {
        lanes.entry(row.target.clone()).or_default().push_back(row);
    }
    Ok(lanes)
}

async fn serve_lane(shared: &Shared, mut lane: VecDeque<DeliveryRow>) {
    while let Some(row) = lane.pop_front() {
        let settled = tokio::select! {
            settled = settle(shared, &row) => settled,
            () = shared.tasks.stopping().cancelled() => return,
        };
        if let Err(error) = settled {
            tracing::warn!(%error, delivery = row.delivery_id, "a delivery could not be settled");
            return;
        }
    }
}

/// Tries one delivery until it is settled.
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
        tokio::time::sleep(pause(attempts)).await;
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
    shared.store.finish_delivery(command).await.map(drop)
}

/// Doubles from half a second up to a minute.
fn pause(attempts: i64) -> Duration {
    let doubled = 500_u64.saturating_mul(1 << attempts.clamp(0, 20).saturating_sub(1).max(0));
    Duration::from_millis(doubled.min(60_000))
}
