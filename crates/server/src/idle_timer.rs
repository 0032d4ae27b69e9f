//! Reports when a stream has been idle for a while. One timer per stream: setting a timer for every chunk would
//! cost more than the chunk.

use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

pub(crate) struct IdleTimer {
    timeout: Duration,
    last_activity: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl IdleTimer {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, last_activity: Instant::now(), sleep: Box::pin(sleep(timeout)) }
    }

    pub(crate) fn reset(&mut self) {
        self.last_activity = Instant::now();
    }

    /// Waits until the stream has been idle for the timeout. Cancel safe.
    pub(crate) async fn elapsed(&mut self) {
        loop {
            self.sleep.as_mut().await;
            let end = self.last_activity + self.timeout;
            if Instant::now() >= end {
                return;
            }
            self.sleep.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(15);

    async fn wait_s(timer: &mut IdleTimer) -> u64 {
        let begun = Instant::now();
        timer.elapsed().await;
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn the_timeout_counts_from_the_last_activity() {
        let mut timer = IdleTimer::new(TIMEOUT);
        assert_eq!(wait_s(&mut timer).await, 15);
        timer.reset();
        assert_eq!(wait_s(&mut timer).await, 15);
        timer.reset();
        tokio::time::sleep(Duration::from_secs(10)).await;
        timer.reset();
        assert_eq!(wait_s(&mut timer).await, 15);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_may_be_cancelled_and_repeated() {
        let mut timer = IdleTimer::new(TIMEOUT);
        for _ in 0..3 {
            let early = tokio::time::timeout(Duration::from_secs(4), timer.elapsed()).await;
            assert!(early.is_err());
        }
        assert_eq!(wait_s(&mut timer).await, 3);
    }
}
