//! Retention: removes expired rows, in the background.
//!
//! Invariant: steps are small with pauses between them, so that they do not delay runs; what the settings keep
//! forever is never removed. After a restart, retention continues where it stopped.

use crate::host::Shared;
use crate::ids::now_ms;
use crate::settings::Retention;
use greenroom_store::StoreError;
use greenroom_store::commands::{Collect, Retained};
use greenroom_store::rates::SPANS_MS;
use std::sync::Arc;
use std::time::Duration;

/// Rows that one step scans.
const STEP_ROWS: i64 = 100;
/// Between two steps: runs come first.
const PAUSE: Duration = Duration::from_millis(50);
/// How long counts per minute, per ten minutes and per two hours are kept.
const RATES_KEPT: [Duration; 3] = [
    Duration::from_secs(86_400),
    Duration::from_secs(3 * 86_400),
    Duration::from_secs(62 * 86_400),
];

/// Collects until the host stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let work = async {
        loop {
            let retention = shared.settings.load().retention.clone();
            if let Err(error) = collect(&shared, &retention).await {
                tracing::warn!(%error, "cannot remove expired rows, will retry");
            }
            tokio::time::sleep(retention.collect_every).await;
        }
    };
    let stopping = shared.tasks.stopping();
    tokio::select! {
        () = work => {}
        () = stopping.cancelled() => {}
    }
}

/// Removes everything that has expired.
async fn collect(shared: &Shared, retention: &Retention) -> Result<(), StoreError> {
    for (what, before_ms) in due(retention, now_ms()) {
        let mut rows = 0;
        loop {
            let step = Collect { what, before_ms, rows_max: STEP_ROWS };
            let collected = shared.store.commit(step).await?;
            rows += collected.rows;
            if !collected.has_more {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        if rows > 0 {
            tracing::info!(?what, rows, "removed expired rows");
        }
    }
    Ok(())
}

/// What expires, and the time before which it is removed.
fn due(retention: &Retention, now_ms: i64) -> Vec<(Retained, i64)> {
    let kept = [
        (Retained::Events, retention.events),
        (Retained::Transcript, retention.transcript),
        (Retained::Ledger, retention.ledger),
        (Retained::Audit, retention.audit),
        (Retained::ExpiredState, Some(Duration::ZERO)),
    ];
    let rates = SPANS_MS.into_iter().zip(RATES_KEPT);
    let rates = rates.map(|(span_ms, time)| (Retained::Rates { span_ms }, Some(time)));
    let age = |time: Duration| i64::try_from(time.as_millis()).ok();
    kept.into_iter()
        .chain(rates)
        .filter_map(|(what, time)| Some((what, now_ms.checked_sub(age(time?)?)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_time_is_due() {
        let audit_only = Retention::default();
        let day_ms = 86_400_000;
        let now = 100 * day_ms;
        assert_eq!(
            due(&audit_only, now),
            [
                (Retained::Audit, 10 * day_ms),
                (Retained::ExpiredState, now),
                (Retained::Rates { span_ms: 60_000 }, 99 * day_ms),
                (Retained::Rates { span_ms: 600_000 }, 97 * day_ms),
                (Retained::Rates { span_ms: 7_200_000 }, 38 * day_ms),
            ]
        );
        let days = |days: u64| Some(Duration::from_secs(days * 86_400));
        let all = Retention {
            events: days(1),
            transcript: days(2),
            ledger: days(3),
            audit: None,
            ..Retention::default()
        };
        assert_eq!(
            due(&all, now),
            [
                (Retained::Events, 99 * day_ms),
                (Retained::Transcript, 98 * day_ms),
                (Retained::Ledger, 97 * day_ms),
                (Retained::ExpiredState, now),
                (Retained::Rates { span_ms: 60_000 }, 99 * day_ms),
                (Retained::Rates { span_ms: 600_000 }, 97 * day_ms),
                (Retained::Rates { span_ms: 7_200_000 }, 38 * day_ms),
            ]
        );
    }
}
