//! A small HTTP client for a running host (CONTRACT §2).
//!
//! Invariant: an id is one path segment, so it cannot reach another resource.

mod bytes;
mod follow;
mod pin;
mod place;
mod sse;
mod waits;

pub use bytes::Download;
pub use follow::{End, follow};
pub use place::{DEFAULT_DATA, Host, HostArgs, Place};
pub use waits::Wait;

use crate::failure::{Exit, Failure};
use greenroom_protocol::{AgentAPIError, ErrorCode, RunView};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A stream that is silent for longer is reopened.
const SILENCE_MAX: Duration = Duration::from_secs(60);

pub struct Client {
    http: reqwest::Client,
    place: Place,
}

/// A page of any list.
#[derive(Debug, Deserialize, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default)]
    pub next_cursor: Option<String>,
    #[serde(default)]
    pub has_more: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot reach the host at `{url}`")]
    Unreachable { url: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("the connection to the host was lost")]
    Lost(#[source] reqwest::Error),
    #[error("{}", .0.message)]
    Refused(AgentAPIError),
    #[error("status {0} without an error of Greenroom: is it another server?")]
    Strange(StatusCode),
    #[error("cannot parse the response of the host")]
    Unreadable(#[source] reqwest::Error),
    #[error("{0}")]
    NoHost(Failure),
}

#[derive(Deserialize)]
struct Refusal {
    error: AgentAPIError,
}

impl Client {
    pub fn new(args: &HostArgs) -> Result<Self, Failure> {
        let place = Place::find(args, &greenroom_config::env::get)?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        let http = place.http(http)?;
        Ok(Self { http, place })
    }

    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Error> {
        let request = self.request(Method::GET, path)?.query(query);
        read(send(request.timeout(REQUEST_TIMEOUT)).await?).await
    }

    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let request = self.request(Method::POST, path)?.json(body);
        read(send(request.timeout(REQUEST_TIMEOUT)).await?).await
    }

    pub async fn delete<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Error> {
        let request = self.request(Method::DELETE, path)?;
        read(send(request.timeout(REQUEST_TIMEOUT)).await?).await
    }

    pub async fn run(&self, run_id: &str) -> Result<RunView, Error> {
        self.get(&["v1", "runs", run_id], &[]).await
    }

    /// The address of the host for a browser on this machine.
    pub fn address(&self) -> Result<String, Failure> {
        let mut url = self.place.locate()?.url;
        let listening = url.host_str().zip(url.port()).map(|(host, port)| format!("{host}:{port}"));
        let listening = listening.and_then(|text| text.parse().ok());
        if let Some(listening) = listening {
            // One address replaces another, which `set_host` never refuses.
            let _ = url.set_ip_host(crate::sign_in::reachable(listening).ip());
        }
        Ok(url.to_string())
    }

    /// The option that reaches the same host, after a space; empty for the default folder.
    pub fn option(&self) -> String {
        match &self.place {
            Place::Folder(dir) if dir.as_os_str() != DEFAULT_DATA => {
                format!(" --data {}", dir.display())
            }
            _ => String::new(),
        }
    }

    /// A run by the id that a user entered.
    pub async fn named_run(&self, run_id: &str) -> Result<RunView, Failure> {
        let found = self.run(run_id).await;
        found.map_err(|error| Failure::from(error).or_hint("`greenroom runs list` lists them"))
    }

    /// Opens the stream of results after a sequence number.
    async fn stream(&self, path: &[&str], after: i64) -> Result<Stream, Error> {
        let request = self.request(Method::GET, path)?.header("accept", "text/event-stream");
        let request = match after {
            0 => request,
            after => request.header("last-event-id", after),
        };
        Ok(Stream(send(request).await?))
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder, Error> {
        let mut host = self.place.locate().map_err(Error::NoHost)?;
        if let Ok(mut segments) = host.url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Ok(self.http.request(method, host.url).bearer_auth(host.token.expose()))
    }
}

struct Stream(Response);

impl Stream {
    async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        self.0.chunk().await.map_err(Error::Lost)
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Error> {
    let response = request.send().await.map_err(|error| {
        let url = error.url().map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        Error::Unreachable { url, source: root_cause(&error).into() }
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    match response.json::<Refusal>().await {
        Ok(refusal) => Err(Error::Refused(refusal.error)),
        Err(_) => Err(Error::Strange(status)),
    }
}

/// The error of the operating system; the layers above it add nothing.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, Error> {
    response.json().await.map_err(|error| match error.is_decode() {
        true => Error::Unreadable(error.without_url()),
        false => Error::Lost(error.without_url()),
    })
}

impl Error {
    /// Whether to retry the same request: the host restarts or is busy.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Lost(_) => true,
            Error::NoHost(failure) => failure.exit == Exit::NotFound,
            Error::Strange(status) => status.is_server_error(),
            Error::Refused(refusal) => refusal.retryable,
            Error::Unreadable(_) => false,
        }
    }
}

/// Whether the host reports that its database is unavailable.
fn is_down(refusal: &AgentAPIError) -> bool {
    refusal.details.get("reason").is_some_and(|reason| reason == "database_unavailable")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, hint) = match &error {
            Error::NoHost(_) => (Exit::NotFound, None),
            Error::Unreachable { .. } | Error::Lost(_) => {
                (Exit::NotFound, Some("is it running? `greenroom serve` starts it"))
            }
            Error::Refused(refusal) if is_down(refusal) => (
                Exit::Failure,
                Some(
                    "start the database: the host reconnects by itself; `greenroom doctor` shows its address",
                ),
            ),
            Error::Refused(refusal) => match refusal.code {
                ErrorCode::NotFound => (Exit::NotFound, None),
                ErrorCode::Unauthorized => (
                    Exit::Failure,
                    Some(
                        "the host does not know the token, or its role does not allow this: see `admin-token` \
                         in the host's data folder and `[tokens]` in its configuration",
                    ),
                ),
                ErrorCode::RateLimited => {
                    (Exit::Failure, Some("nothing was stored; try again in a moment"))
                }
                _ => (Exit::Failure, None),
            },
            _ => (Exit::Failure, None),
        };
        let failure = match error {
            Error::NoHost(failure) => return failure,
            error => Failure::from(anyhow::Error::new(error)).exit(exit),
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
