//! The host's HTTP interface (CONTRACT §2), across restarts.
//!
//! Invariant: the address is looked up for every request, because a restarted host has another one.

use crate::http::{self, Request, Response};
use crate::wait::{PAUSE, wait_for};
use greenroom_protocol::{AgentRunResult, EventAnswer, RunView, TranscriptItem, TranscriptRole};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a test waits for a host that is down.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Address and token of the running host.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub token: Arc<str>,
}

#[derive(Debug, Clone)]
pub struct Api {
    endpoint: watch::Receiver<Option<Endpoint>>,
}

/// Why a request failed.
#[derive(Debug)]
pub enum Failure {
    /// Whether the host acted on it is unknown.
    Lost(io::Error),
    /// The host returned an error.
    Refused { status: u16, body: Value },
}

impl Failure {
    /// The host is down or asks for a retry.
    pub fn is_transient(&self) -> bool {
        matches!(self, Failure::Lost(_) | Failure::Refused { status: 429 | 503, .. })
    }
}

#[derive(serde::Deserialize)]
struct Page<T> {
    items: Vec<T>,
    next_cursor: Option<Value>,
    has_more: bool,
}

impl Api {
    pub fn new(endpoint: watch::Receiver<Option<Endpoint>>) -> Self {
        Self { endpoint }
    }

    /// Sends a request to the host's current address; waits while there is none.
    pub async fn send(&self, request: Request) -> Result<Response, Failure> {
        let Endpoint { address, token } = self.endpoint().await;
        let request = request.header("authorization", format!("Bearer {token}"));
        http::send(address, &request).await.map_err(Failure::Lost)
    }

    /// Sends a request and parses its JSON response.
    pub async fn json(&self, request: Request) -> Result<(u16, Value), Failure> {
        let response = self.send(request).await?;
        let status = response.status;
        let body = response.body().await.map_err(Failure::Lost)?;
        let text = String::from_utf8_lossy(&body);
        let body = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(&*text));
        match status {
            200..300 => Ok((status, body)),
            _ => Err(Failure::Refused { status, body }),
        }
    }

    /// Sends an event once.
    pub async fn post_event(&self, event: &Value) -> Result<(u16, EventAnswer), Failure> {
        let (status, body) = self.json(Request::post("/v1/events", event.to_string())).await?;
        Ok((status, parsed(body)))
    }

    /// Sends an event until it is acknowledged; needs an `event_id` to be sent once.
    pub async fn send_event(&self, event: &Value) -> EventAnswer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.post_event(event).await {
                Ok((_, response)) => return response,
                Err(failure) => {
                    let may_retry = failure.is_transient() && Instant::now() < deadline;
                    assert!(may_retry, "{event} was not acknowledged: {failure:?}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    pub async fn run(&self, run_id: &str) -> RunView {
        parsed(self.get(&format!("/v1/runs/{run_id}")).await)
    }

    /// Waits until a run has ended.
    pub async fn ended_run(&self, run_id: &str) -> RunView {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let run = self.run(run_id).await;
            if !run.status.is_open() {
                return run;
            }
            assert!(Instant::now() < deadline, "still open: {run:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Every run, newest first.
    pub async fn runs(&self) -> Vec<RunView> {
        self.pages("/v1/runs?limit=200", "cursor").await
    }

    /// Every stored result of a run, in order.
    pub async fn results(&self, run_id: &str) -> Vec<AgentRunResult> {
        self.pages(&format!("/v1/runs/{run_id}/results?limit=200"), "after").await
    }

    /// The whole transcript of a conversation, oldest first.
    pub async fn history(&self, conversation: &str) -> Vec<TranscriptItem> {
        let target = format!("/v1/conversations/{conversation}/history?limit=200");
        let mut items: Vec<TranscriptItem> = self.pages(&target, "cursor").await;
        items.sort_by_key(|item| item.seq);
        items
    }

    /// The assistant's messages in a conversation.
    pub async fn answers(&self, conversation: &str) -> Vec<String> {
        let items = self.history(conversation).await.into_iter();
        let answers = items.filter(|item| item.role == TranscriptRole::Assistant);
        answers.map(|item| item.text.unwrap_or_default()).collect()
    }

    /// The status of a configured runner; null if there is none of this name.
    pub async fn runner(&self, name: &str) -> Value {
        let runners: Page<Value> = parsed(self.get("/v1/runners").await);
        let mut items = runners.items.into_iter();
        items.find(|runner| runner["name"] == name).unwrap_or_default()
    }

    /// Waits until a configured runner is ready.
    pub async fn ready_runner(&self, name: &str) -> Value {
        wait_for(&format!("runner {name}"), PATIENCE, async || {
            Some(self.runner(name).await).filter(|runner| runner["status"] == "ready")
        })
        .await
    }

    /// The event log, newest first.
    pub async fn events(&self) -> Vec<Value> {
        self.pages("/v1/events?limit=200", "cursor").await
    }

    /// The JSON at a path that must exist; retried while the host is down.
    pub async fn get(&self, target: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.json(Request::get(target)).await {
                Ok((_, body)) => return body,
                Err(failure) => {
                    let may_retry = failure.is_transient() && Instant::now() < deadline;
                    assert!(may_retry, "GET {target}: {failure:?}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn endpoint(&self) -> Endpoint {
        let mut endpoint = self.endpoint.clone();
        let endpoint_now = tokio::time::timeout(PATIENCE, endpoint.wait_for(Option::is_some)).await;
        let endpoint_now =
            endpoint_now.expect("the host is back in time").expect("the host is not dropped");
        endpoint_now.clone().expect("waited for it")
    }

    async fn pages<T: DeserializeOwned>(&self, target: &str, parameter: &str) -> Vec<T> {
        let mut items = Vec::new();
        let mut next = target.to_owned();
        loop {
            let page: Page<T> = parsed(self.get(&next).await);
            items.extend(page.items);
            let cursor = match page.next_cursor {
                Some(Value::String(text)) => text,
                Some(other) if page.has_more => other.to_string(),
                _ => return items,
            };
            if !page.has_more {
                return items;
            }
            next = format!("{target}&{parameter}={cursor}");
        }
    }
}

fn parsed<T: DeserializeOwned>(body: Value) -> T {
    let shown = body.to_string();
    serde_json::from_value(body).unwrap_or_else(|error| panic!("{error}: {shown}"))
}
