//! A histogram of durations with fixed buckets.
//!
//! Invariant: an observation costs two atomic additions and no lock; the count is the sum of the buckets, so a
//! reader never sees a count that its buckets do not explain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in seconds. They reach from a proxy call to the longest run.
pub const BOUNDS_S: [f64; 18] = [
    0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 1800.0,
];

#[derive(Debug, Default)]
pub struct Histogram {
    /// One per bound, and one for everything above.
    buckets: [AtomicU64; BOUNDS_S.len() + 1],
    sum_us: AtomicU64,
}

/// What a reader shows of a histogram.
#[derive(Debug, PartialEq)]
pub struct Snapshot {
    /// Per bound, how many observations were not above it.
    pub cumulative: [u64; BOUNDS_S.len()],
    pub count: u64,
    pub sum_s: f64,
}

impl Histogram {
    pub(crate) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS_S.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn observe_ms(&self, took_ms: i64) {
        self.observe(Duration::from_millis(u64::try_from(took_ms).unwrap_or(0)));
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut count = 0;
        let mut cumulative = [0; BOUNDS_S.len()];
        for (at, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if let Some(upto) = cumulative.get_mut(at) {
                *upto = count;
            }
        }
        let sum_s = Duration::from_micros(self.sum_us.load(Ordering::Relaxed)).as_secs_f64();
        Snapshot { cumulative, count, sum_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_on_a_bound_counts_below_it() {
        let histogram = Histogram::default();
        for took in [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(3600)] {
            histogram.observe(took);
        }
        let Snapshot { cumulative, count, sum_s } = histogram.snapshot();
        assert_eq!((cumulative[0], cumulative[1], cumulative[2]), (1, 1, 2));
        assert_eq!((cumulative[BOUNDS_S.len() - 1], count), (2, 3));
        assert!((sum_s - 3600.001).abs() < 1e-9, "{sum_s}");
    }
}
