//! Whether and when a request is retried.
//!
//! Invariant: no wait for an attempt that would start after the deadline.

use super::{CallDeadline, Failure};
use crate::ModelError;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

const BASE: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(16);

/// Transient errors other than an idle timeout, after which it is unknown whether the request was processed.
pub(super) fn is_retryable(error: &ModelError) -> bool {
    match error {
        ModelError::RateLimited { .. } | ModelError::Unavailable(_) => true,
        ModelError::Rejected { status, .. } => matches!(status, 408 | 409 | 500..),
        _ => false,
    }
}

/// Waits before the next attempt, or returns the error if the deadline is earlier.
pub(super) async fn wait(
    attempt: u32,
    failure: Failure,
    until: CallDeadline,
) -> Result<(), ModelError> {
    let Failure { error, retry_after, .. } = failure;
    let delay = retry_after.unwrap_or_else(|| jitter(max_delay(attempt)));
    let at = Instant::now() + delay;
    if at >= until.at {
        return Err(error);
    }
    tracing::debug!(%error, wait_ms = delay.as_millis(), "retrying a model request");
    sleep_until(at).await;
    Ok(())
}

fn max_delay(attempt: u32) -> Duration {
    BASE.saturating_mul(1 << attempt.min(10)).min(MAX)
}

/// Full jitter: a random delay up to the ceiling.
fn jitter(ceiling: Duration) -> Duration {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => ceiling.mul_f64(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)),
        Err(_) => ceiling,
    }
}

/// `Retry-After` in seconds or as a date, or `retry-after-ms`.
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
    fn retry_after_is_parsed_in_all_forms() {
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
    fn delays_grow_to_a_maximum() {
        assert_eq!(max_delay(0), BASE);
        assert_eq!(max_delay(2), BASE * 4);
        assert_eq!(max_delay(u32::MAX), MAX);
        assert!(jitter(MAX) <= MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn no_wait_for_an_attempt_after_the_deadline() {
        let error = ModelError::Unavailable("busy".to_owned());
        let failure =
            || Failure { retry_after: Some(Duration::from_secs(30)), ..error.clone().into() };
        let begun = Instant::now();
        let until =
            |seconds| CallDeadline { at: begun + Duration::from_secs(seconds), timeout: None };
        assert_eq!(wait(0, failure(), until(20)).await, Err(error.clone()));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(wait(0, failure(), until(40)).await, Ok(()));
        assert_eq!(begun.elapsed(), Duration::from_secs(30));
    }
}
