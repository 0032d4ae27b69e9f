//! A run's deadline: on the monotonic clock, standing still while somebody is asked.
//!
//! Invariant: time that is spent waiting for people does not count; several waits at once count as one.

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

/// The deadline stands still until this is dropped.
#[derive(Debug)]
pub(crate) struct Pause<'a>(&'a Deadline);

impl Deadline {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { clock: watch::channel(Clock::Until(Instant::now() + limit)).0 }
    }

    /// What is left of the run's time.
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

    /// Waits until the time is over.
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
                // The sender lives in the deadline itself, so this does not end by closing.
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
