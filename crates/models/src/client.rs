//! Requests to a provider: sent, retried while nothing was received, read within limits.
//!
//! Invariant: a request is retried only while no item of its response was emitted; every wait ends at the
//! deadline; errors contain no key.

mod probe;
mod response;
mod retry;

use crate::limits::{Limits, Slot};
use crate::{ModelError, ModelSettings, provider_error, wires};
use bytes::Bytes;
use greenroom_outgoing::{Outgoing, cause};
pub use probe::Probe;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
pub(crate) use response::ResponseStream;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Kept open, so that as many concurrent conversations need no new handshakes.
const IDLE_CONNECTIONS: usize = 256;
/// Limit for an error response.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Limit for a JSON response such as a ranking or vectors.
const JSON_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Outgoing connection settings of a model.
pub(crate) fn outgoing(settings: &ModelSettings) -> Outgoing {
    Outgoing {
        allow_private: settings.allow_private,
        timeout: None,
        connect_timeout: Some(CONNECT_TIMEOUT),
        proxy: settings.proxy.clone(),
        keep_idle: IDLE_CONNECTIONS,
    }
}

/// Sends the requests of one model.
#[derive(Debug)]
pub(crate) struct ProviderClient {
    client: Client,
    /// The parsed URL of the first request: parsing costs a third of sending.
    first_url: OnceLock<(String, Url)>,
    headers: HeaderMap,
    /// Redacted from errors.
    secrets: Vec<String>,
    limits: Arc<Limits>,
    timeout: Duration,
    idle_timeout: Duration,
    retries: u32,
}

/// When a call must have ended, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallDeadline {
    at: Instant,
    /// The model's own timeout, if it ends before the run's deadline.
    timeout: Option<Duration>,
}

impl CallDeadline {
    /// The deadline for the next bytes.
    fn or_idle(self, idle: Duration) -> Instant {
        self.at.min(Instant::now() + idle)
    }

    /// The error for a wait that ended at `wait_until`.
    fn timeout_error(self, wait_until: Instant, idle: Duration) -> ModelError {
        match self.timeout {
            _ if wait_until < self.at => ModelError::IdleTimeout(idle),
            None => ModelError::DeadlineExceeded,
            Some(timeout) => {
                let seconds = timeout.as_secs_f64();
                ModelError::Unavailable(format!("its response took longer than {seconds} s"))
            }
        }
    }
}

/// A failed attempt, whether to retry, and the provider's delay.
pub(crate) struct Failure {
    error: ModelError,
    retryable: bool,
    retry_after: Option<Duration>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { retryable: retry::is_retryable(&error), error, retry_after: None }
    }
}

/// A successful attempt.
pub(crate) struct Opened {
    pub(crate) response: Response,
    pub(crate) slot: Slot,
}

