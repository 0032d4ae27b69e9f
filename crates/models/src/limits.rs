//! Concurrency and rate limits of one API key.
//!
//! Invariant: a request waits within its deadline; one that cannot start in time is rejected at once.

use crate::ModelError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Limits {
    slots: Option<Arc<Semaphore>>,
    rate: Option<Rate>,
}

/// A request in progress; dropping it frees its slot.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Rate {
    per_minute: usize,
    /// Start times of recent and reserved requests, earliest first.
    starts: Mutex<VecDeque<Instant>>,
}

impl Limits {
    pub(crate) fn new(max_concurrent: Option<u32>, requests_per_minute: Option<u32>) -> Self {
        let size = |number: u32| usize::try_from(number.max(1)).unwrap_or(usize::MAX);
        let slots = |number| Arc::new(Semaphore::new(size(number).min(Semaphore::MAX_PERMITS)));
        let rate = |number| Rate { per_minute: size(number), starts: Mutex::default() };
        Self { slots: max_concurrent.map(slots), rate: requests_per_minute.map(rate) }
    }

    pub(crate) async fn acquire(&self, deadline: Instant) -> Result<Slot, ModelError> {
        let permit = match &self.slots {
            None => None,
            Some(slots) => match timeout_at(deadline, Arc::clone(slots).acquire_owned()).await {
                Ok(permit) => permit.ok(),
                Err(_) => return Err(rate_limited("all concurrent requests are in use", None)),
            },
        };
        if let Some(rate) = &self.rate {
            sleep_until(rate.reserve(deadline)?).await;
        }
        Ok(Slot { _permit: permit })
    }
}

impl Rate {
    /// The time at which one more request may start.
    fn reserve(&self, deadline: Instant) -> Result<Instant, ModelError> {
        let now = Instant::now();
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        while starts.front().is_some_and(|first| *first + MINUTE <= now) {
            starts.pop_front();
        }
        let free = starts.len().checked_sub(self.per_minute).map(|at| starts[at] + MINUTE);
        let at = free.map_or(now, |free| free.max(now));
        if at > deadline {
            return Err(rate_limited("the requests per minute are used up", Some(at - now)));
        }
        starts.push_back(at);
        Ok(at)
    }
}

fn rate_limited(message: &str, retry_after: Option<Duration>) -> ModelError {
    ModelError::RateLimited { message: message.to_owned(), retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn concurrency_is_limited_and_waiting_ends_at_the_deadline() {
        let limits = Limits::new(Some(2), None);
        let first = limits.acquire(after(1)).await.unwrap();
        let _second = limits.acquire(after(1)).await.unwrap();
        let starts = Instant::now();
        assert!(matches!(limits.acquire(after(3)).await, Err(ModelError::RateLimited { .. })));
        assert_eq!(starts.elapsed(), Duration::from_secs(3));
        drop(first);
        assert!(limits.acquire(after(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_a_sliding_minute_and_late_requests_are_rejected_at_once() {
        let limits = Limits::new(None, Some(2));
        let starts = Instant::now();
        limits.acquire(after(1)).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        limits.acquire(after(1)).await.unwrap();
        let error = limits.acquire(after(5)).await.unwrap_err();
        let wait = Some(Duration::from_secs(50));
        assert!(
            matches!(error, ModelError::RateLimited { retry_after, .. } if retry_after == wait)
        );
        assert_eq!(starts.elapsed(), Duration::from_secs(10), "nobody waited");
        limits.acquire(after(55)).await.unwrap();
        assert_eq!(starts.elapsed(), MINUTE);
        limits.acquire(after(55)).await.unwrap();
        assert_eq!(starts.elapsed(), MINUTE + Duration::from_secs(10));
    }
}
