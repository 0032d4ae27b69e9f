//! Lets what a runner writes gather while its runs take long anyway: many then share a wake-up and a commit.
//!
//! Invariant: a pause is a part of what a run takes, and shorter than anyone sees. There is none while few runs
//! are open, and none for a runner that asks the host for something or is asked for something: someone waits.
//! What comes over a WebSocket comes in frames and is not read in pauses.

use super::Connection;
use std::time::Duration;

/// Fewer open runs have little to share.
const OPEN_MIN: usize = 8;
/// How long the runner has to have asked for nothing.
const QUIET: Duration = Duration::from_secs(1);
/// The part of a run that a pause may take.
const SHARE: u32 = 4;
/// A shorter one gathers too little.
const PAUSE_MIN: Duration = Duration::from_millis(6);
/// One picture of a screen: nobody sees that something came this much later.
const PAUSE_MAX: Duration = Duration::from_millis(16);
/// How many runs make up what is typical.
const MEMORY: u32 = 16;

/// What runs have taken of late; nothing until there were some.
#[derive(Debug, Default)]
pub(super) struct Pace(Duration);

impl Pace {
    pub(super) fn ended(&mut self, took: Duration) {
        // Beyond this nothing changes, and a run that takes an hour is not to stand for a hundred quick ones.
        let took = took.min(PAUSE_MAX * SHARE);
        self.0 = (self.0 * (MEMORY - 1) + took) / MEMORY;
    }

    fn pause(&self) -> Option<Duration> {
        let share = self.0 / SHARE;
        (share >= PAUSE_MIN).then_some(share.min(PAUSE_MAX))
    }
}

impl Connection {
    /// How long to wait before looking again at what the runner writes.
    pub(crate) fn pause(&self) -> Option<Duration> {
        if !self.outbox.is_for_pipe() || *self.live.borrow() < OPEN_MIN {
            return None;
        }
        let state = self.lock();
        if state.tool_calls > 0 || !state.calls.are_over_for(QUIET) {
            return None;
        }
        state.pace.pause()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(runs: u32, took_ms: u64) -> Pace {
        let mut pace = Pace::default();
        (0..runs).for_each(|_| pace.ended(Duration::from_millis(took_ms)));
        pace
    }

    #[test]
    fn quick_runs_are_read_at_once() {
        assert_eq!(Pace::default().pause(), None);
        assert_eq!(after(1000, 1).pause(), None);
        assert_eq!(after(1000, 23).pause(), None);
    }

    #[test]
    fn a_pause_is_a_part_of_a_run_and_short() {
        let pause = after(1000, 48).pause().unwrap();
        assert!((11..=12).contains(&pause.as_millis()), "{pause:?}");
        let pause = after(1000, 60_000).pause().unwrap();
        assert!((15..=16).contains(&pause.as_millis()), "{pause:?}");
    }

    #[test]
    fn a_few_long_runs_among_quick_ones_change_nothing() {
        let mut pace = after(1000, 1);
        for _ in 0..20 {
            pace.ended(Duration::from_secs(3600));
            assert_eq!(pace.pause(), None);
            (0..15).for_each(|_| pace.ended(Duration::from_millis(1)));
        }
    }

    #[test]
    fn runs_that_become_quick_again_end_the_pauses() {
        let mut pace = after(1000, 60);
        assert!(pace.pause().is_some());
        (0..32).for_each(|_| pace.ended(Duration::from_millis(1)));
        assert_eq!(pace.pause(), None);
    }
}
