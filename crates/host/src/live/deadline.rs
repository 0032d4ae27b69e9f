//! A run's deadline: on the monotonic clock, paused while the run waits for an approval.
//!
//! Invariant: time spent waiting for people does not count; simultaneous waits count once.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Deadline {
    clock: watch::Sender<Clock>,
}

#[derive(Debug, Clone, Copy)]
enum Clock {
    Until(Instant),
    Paused { left: Duration, waits: usize },
}

/// Pauses the deadline until it is dropped.
#[derive(Debug)]
pub(crate) struct Pause<'a>(&'a Deadline);

impl Deadline {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { clock: watch::channel(Clock::Until(Instant::now() + limit)).0 }
    }

    pub(crate) fn left(&self) -> Duration {
        match *self.clock.borrow() {
            Clock::Until(at) => at.saturating_duration_since(Instant::now()),
            Clock::Paused { left, .. } => left,
        }
    }

    pub(crate) fn pause(&self) -> Pause<'_> {
        self.clock.send_modify(|clock| {
            *clock = match *clock {
                Clock::Until(at) => {
                    Clock::Paused { left: at.saturating_duration_since(Instant::now()), waits: 1 }
                }
                Clock::Paused { left, waits } => Clock::Paused { left, waits: waits + 1 },
            }
        });
        Pause(self)
    }

    /// Resolves when the deadline has passed.
    pub(crate) async fn passed(&self) {
        let mut clock = self.clock.subscribe();
        loop {
            let now = *clock.borrow_and_update();
            let passed = async {
                match now {
                    Clock::Until(at) => tokio::time::sleep_until(at).await,
                    Clock::Paused { .. } => std::future::pending().await,
                }
            };
            tokio::select! {
                () = passed => return,
                // `self` owns the sender, so the channel does not close.
                _ = clock.changed() => {}
            }
        }
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.clock.send_modify(|clock| {
            if let Clock::Paused { left, waits } = *clock {
                *clock = match waits {
                    0 | 1 => Clock::Until(Instant::now() + left),
                    _ => Clock::Paused { left, waits: waits - 1 },
                };
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn time_spent_waiting_for_people_does_not_count() {
        let deadline = Deadline::new(10 * SECOND);
        let started = Instant::now();
        let asked = async {
            tokio::time::sleep(4 * SECOND).await;
            let one = deadline.pause();
            tokio::time::sleep(30 * SECOND).await;
            let two = deadline.pause();
            drop(one);
            tokio::time::sleep(30 * SECOND).await;
            assert_eq!(deadline.left(), 6 * SECOND);
            drop(two);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = asked => {}
            () = deadline.passed() => {}
        }
        assert_eq!(started.elapsed().as_secs(), 70);
        assert_eq!(deadline.left(), Duration::ZERO);
    }
}
