//! One attempt of a delivery: claim it, send it, store the outcome.
//!
//! Invariant: a delivery that may have arrived is `unknown` and not sent again, unless the surface is
//! idempotent or a user asks for it.

use super::lanes::{Pause, Released};
use super::schedule::{RetryLimits, to_real_ms, waited_ms};
use crate::follow_up::FollowUp;
use crate::host::Shared;
use crate::ids::{self, now_ms};
use crate::metrics::Metrics;
use crate::settings::Limits;
use greenroom_store::commands::{ClaimDelivery, DeliveryOutcome, FinishDelivery};
use greenroom_store::types::{DeliveryRow, DeliveryStatus, HostEvent};
use greenroom_store::{StoreError, fault};
use greenroom_surfaces::{Delivery, SendOutcome, Surface};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Pause before the outcome is written again.
const STORE_RETRY_PAUSE: Duration = Duration::from_millis(500);

/// How an attempt ended.
pub(super) enum Attempted {
    Delivered,
    /// Settled with another outcome, or by another task.
    Settled,
    /// To be tried again.
    Failed {
        error: String,
        released: Released,
    },
}

/// What is known after sending.
enum Outcome {
    Settled(DeliveryOutcome),
    Again { error: String, retry_after: Option<Duration>, last: DeliveryStatus },
}

/// Tries one delivery, once.
pub(super) async fn attempt(
    shared: &Arc<Shared>,
    row: &DeliveryRow,
) -> Result<Attempted, StoreError> {
    let settings = shared.settings.load_full();
    let began_ms = now_ms();
    if !shared.store.commit(ClaimDelivery { id: row.id, now_ms: began_ms }).await? {
        return Ok(Attempted::Settled);
    }
    let began = Instant::now();
    let sent = send(shared, row, settings.surfaces.get(&row.surface)).await;
    shared.metrics.delivery_attempt_duration.observe(began.elapsed());
    fault::point("after_delivery");
    let (error, retry_after, last) = match sent {
        Outcome::Settled(outcome) => {
            let delivered = outcome == DeliveryOutcome::Done;
            settle(shared, row, outcome).await?;
            return Ok(if delivered { Attempted::Delivered } else { Attempted::Settled });
        }
        Outcome::Again { error, retry_after, last } => (error, retry_after, last),
    };
    let waited_ms = waited_ms(row, began_ms, began.elapsed());
    let requested_ms =
        retry_after.map(|pause| i64::try_from(pause.as_millis()).unwrap_or(i64::MAX));
    let Some(pause_ms) = retry_limits(&settings.limits).pause_ms(waited_ms, requested_ms) else {
        settle(shared, row, give_up(row, &error, waited_ms, last)).await?;
        return Ok(Attempted::Settled);
    };
    let pause_ms = to_real_ms(pause_ms);
    let next_attempt_at = now_ms().saturating_add(pause_ms);
    let outcome = DeliveryOutcome::Again { error: error.clone(), waited_ms, next_attempt_at };
    finish(shared, row, outcome, None).await?;
    Metrics::add(&shared.metrics.deliveries_retried);
    let due = Instant::now() + Duration::from_millis(u64::try_from(pause_ms).unwrap_or(0));
    let pause = if retry_after.is_some() { Pause::Fixed } else { Pause::Backoff };
    Ok(Attempted::Failed { error, released: Released::Waiting { due, pause } })
}

fn retry_limits(limits: &Limits) -> RetryLimits {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    RetryLimits { retry_ms: ms(limits.delivery_retry), pause_max_ms: ms(limits.delivery_pause_max) }
}

async fn send(shared: &Shared, row: &DeliveryRow, surface: Option<&Surface>) -> Outcome {
    if row.status == DeliveryStatus::Claimed && !surface.is_some_and(Surface::is_idempotent) {
        let error = "the host stopped while sending".to_owned();
        return Outcome::Settled(DeliveryOutcome::Unknown { error });
    }
    // A reload may bring the surface back.
    let Some(surface) = surface else {
        let error = format!("surface `{}` is not configured", row.surface);
        return Outcome::Again { error, retry_after: None, last: DeliveryStatus::Failed };
    };
    let delivery = Delivery { id: &row.delivery_id, message: &row.payload };
    match surface.send(&shared.surface_clients, delivery).await {
        SendOutcome::Delivered => Outcome::Settled(DeliveryOutcome::Done),
        SendOutcome::Rejected(error) => Outcome::Settled(DeliveryOutcome::Failed { error }),
        SendOutcome::NotDelivered { error, retry_after } => {
            Outcome::Again { error, retry_after, last: DeliveryStatus::Failed }
        }
        SendOutcome::Unknown(error) if surface.is_idempotent() => {
            Outcome::Again { error, retry_after: None, last: DeliveryStatus::Unknown }
        }
        SendOutcome::Unknown(error) => Outcome::Settled(DeliveryOutcome::Unknown { error }),
    }
}

