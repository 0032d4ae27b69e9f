//! Carries out what a plugin asks for: one action, by one call of the host's or a few.
//!
//! Invariant: every action gets one answer, or the end of its stream; each call is made as the same run.

use super::actions::{Asked, Reply, told};
use super::frames::{self, Part};
use super::records::About;
use super::stream::Flow;
use crate::connection::Connection;
use crate::proxy::ProxyCall;
use crate::wires::Codec;
use bytes::Bytes;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Pages of keys that one action gathers.
const PAGES_MAX: usize = 100;
/// Longest time that a plugin may give a call.
const TIMEOUT_S_MAX: f64 = 86_400.0;

/// One action on its way.
pub(crate) struct Serving {
    pub(crate) connection: Arc<Connection>,
    pub(crate) call: ProxyCall,
    pub(crate) asked: Asked,
    pub(crate) about: About,
    pub(crate) timeout: Option<Duration>,
    /// Of an action that is answered chunk by chunk.
    pub(crate) stream: Option<OpenStream>,
}

/// How long the plugin waits for an action, if it says so.
pub(crate) fn timeout_of(data: &Value) -> Option<Duration> {
    let seconds = data["timeout"].as_f64()?;
    (0.0..TIMEOUT_S_MAX).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

impl Serving {
    /// The last frame of the action.
    pub(crate) async fn serve(mut self) -> Bytes {
        let id = self.call.sink.request_id.clone();
        let timeout = self.timeout;
        let answering = self.answer();
        let answer = match timeout {
            Some(timeout) => tokio::time::timeout(timeout, answering).await.unwrap_or_else(|_| {
                let message = "the call took longer than the plugin wanted to wait";
                Err(AgentAPIError::new(ErrorCode::DeadlineExceeded, message))
            }),
            None => answering.await,
        };
        match answer {
            Ok(_) if self.stream.is_some() => frames::success(&id, "{}", Part::End, None),
            answer => frames::answer(&id, answer),
        }
    }

    async fn answer(&mut self) -> Result<Box<RawValue>, AgentAPIError> {
        let reply = self.asked.reply.clone();
        if reply == Reply::StorageKeys {
            return raw(&json!({"keys": self.all_keys().await?}));
        }
        let params = self.asked.params.clone();
        let answer = self.ask(self.asked.method, params).await?;
        if matches!(reply, Reply::AsIs | Reply::Stream) {
            return Ok(answer);
        }
        let answer: Value = parse(&answer)?;
        match &reply {
            Reply::Range { artifact_id } => raw(&self.range(artifact_id, &answer).await),
            reply => raw(&told(reply, &self.about, &answer)?),
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Box<RawValue>, AgentAPIError> {
        let call = self.call.again(method, raw(&params)?);
        self.connection.proxy.call(call).await
    }

    /// The keys of every page: the SDK knows no pages here.
    async fn all_keys(&self) -> Result<Vec<Value>, AgentAPIError> {
        let mut keys = Vec::new();
        let mut params = self.asked.params.clone();
        for _ in 0..PAGES_MAX {
            let page: Value = parse(&self.ask(self.asked.method, params.clone()).await?)?;
            let items = page["items"].as_array().into_iter().flatten();
            keys.extend(items.map(|item| item["key"].clone()));
            if page["has_more"] != true {
                break;
            }
            params["cursor"] = page["next_cursor"].clone();
        }
        Ok(keys)
    }

    /// A part of an artifact with the type of the whole, where the run may know it.
    async fn range(&self, artifact_id: &str, range: &Value) -> Value {
        let params = json!({"run_id": self.about.run_id, "artifact_id": artifact_id});
        let known = self.ask("artifacts.metadata", params).await;
        let known = known.and_then(|known| parse(&known)).unwrap_or_default();
        json!({"artifact_id": artifact_id,
            "mime_type": known["mime_type"].as_str().unwrap_or("application/octet-stream"),
            "size_bytes": range["size_bytes"], "offset": range["offset"],
            "length": range["length"], "content_base64": range["data_base64"],
            "has_more": range["eof"] == false})
    }
}

/// The stream of an action; forgotten with it, even where the action never began.
pub(crate) struct OpenStream {
    connection: Arc<Connection>,
    id: String,
    flow: Arc<Flow>,
}

impl OpenStream {
    pub(crate) fn new(connection: &Arc<Connection>, id: &str, flow: Flow) -> Self {
        let flow = Arc::new(flow);
        if let Codec::Langbot(session) = &connection.codec {
            session.open_stream(id, flow.clone());
        }
        Self { connection: connection.clone(), id: id.to_owned(), flow }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Codec::Langbot(session) = &self.connection.codec {
            session.close_stream(&self.id, &self.flow);
        }
    }
}

fn raw(value: &Value) -> Result<Box<RawValue>, AgentAPIError> {
    to_raw_value(value).map_err(failed)
}

fn parse(json: &RawValue) -> Result<Value, AgentAPIError> {
    serde_json::from_str(json.get()).map_err(failed)
}

fn failed(error: serde_json::Error) -> AgentAPIError {
    AgentAPIError::new(ErrorCode::RuntimeError, error.to_string())
}
