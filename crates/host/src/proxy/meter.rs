//! Rate limits of runs and plugins: a token bucket each, drained by the cost of the method.
//!
//! Invariant: over any period a caller spends at most its rate times that period, plus one second's worth.
//! Time is monotonic.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bucket that holds one second's worth.
#[derive(Debug)]
pub(crate) struct Bucket {
    since: Instant,
    /// When the bucket will be full again, in nanoseconds.
    full_at: AtomicU64,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { since: Instant::now(), full_at: AtomicU64::new(0) }
    }
}

impl Bucket {
    /// Takes `cost` out, or says how long to wait for it.
    pub(crate) fn take(&self, cost: u64, per_second: u64) -> Result<(), Duration> {
        let now = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.take_at(now, cost, per_second)
    }

    fn take_at(&self, now: u64, cost: u64, per_second: u64) -> Result<(), Duration> {
        const SECOND: u64 = 1_000_000_000;
        let price = cost.saturating_mul(SECOND) / per_second.max(1);
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        loop {
            let after = full_at.max(now).saturating_add(price);
            // A call that costs more than a second's worth passes if the bucket is full.
            let limit = now.saturating_add(SECOND.max(price));
            if after > limit {
                return Err(Duration::from_nanos(after - limit));
            }
            match self.full_at.compare_exchange_weak(
                full_at,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(current) => full_at = current,
            }
        }
    }
}

/// The buckets of plugins, by the configured name of their runner.
#[derive(Debug, Default)]
pub(crate) struct PluginBuckets {
    by_runner: Mutex<HashMap<Arc<str>, Arc<Bucket>>>,
}

impl PluginBuckets {
    /// Runners are configured, so there are few.
    pub(crate) fn of(&self, runner: &Arc<str>) -> Arc<Bucket> {
        let mut buckets = self.by_runner.lock().unwrap_or_else(PoisonError::into_inner);
        match buckets.get(runner) {
            Some(bucket) => Arc::clone(bucket),
            None => Arc::clone(buckets.entry(Arc::clone(runner)).or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_full_bucket_holds_a_second_and_fills_with_time() {
        let bucket = Bucket::default();
        for _ in 0..100 {
            assert_eq!(bucket.take_at(0, 1, 100), Ok(()));
        }
        assert_eq!(bucket.take_at(0, 1, 100), Err(Duration::from_millis(10)));
        assert_eq!(bucket.take_at(SECOND / 2, 50, 100), Ok(()));
        assert_eq!(bucket.take_at(SECOND / 2, 1, 100), Err(Duration::from_millis(10)));
    }

    #[test]
    fn a_refused_call_takes_nothing() {
        let bucket = Bucket::default();
        assert_eq!(bucket.take_at(0, 100, 100), Ok(()));
        for _ in 0..1000 {
            assert!(bucket.take_at(0, 10, 100).is_err());
        }
        assert_eq!(bucket.take_at(SECOND / 10, 10, 100), Ok(()));
    }

    #[test]
    fn a_call_dearer_than_a_second_passes_when_the_bucket_is_full() {
        let bucket = Bucket::default();
        assert_eq!(bucket.take_at(0, 500, 100), Ok(()));
        assert!(bucket.take_at(SECOND, 1, 100).is_err());
        assert_eq!(bucket.take_at(5 * SECOND, 1, 100), Ok(()));
    }
}
