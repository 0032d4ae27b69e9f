//! Requests to a provider: sent, tried again while nothing came back, read within limits.
//!
//! Invariant: a request is repeated only while no item of its answer has gone out; every wait ends with the
//! deadline; no key is in an error.

mod answer;
mod probe;
mod retry;

use crate::limits::{Limits, Slot};
use crate::{ModelError, ModelSettings, refusal, wires};
pub(crate) use answer::Answer;
use bytes::Bytes;
use greenroom_outgoing::{Outgoing, cause};
pub use probe::Probe;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Kept for the next requests: as many conversations as go on at once need no new handshakes.
const IDLE_CONNECTIONS: usize = 256;
/// Of an answer that is an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Of an answer that is one JSON value: a ranking, vectors.
const JSON_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How the models of one configuration entry reach the outside.
pub(crate) fn outgoing(settings: &ModelSettings) -> Outgoing {
    Outgoing {
        allow_private: settings.allow_private,
        timeout: None,
        connect_timeout: Some(CONNECT_TIMEOUT),
        proxy: settings.proxy.clone(),
        keep_idle: IDLE_CONNECTIONS,
    }
}

/// One model's way to its provider.
#[derive(Debug)]
pub(crate) struct Caller {
    client: Client,
    /// The address of the first request: reading one takes a third of what sending it does.
    place: OnceLock<(String, Url)>,
    headers: HeaderMap,
    /// What must not be in an error.
    secrets: Vec<String>,
    limits: Arc<Limits>,
    timeout: Duration,
    idle_timeout: Duration,
    retries: u32,
}

/// When a call has to be over, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    at: Instant,
    /// The model's own limit, where it ends before the run does.
    timeout: Option<Duration>,
}

impl Until {
    /// How long to wait for the next sign of life.
    fn or_idle(self, idle: Duration) -> Instant {
        self.at.min(Instant::now() + idle)
    }

    /// Why nothing came until `patience` was over.
    fn passed(self, patience: Instant, idle: Duration) -> ModelError {
        match self.timeout {
            _ if patience < self.at => ModelError::Silent(idle),
            None => ModelError::DeadlineExceeded,
            Some(timeout) => {
                let seconds = timeout.as_secs_f64();
                ModelError::Unavailable(format!("its answer took longer than {seconds} s"))
            }
        }
    }
}

/// One attempt that failed, whether another is worth it, and when the provider wants to see it.
pub(crate) struct Failure {
    error: ModelError,
    again: bool,
    retry_after: Option<Duration>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { again: retry::is_worth(&error), error, retry_after: None }
    }
}

/// One attempt that was answered with success.
pub(crate) struct Opened {
    pub(crate) response: Response,
    pub(crate) slot: Slot,
}

impl Caller {
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
                let text =
                    format!("the model `{}` has a header that is none: `{name}`", settings.name);
                return Err(ModelError::InvalidRequest(text));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let secrets = settings.api_key.iter().chain(settings.headers.values());
        Ok(Self {
            client,
            place: OnceLock::new(),
            headers,
            secrets: secrets.map(|secret| secret.expose().to_owned()).collect(),
            limits,
            timeout: settings.timeout,
            idle_timeout: settings.idle_timeout,
            retries: settings.retries,
        })
    }

    /// When a call that begins now has to be over.
    pub(crate) fn until(&self, deadline: Instant) -> Until {
        let own = Instant::now() + self.timeout;
        Until { at: deadline.min(own), timeout: (own < deadline).then_some(self.timeout) }
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
        until: Until,
    ) -> Result<Opened, Failure> {
        let entered = self.limits.enter(until.at).await;
        // Our own limits were waited for as long as the deadline allows.
        let slot = entered.map_err(|error| Failure { error, again: false, retry_after: None })?;
        let request = self.post(url).headers(self.headers.clone()).body(body.clone());
        let patience = until.or_idle(self.idle_timeout);
        let response = match timeout_at(patience, request.send()).await {
            Err(_) => return Err(until.passed(patience, self.idle_timeout).into()),
            Ok(Err(error)) => {
                return Err(self.clean(ModelError::Unavailable(cause(&error))).into());
            }
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(Opened { response, slot });
        }
        let retry_after = retry::after(response.headers());
        let error = self.clean(refused(response, patience, retry_after).await);
        Err(Failure { again: retry::is_worth(&error), error, retry_after })
    }

    /// A request to this address, which nearly always is that of the first.
    fn post(&self, url: &str) -> RequestBuilder {
        match self.place.get() {
            Some((text, place)) if text == url => self.client.post(place.clone()),
            Some(_) => self.client.post(url),
            None => {
                if let Ok(place) = Url::parse(url) {
                    let _ = self.place.set((url.to_owned(), place));
                }
                self.client.post(url)
            }
        }
    }

    /// A request whose answer is one JSON value, e.g. vectors or a ranking.
    pub(crate) async fn json(
        &self,
        url: &str,
        body: &Value,
        deadline: Instant,
    ) -> Result<Value, ModelError> {
        let body = Bytes::from(body.to_string());
        let until = self.until(deadline);
        let mut attempt = 0;
        loop {
            match self.json_once(url, &body, until).await {
                Err(failure) if attempt < self.retries && failure.again => {
                    retry::wait(attempt, failure, until).await?;
                    attempt += 1;
                }
                answer => return answer.map_err(|failure| failure.error),
            }
        }
    }

    async fn json_once(&self, url: &str, body: &Bytes, until: Until) -> Result<Value, Failure> {
        let mut opened = self.open(url, body, until).await?;
        let mut all = Vec::new();
        loop {
            let patience = until.or_idle(self.idle_timeout);
            match timeout_at(patience, opened.response.chunk()).await {
                Err(_) => return Err(until.passed(patience, self.idle_timeout).into()),
                Ok(Err(error)) => return Err(ModelError::Unavailable(cause(&error)).into()),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(bytes))) => all.extend_from_slice(&bytes),
            }
            if all.len() > JSON_BYTES_MAX {
                return Err(ModelError::TooLarge(JSON_BYTES_MAX).into());
            }
        }
        serde_json::from_slice(&all)
            .map_err(|error| ModelError::Garbled(format!("it is not JSON: {error}")).into())
    }

    /// Providers like to repeat keys in what they say about them.
    pub(crate) fn clean(&self, error: ModelError) -> ModelError {
        let clean = |text: String| {
            let known = self.secrets.iter().filter(|secret| secret.len() >= 8);
            known.fold(text, |text, secret| text.replace(secret.as_str(), "…"))
        };
        match error {
            ModelError::Refused { status, message } => {
                ModelError::Refused { status, message: clean(message) }
            }
            ModelError::RateLimited { message, retry_after } => {
                ModelError::RateLimited { message: clean(message), retry_after }
            }
            ModelError::Unavailable(text) => ModelError::Unavailable(clean(text)),
            ModelError::Garbled(text) => ModelError::Garbled(clean(text)),
            other => other,
        }
    }
}

/// What an answer other than success says; as much of it as comes in time.
async fn refused(
    mut response: Response,
    patience: Instant,
    retry_after: Option<Duration>,
) -> ModelError {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while body.len() < ERROR_BYTES_MAX
        && let Ok(Ok(Some(bytes))) = timeout_at(patience, response.chunk()).await
    {
        body.extend_from_slice(&bytes);
    }
    body.truncate(ERROR_BYTES_MAX);
    refusal::from_status(status, &String::from_utf8_lossy(&body), retry_after)
}
