//! One beat for all that may wait for a moment.
//!
//! To set a timer that is due before all others wakes a worker of the runtime, which a run of a millisecond feels.
//! The beat goes on for a while after it was last asked for, so that a run that follows finds it under way.
//!
//! Invariant: who waits for a moment waits for more than one beat, and for two at most.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Beats in a row that nobody asked for, after which there are no more.
const QUIET_BEATS: u32 = 20;

pub(crate) struct Pulse {
    beats: watch::Sender<u64>,
    /// Whether somebody has asked since the last beat.
    is_asked: AtomicBool,
    asked: Notify,
}

/// A beat to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beat(u64);

impl Default for Pulse {
    fn default() -> Self {
        let beats = watch::Sender::new(0);
        Self { beats, is_asked: AtomicBool::new(false), asked: Notify::new() }
    }
}

impl Pulse {
    /// The beat after the next.
    pub(crate) fn ask(&self) -> Beat {
        if !self.is_asked.swap(true, Ordering::AcqRel) {
            self.asked.notify_one();
        }
        Beat(*self.beats.borrow() + 2)
    }

    pub(crate) async fn reached(&self, Beat(beat): Beat) {
        // The sender is in the pulse itself, so this does not end by closing.
        let _ = self.beats.subscribe().wait_for(|now| *now >= beat).await;
    }

    /// Beats while it is asked to, until the host stops.
    pub(crate) async fn keep(&self, every: Duration, stopping: &CancellationToken) {
        let beat = async {
            loop {
                self.asked.notified().await;
                let mut quiet = 0;
                while quiet < QUIET_BEATS {
                    tokio::time::sleep(every).await;
                    quiet = if self.is_asked.swap(false, Ordering::AcqRel) { 0 } else { quiet + 1 };
                    self.beats.send_modify(|beat| *beat += 1);
                }
            }
        };
        stopping.run_until_cancelled(beat).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    const EVERY: Duration = Duration::from_millis(50);

    #[tokio::test(start_paused = true)]
    async fn a_moment_is_more_than_one_beat_and_two_at_most() {
        let (pulse, stopping) = (Pulse::default(), CancellationToken::new());
        let asking = async {
            // From a pulse at rest, from one under way, and from one at rest again.
            for pause in [0, 10, 60, 1, 5_000, 49, 99] {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                let asked_at = Instant::now();
                pulse.reached(pulse.ask()).await;
                let took = asked_at.elapsed();
                assert!(took > EVERY && took <= EVERY * 2, "{took:?} after {pause} ms");
            }
            stopping.cancel();
        };
        tokio::join!(asking, pulse.keep(EVERY, &stopping));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pulse_that_nobody_asks_rests() {
        let (pulse, stopping) = (Pulse::default(), CancellationToken::new());
        let asking = async {
            pulse.reached(pulse.ask()).await;
            tokio::time::sleep(Duration::from_secs(10)).await;
            let beats = *pulse.beats.borrow();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(*pulse.beats.borrow(), beats);
            stopping.cancel();
        };
        tokio::join!(asking, pulse.keep(EVERY, &stopping));
    }
}
