//! The rate limit for messages that we did not request.
//!
//! Invariant: nothing is dropped; the sender is read more slowly.

use tokio::time::{Duration, Instant, sleep_until};

/// A token bucket that may go into debt.
#[derive(Debug)]
pub(super) struct Pace {
    per_s: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
}

impl Pace {
    pub(super) fn new(per_s: u32, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        Self { per_s: f64::from(per_s.max(1)), burst, tokens: burst, at: Instant::now() }
    }

    pub(super) fn spend(&mut self) {
        self.spend_at(Instant::now());
    }

    /// Waits until the debt is paid. Cancel safe.
    pub(super) async fn ready(&self) {
        if self.tokens < 0.0 {
            sleep_until(self.due()).await;
        }
    }

    fn spend_at(&mut self, now: Instant) {
        let gained = now.duration_since(self.at).as_secs_f64() * self.per_s;
        self.tokens = (self.tokens + gained).min(self.burst) - 1.0;
        self.at = now;
    }

    fn due(&self) -> Instant {
        self.at + Duration::from_secs_f64((-self.tokens).max(0.0) / self.per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_the_rest_is_limited() {
        let mut pace = Pace::new(100, 10);
        let began = pace.at;
        let mut now = began;
        for _ in 0..10 {
            pace.spend_at(now);
            now = pace.due();
        }
        assert_eq!(now, began);
        for _ in 0..50 {
            pace.spend_at(now);
            now = pace.due();
        }
        let elapsed_ms = now.duration_since(began).as_secs_f64() * 1000.0;
        assert!((elapsed_ms - 500.0).abs() < 1.0, "{elapsed_ms}");
    }
}
