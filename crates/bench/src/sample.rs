//! Times of many equal pieces of work.

use std::time::Duration;

#[derive(Default)]
pub(super) struct Sample {
    sorted: Vec<Duration>,
}

impl FromIterator<Duration> for Sample {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        let mut sorted: Vec<Duration> = times.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }
}

impl Sample {
    /// With the times of another one.
    pub(super) fn extend(&mut self, other: Self) {
        self.sorted.extend(other.sorted);
        self.sorted.sort_unstable();
    }

    /// The time that so many percent of the pieces did not exceed, in milliseconds.
    pub(super) fn percentile_ms(&self, percent: usize) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        let found = self.sorted.get((self.sorted.len() * percent / 100).min(last));
        found.map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let sample: Sample = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(sample.percentile_ms(50), 101.0);
        assert_eq!(sample.percentile_ms(99), 199.0);
        assert_eq!(sample.percentile_ms(100), 200.0);
    }
}
