//! Whether, when and how often a request is tried again.
//!
//! Invariant: nobody waits for an attempt that the deadline would not allow.

use super::{Failure, Until};
use crate::ModelError;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

const BASE: Duration = Duration::from_millis(500);
const MOST: Duration = Duration::from_secs(16);

/// What passes by itself and is not silence: after a silence nobody knows whether it was heard.
pub(super) fn is_worth(error: &ModelError) -> bool {
    match error {
        ModelError::RateLimited { .. } | ModelError::Unavailable(_) => true,
        ModelError::Refused { status, .. } => matches!(status, 408 | 409 | 500..),
        _ => false,
    }
}

/// Waits before the next attempt, or gives the error back where the time does not allow one.
pub(super) async fn wait(attempt: u32, failure: Failure, until: Until) -> Result<(), ModelError> {
    let Failure { error, retry_after, .. } = failure;
    let time = retry_after.unwrap_or_else(|| jitter(ceiling(attempt)));
    let at = Instant::now() + time;
    if at >= until.at {
        return Err(error);
    }
    tracing::debug!(%error, wait_ms = time.as_millis(), "a model's provider is tried again");
    sleep_until(at).await;
    Ok(())
}

fn ceiling(attempt: u32) -> Duration {
    BASE.saturating_mul(1 << attempt.min(10)).min(MOST)
}

/// Anything from nothing to all of it.
fn jitter(ceiling: Duration) -> Duration {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => ceiling.mul_f64(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)),
        Err(_) => ceiling,
    }
}

/// `Retry-After` in seconds or as a date, or the milliseconds that some providers add.
pub(super) fn after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok().filter(|n| (0.0..1e9).contains(n));
    if let Some(ms) = number("retry-after-ms") {
        return Some(Duration::from_secs_f64(ms / 1000.0));
    }
    if let Some(seconds) = number(RETRY_AFTER.as_str()) {
        return Some(Duration::from_secs_f64(seconds));
    }
    let date = httpdate::parse_http_date(text(RETRY_AFTER.as_str())?).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn the_time_to_wait_is_read_in_all_its_forms() {
        assert_eq!(after(&headers("retry-after", "7")), Some(Duration::from_secs(7)));
        assert_eq!(after(&headers("retry-after", "0.5")), Some(Duration::from_millis(500)));
        assert_eq!(after(&headers("retry-after-ms", "40")), Some(Duration::from_millis(40)));
        let past = headers("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(after(&past), Some(Duration::ZERO));
        for nonsense in ["-1", "soon", "1e300", "NaN"] {
            assert_eq!(after(&headers("retry-after", nonsense)), None, "{nonsense}");
        }
    }

    #[test]
    fn waits_grow_to_a_ceiling() {
        assert_eq!(ceiling(0), BASE);
        assert_eq!(ceiling(2), BASE * 4);
        assert_eq!(ceiling(u32::MAX), MOST);
        assert!(jitter(MOST) <= MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_the_deadline_does_not_allow_is_not_waited_for() {
        let error = ModelError::Unavailable("busy".to_owned());
        let failure =
            || Failure { retry_after: Some(Duration::from_secs(30)), ..error.clone().into() };
        let begun = Instant::now();
        let until = |seconds| Until { at: begun + Duration::from_secs(seconds), timeout: None };
        assert_eq!(wait(0, failure(), until(20)).await, Err(error.clone()));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(wait(0, failure(), until(40)).await, Ok(()));
        assert_eq!(begun.elapsed(), Duration::from_secs(30));
    }
}
