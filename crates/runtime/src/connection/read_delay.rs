//! Delays reads from a busy runner, so that its runs share wake-ups and commits (decision 011).
//!
//! Invariant: a delay is a fraction of what a run takes and at most `DELAY_MAX`. There is none with few open runs,
//! and none while the runner calls the host or one of its tools is called: then somebody waits for an answer.
//! Frames of a WebSocket are never delayed.

use super::Connection;
use std::time::Duration;

/// Set to `false` to measure without delays.
const ENABLED: bool = true;
/// Fewer open runs have little to share.
const OPEN_RUNS_MIN: usize = 8;
/// How long the runner must not have called the host.
const QUIET: Duration = Duration::from_secs(1);
/// A delay is one part in this many of what a run takes.
const RUN_PARTS: u32 = 4;
/// A shorter delay gathers too little.
const DELAY_MIN: Duration = Duration::from_millis(6);
/// One frame of a display: a user does not see the delay.
const DELAY_MAX: Duration = Duration::from_millis(16);
/// Weight of the past in the average duration of a run.
const AVERAGE_OVER: u32 = 16;

/// Moving average of what recent runs took; zero before the first one ends.
#[derive(Debug, Default)]
pub(super) struct AverageRun(Duration);

impl AverageRun {
    pub(super) fn add(&mut self, took: Duration) {
        // A longer run changes nothing, and one of an hour must not outweigh a hundred short ones.
        let took = took.min(DELAY_MAX * RUN_PARTS);
        self.0 = (self.0 * (AVERAGE_OVER - 1) + took) / AVERAGE_OVER;
    }

    fn delay(&self) -> Option<Duration> {
        let part = self.0 / RUN_PARTS;
        (part >= DELAY_MIN).then_some(part.min(DELAY_MAX))
    }
}

impl Connection {
    /// How long to wait before the next read of the runner's output.
    pub(crate) fn read_delay(&self) -> Option<Duration> {
        if !ENABLED || !self.outbox.is_for_pipe() || *self.live.borrow() < OPEN_RUNS_MIN {
            return None;
        }
        let state = self.lock();
        if state.tool_calls > 0 || !state.calls.are_over_for(QUIET) {
            return None;
        }
        state.average_run.delay()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(runs: u32, took_ms: u64) -> AverageRun {
        let mut average = AverageRun::default();
        (0..runs).for_each(|_| average.add(Duration::from_millis(took_ms)));
        average
    }

    #[test]
    fn short_runs_are_read_without_delay() {
        assert_eq!(AverageRun::default().delay(), None);
        assert_eq!(after(1000, 1).delay(), None);
        assert_eq!(after(1000, 23).delay(), None);
    }

    #[test]
    fn a_delay_is_a_part_of_a_run_and_bounded() {
        let delay = after(1000, 48).delay().unwrap();
        assert!((11..=12).contains(&delay.as_millis()), "{delay:?}");
        let delay = after(1000, 60_000).delay().unwrap();
        assert!((15..=16).contains(&delay.as_millis()), "{delay:?}");
    }

    #[test]
    fn a_few_long_runs_among_short_ones_change_nothing() {
        let mut average = after(1000, 1);
        for _ in 0..20 {
            average.add(Duration::from_secs(3600));
            assert_eq!(average.delay(), None);
            (0..15).for_each(|_| average.add(Duration::from_millis(1)));
        }
    }

    #[test]
    fn runs_that_become_short_again_end_the_delays() {
        let mut average = after(1000, 60);
        assert!(average.delay().is_some());
        (0..32).for_each(|_| average.add(Duration::from_millis(1)));
        assert_eq!(average.delay(), None);
    }
}