/// The final outcome after the last retry.
fn give_up(
    row: &DeliveryRow,
    error: &str,
    waited_ms: i64,
    last: DeliveryStatus,
) -> DeliveryOutcome {
    let attempts = row.attempts + 1;
    let error = match attempts {
        1 => format!("given up after 1 attempt: {error}"),
        _ => format!("given up after {attempts} attempts in {}: {error}", span(waited_ms)),
    };
    match last {
        DeliveryStatus::Unknown => DeliveryOutcome::Unknown { error },
        _ => DeliveryOutcome::Failed { error },
    }
}

/// A duration in its largest whole unit.
fn span(ms: i64) -> String {
    match ms / 1_000 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// Stores the final outcome with its entry in the event log.
async fn settle(
    shared: &Arc<Shared>,
    row: &DeliveryRow,
    outcome: DeliveryOutcome,
) -> Result<(), StoreError> {
    let (status, error) = match &outcome {
        DeliveryOutcome::Failed { error } => ("failed", Some(error.as_str())),
        DeliveryOutcome::Unknown { error } => ("unknown", Some(error.as_str())),
        DeliveryOutcome::Done | DeliveryOutcome::Again { .. } => ("done", None),
    };
    report(shared, row, status, error.unwrap_or_default());
    let mut body = log_body(row);
    body["status"] = status.into();
    body["error"] = error.into();
    let log = HostEvent {
        event_id: ids::fresh("evt"),
        event_type: format!("delivery.{status}"),
        body: body.to_string(),
    };
    finish(shared, row, outcome, Some(log)).await?;
    let wake = FollowUp::WakeDelivery { delivery_id: row.delivery_id.clone() };
    shared.follow_up(vec![wake]).await;
    Ok(())
}

fn report(shared: &Shared, row: &DeliveryRow, status: &str, error: &str) {
    let DeliveryRow { run_id, delivery_id, surface, .. } = row;
    match status {
        "done" => Metrics::add(&shared.metrics.deliveries_done),
        "unknown" => {
            Metrics::add(&shared.metrics.deliveries_unknown);
            tracing::warn!(
                run.id = run_id,
                delivery.id = delivery_id,
                surface,
                error,
                "delivery outcome unknown, not sent again"
            );
        }
        _ => {
            Metrics::add(&shared.metrics.deliveries_failed);
            tracing::warn!(
                run.id = run_id,
                delivery.id = delivery_id,
                surface,
                error,
                "delivery given up"
            );
        }
    }
}

/// The part that all event log entries about a delivery share.
pub(super) fn log_body(row: &DeliveryRow) -> Value {
    json!({"run_id": row.run_id, "delivery_id": row.delivery_id, "surface": row.surface,
        "sequence": row.sequence})
}

/// The conversation that a delivery belongs to.
pub(crate) fn conversation_of(row: &DeliveryRow) -> Option<String> {
    let parts: Vec<String> = serde_json::from_str(&row.target).ok()?;
    parts.into_iter().nth(2).filter(|conversation| !conversation.is_empty())
}

async fn finish(
    shared: &Shared,
    row: &DeliveryRow,
    outcome: DeliveryOutcome,
    log: Option<HostEvent>,
) -> Result<(), StoreError> {
    let command = FinishDelivery {
        id: row.id,
        workspace_id: row.workspace_id.clone(),
        run_id: row.run_id.clone(),
        conversation_id: conversation_of(row),
        outcome,
        log,
        now_ms: now_ms(),
    };
    // The outcome is known: a store that is briefly unavailable must not turn it into `unknown`.
    loop {
        match shared.store.commit(command.clone()).await {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Full)) => {
                tracing::warn!(%error, delivery.id = row.delivery_id,
                    "cannot store the outcome of a delivery, will retry");
                tokio::select! {
                    () = tokio::time::sleep(STORE_RETRY_PAUSE) => {}
                    () = shared.tasks.stopping().cancelled() => return Err(error),
                }
            }
            finished => return finished.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_their_largest_whole_unit() {
        let shown = [0, 1_500, 119_999, 120_000, 7_199_000, 7_200_000, 86_400_000].map(span);
        assert_eq!(shown, ["0 s", "1 s", "119 s", "2 min", "119 min", "2 h", "24 h"]);
    }
}
