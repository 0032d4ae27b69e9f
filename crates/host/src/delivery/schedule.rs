//! When a delivery is retried, and when it is given up; pure.
//!
//! Invariant: a delivery is given up only after an attempt. Time spent waiting counts, not the time of day: a
//! clock jump counts for one pause at most.

use greenroom_store::fault;
use greenroom_store::types::DeliveryRow;
use std::time::Duration;

/// The pause after the first attempt; the total doubles with each further one.
const PAUSE_MIN_MS: i64 = 500;

/// For how long a delivery is retried, and the longest pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryLimits {
    pub(super) retry_ms: i64,
    pub(super) pause_max_ms: i64,
}

impl RetryLimits {
    /// The pause before the next attempt of a delivery that failed; `None`: give it up. The last attempt is made
    /// when the retry time is over.
    pub(super) fn pause_ms(self, waited_ms: i64, requested_ms: Option<i64>) -> Option<i64> {
        let left_ms = self.retry_ms - waited_ms;
        if left_ms <= 0 {
            return None;
        }
        let own_ms = waited_ms.max(PAUSE_MIN_MS);
        let wanted_ms = own_ms.max(requested_ms.unwrap_or(0));
        Some(wanted_ms.min(self.pause_max_ms).min(left_ms).max(1))
    }
}

/// Time spent on a delivery, up to and including an attempt that began at `began_ms` and took `took`.
pub(super) fn waited_ms(row: &DeliveryRow, began_ms: i64, took: Duration) -> i64 {
    let planned_ms = row.next_attempt_at.map_or(0, |at| at.saturating_sub(row.updated_at).max(0));
    let paused_ms = began_ms.saturating_sub(row.updated_at).clamp(0, planned_ms);
    let took_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
    let passed_ms = paused_ms.saturating_add(took_ms).saturating_mul(clock_rate());
    row.waited_ms.saturating_add(passed_ms)
}

/// A pause in real time.
pub(super) fn to_real_ms(pause_ms: i64) -> i64 {
    (pause_ms / clock_rate()).max(1)
}

/// How much faster than real time the clock of deliveries runs: 1, except in tests.
fn clock_rate() -> i64 {
    fault::setting("delivery_clock").and_then(|rate| i64::try_from(rate).ok()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_store::types::DeliveryStatus;

    const DAY: RetryLimits = RetryLimits { retry_ms: 86_400_000, pause_max_ms: 900_000 };

    /// When attempts that take no time are made, in milliseconds.
    fn attempts(limits: RetryLimits) -> Vec<i64> {
        let mut at = vec![0];
        while let Some(pause) = limits.pause_ms(at[at.len() - 1], None) {
            at.push(at[at.len() - 1] + pause);
        }
        at
    }

    #[test]
    fn attempts_are_spread_over_a_day() {
        let at = attempts(DAY);
        let first: Vec<i64> = at.iter().take(15).map(|ms| ms / 100).collect();
        // 0, 0.5, 1, 2, 4, … 1024 s: from then on every 15 minutes.
        let expected =
            [0, 5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_240, 19_240, 28_240];
        assert_eq!(first, expected);
        // 1,024 s + 94 × 900 s = 85,624 s; the last attempt is made after exactly a day.
        assert_eq!((at.len(), &at[106..]), (108, &[85_624_000, 86_400_000][..]));
    }

    #[test]
    fn no_time_for_retries_is_one_attempt() {
        let none = RetryLimits { retry_ms: 0, pause_max_ms: 900_000 };
        assert_eq!(attempts(none), [0]);
        let short = RetryLimits { retry_ms: 3_000, pause_max_ms: 1_000 };
        assert_eq!(attempts(short), [0, 500, 1_000, 2_000, 3_000]);
    }

    #[test]
    fn a_pause_requested_by_the_receiver_counts_up_to_the_longest_pause() {
        assert_eq!(DAY.pause_ms(0, Some(30_000)), Some(30_000));
        assert_eq!(DAY.pause_ms(0, Some(0)), Some(500));
        assert_eq!(DAY.pause_ms(60_000, Some(1_000)), Some(60_000), "never sooner than planned");
        assert_eq!(DAY.pause_ms(0, Some(i64::MAX)), Some(900_000));
    }

    fn row(updated_at: i64, next_attempt_at: Option<i64>) -> DeliveryRow {
        DeliveryRow {
            id: 1,
            workspace_id: "w".to_owned(),
            delivery_id: "d".to_owned(),
            surface: "s".to_owned(),
            target: "t".to_owned(),
            run_id: "r".to_owned(),
            sequence: 1,
            payload: "{}".to_owned(),
            status: DeliveryStatus::Pending,
            attempts: 1,
            error: None,
            created_at: 0,
            updated_at,
            waited_ms: 5_000,
            next_attempt_at,
        }
    }

    #[test]
    fn a_clock_that_jumps_counts_for_one_pause_at_most() {
        let took = Duration::from_millis(20);
        let waiting = row(100_000, Some(108_000));
        assert_eq!(waited_ms(&waiting, 108_000, took), 5_000 + 8_000 + 20, "in time");
        assert_eq!(waited_ms(&waiting, 101_000, took), 5_000 + 1_000 + 20, "tried early");
        assert_eq!(waited_ms(&waiting, i64::MAX, took), 5_000 + 8_000 + 20, "a jump forward");
        assert_eq!(waited_ms(&waiting, 0, took), 5_000 + 20, "a jump backward");
        let first = row(100_000, None);
        assert_eq!(waited_ms(&first, i64::MAX, took), 5_000 + 20, "no pause was planned");
    }
}
