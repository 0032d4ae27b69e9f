//! How many requests one key may have under way, and how many it may begin in a minute.
//!
//! Invariant: whoever waits does so inside its deadline; what does not fit in it is refused at once.

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

/// A request that is under way; dropping it makes room.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Rate {
    per_minute: usize,
    /// When the last of them began or will begin, the earliest first.
    begun: Mutex<VecDeque<Instant>>,
}

impl Limits {
    pub(crate) fn new(max_concurrent: Option<u32>, requests_per_minute: Option<u32>) -> Self {
        let size = |number: u32| usize::try_from(number.max(1)).unwrap_or(usize::MAX);
        let slots = |number| Arc::new(Semaphore::new(size(number).min(Semaphore::MAX_PERMITS)));
        let rate = |number| Rate { per_minute: size(number), begun: Mutex::default() };
        Self { slots: max_concurrent.map(slots), rate: requests_per_minute.map(rate) }
    }

    pub(crate) async fn enter(&self, deadline: Instant) -> Result<Slot, ModelError> {
        let permit = match &self.slots {
            None => None,
            Some(slots) => match timeout_at(deadline, Arc::clone(slots).acquire_owned()).await {
                Ok(permit) => permit.ok(),
                Err(_) => return Err(refused("all requests that it may have are under way", None)),
            },
        };
        if let Some(rate) = &self.rate {
            sleep_until(rate.reserve(deadline)?).await;
        }
        Ok(Slot { _permit: permit })
    }
}

impl Rate {
    /// The moment at which one more may begin.
    fn reserve(&self, deadline: Instant) -> Result<Instant, ModelError> {
        let now = Instant::now();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        while begun.front().is_some_and(|first| *first + MINUTE <= now) {
            begun.pop_front();
        }
        let free = begun.len().checked_sub(self.per_minute).map(|at| begun[at] + MINUTE);
        let at = free.map_or(now, |free| free.max(now));
        if at > deadline {
            return Err(refused("its requests of this minute are used up", Some(at - now)));
        }
        begun.push_back(at);
        Ok(at)
    }
}

fn refused(message: &str, retry_after: Option<Duration>) -> ModelError {
    ModelError::RateLimited { message: message.to_owned(), retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_are_under_way_and_waiting_ends_with_the_deadline() {
        let limits = Limits::new(Some(2), None);
        let first = limits.enter(after(1)).await.unwrap();
        let _second = limits.enter(after(1)).await.unwrap();
        let begun = Instant::now();
        assert!(matches!(limits.enter(after(3)).await, Err(ModelError::RateLimited { .. })));
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
        drop(first);
        assert!(limits.enter(after(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_begins_with_each_request_and_what_does_not_fit_is_refused_at_once() {
        let limits = Limits::new(None, Some(2));
        let begun = Instant::now();
        limits.enter(after(1)).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        limits.enter(after(1)).await.unwrap();
        let error = limits.enter(after(5)).await.unwrap_err();
        let wait = Some(Duration::from_secs(50));
        assert!(
            matches!(error, ModelError::RateLimited { retry_after, .. } if retry_after == wait)
        );
        assert_eq!(begun.elapsed(), Duration::from_secs(10), "nobody waited");
        limits.enter(after(55)).await.unwrap();
        assert_eq!(begun.elapsed(), MINUTE);
        limits.enter(after(55)).await.unwrap();
        assert_eq!(begun.elapsed(), MINUTE + Duration::from_secs(10));
    }
}
