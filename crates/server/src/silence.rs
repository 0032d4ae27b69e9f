//! Tells when a stream has been silent for long, with one timer for all of its life: setting a timer for every
//! piece that goes out would cost more than the piece.

use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

pub(crate) struct Silence {
    length: Duration,
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Silence {
    pub(crate) fn new(length: Duration) -> Self {
        Self { length, since: Instant::now(), timer: Box::pin(sleep(length)) }
    }

    /// Something went out.
    pub(crate) fn broken(&mut self) {
        self.since = Instant::now();
    }

    /// Waits until nothing has gone out for the whole length. May be dropped and asked again.
    pub(crate) async fn lasts(&mut self) {
        loop {
            self.timer.as_mut().await;
            let end = self.since + self.length;
            if Instant::now() >= end {
                return;
            }
            self.timer.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(15);

    async fn lasted(silence: &mut Silence) -> u64 {
        let begun = Instant::now();
        silence.lasts().await;
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn it_counts_from_what_went_out_last() {
        let mut silence = Silence::new(LENGTH);
        assert_eq!(lasted(&mut silence).await, 15);
        silence.broken();
        assert_eq!(lasted(&mut silence).await, 15);
        silence.broken();
        tokio::time::sleep(Duration::from_secs(10)).await;
        silence.broken();
        assert_eq!(lasted(&mut silence).await, 15);
    }

    #[tokio::test(start_paused = true)]
    async fn it_may_be_asked_in_pieces() {
        let mut silence = Silence::new(LENGTH);
        for _ in 0..3 {
            let early = tokio::time::timeout(Duration::from_secs(4), silence.lasts()).await;
            assert!(early.is_err());
        }
        assert_eq!(lasted(&mut silence).await, 3);
    }
}