impl ProviderClient {
    pub(crate) fn new(
        settings: &ModelSettings,
        client: Client,
        limits: Arc<Limits>,
    ) -> Result<Self, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let wires = wires::headers(settings);
        let own = settings.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
        let all = wires.iter().map(|(name, value)| (*name, value.as_str())).chain(own);
        for (name, value) in all {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            let Some((name, mut value)) = parsed else {
                let text = format!("the model `{}` has an invalid header `{name}`", settings.name);
                return Err(ModelError::InvalidRequest(text));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let secrets = settings.api_key.iter().chain(settings.headers.values());
        Ok(Self {
            client,
            first_url: OnceLock::new(),
            headers,
            secrets: secrets.map(|secret| secret.expose().to_owned()).collect(),
            limits,
            timeout: settings.timeout,
            idle_timeout: settings.idle_timeout,
            retries: settings.retries,
        })
    }

    /// The deadline of a call that starts now.
    pub(crate) fn call_deadline(&self, deadline: Instant) -> CallDeadline {
        let own = Instant::now() + self.timeout;
        CallDeadline { at: deadline.min(own), timeout: (own < deadline).then_some(self.timeout) }
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    /// One attempt.
    pub(crate) async fn open(
        &self,
        url: &str,
        body: &Bytes,
        until: CallDeadline,
    ) -> Result<Opened, Failure> {
        let entered = self.limits.acquire(until.at).await;
        // Waiting for our own limits already used the time until the deadline.
        let slot =
            entered.map_err(|error| Failure { error, retryable: false, retry_after: None })?;
        let request = self.post(url).headers(self.headers.clone()).body(body.clone());
        let wait_until = until.or_idle(self.idle_timeout);
        let response = match timeout_at(wait_until, request.send()).await {
            Err(_) => return Err(until.timeout_error(wait_until, self.idle_timeout).into()),
            Ok(Err(error)) => {
                return Err(self.redact(ModelError::Unavailable(cause(&error))).into());
            }
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(Opened { response, slot });
        }
        let retry_after = retry::after(response.headers());
        let error = self.redact(read_error(response, wait_until, retry_after).await);
        Err(Failure { retryable: retry::is_retryable(&error), error, retry_after })
    }

    fn post(&self, url: &str) -> RequestBuilder {
        match self.first_url.get() {
            Some((text, first_url)) if text == url => self.client.post(first_url.clone()),
            Some(_) => self.client.post(url),
            None => {
                if let Ok(first_url) = Url::parse(url) {
                    let _ = self.first_url.set((url.to_owned(), first_url));
                }
                self.client.post(url)
            }
        }
    }

    /// A request with a JSON response, such as vectors or a ranking.
    pub(crate) async fn json(
        &self,
        url: &str,
        body: &Value,
        deadline: Instant,
    ) -> Result<Value, ModelError> {
        let body = Bytes::from(body.to_string());
        let until = self.call_deadline(deadline);
        let mut attempt = 0;
        loop {
            match self.json_once(url, &body, until).await {
                Err(failure) if attempt < self.retries && failure.retryable => {
                    retry::wait(attempt, failure, until).await?;
                    attempt += 1;
                }
                result => return result.map_err(|failure| failure.error),
            }
        }
    }

    async fn json_once(
        &self,
        url: &str,
        body: &Bytes,
        until: CallDeadline,
    ) -> Result<Value, Failure> {
        let mut opened = self.open(url, body, until).await?;
        let mut all = Vec::new();
        loop {
            let wait_until = until.or_idle(self.idle_timeout);
            match timeout_at(wait_until, opened.response.chunk()).await {
                Err(_) => return Err(until.timeout_error(wait_until, self.idle_timeout).into()),
                Ok(Err(error)) => return Err(ModelError::Unavailable(cause(&error)).into()),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(bytes))) => all.extend_from_slice(&bytes),
            }
            if all.len() > JSON_BYTES_MAX {
                return Err(ModelError::TooLarge(JSON_BYTES_MAX).into());
            }
        }
        serde_json::from_slice(&all)
            .map_err(|error| ModelError::InvalidResponse(format!("it is not JSON: {error}")).into())
    }

    /// Providers sometimes repeat keys in error messages.
    pub(crate) fn redact(&self, error: ModelError) -> ModelError {
        let redact = |text: String| {
            let known = self.secrets.iter().filter(|secret| secret.len() >= 8);
            known.fold(text, |text, secret| text.replace(secret.as_str(), "…"))
        };
        match error {
            ModelError::Rejected { status, message } => {
                ModelError::Rejected { status, message: redact(message) }
            }
            ModelError::RateLimited { message, retry_after } => {
                ModelError::RateLimited { message: redact(message), retry_after }
            }
            ModelError::Unavailable(text) => ModelError::Unavailable(redact(text)),
            ModelError::InvalidResponse(text) => ModelError::InvalidResponse(redact(text)),
            other => other,
        }
    }
}

/// Reads an error response, as much of it as arrives in time.
async fn read_error(
    mut response: Response,
    wait_until: Instant,
    retry_after: Option<Duration>,
) -> ModelError {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while body.len() < ERROR_BYTES_MAX
        && let Ok(Ok(Some(bytes))) = timeout_at(wait_until, response.chunk()).await
    {
        body.extend_from_slice(&bytes);
    }
    body.truncate(ERROR_BYTES_MAX);
    provider_error::from_status(status, &String::from_utf8_lossy(&body), retry_after)
}
