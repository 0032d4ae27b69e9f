//! Serves an action of a plugin with one or more calls of the host's proxy.
//!
//! Invariant: every action gets one answer, or the end of its stream; each call is made as the same run.

use super::Session;
use super::actions::{HostCall, Reply, render};
use super::frames::{self, Part};
use super::records::Caller;
use super::stream::Flow;
use crate::connection::Connection;
use crate::proxy::ProxyCall;
use crate::run::Run;
use bytes::Bytes;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Pages of keys that one action reads at most.
const PAGES_MAX: usize = 100;
/// Longest timeout that a plugin may set.
const TIMEOUT_S_MAX: f64 = 86_400.0;

/// One action for the host's proxy.
pub(crate) struct Action {
    pub(super) session: Arc<Session>,
    /// The live run that calls.
    pub(super) run: Option<Arc<Run>>,
    pub(super) call: HostCall,
    pub(super) caller: Caller,
    pub(super) timeout: Option<Duration>,
    /// Of an action that is answered chunk by chunk.
    pub(super) stream: Option<StreamOptions>,
    pub(super) open: Option<OpenStream>,
}

/// How chunks are sent.
pub(super) struct StreamOptions {
    pub(super) acknowledges: bool,
    pub(super) remove_think: bool,
}

/// The timeout that the plugin has set for an action.
pub(crate) fn timeout_of(data: &Value) -> Option<Duration> {
    let seconds = data["timeout"].as_f64()?;
    (0.0..TIMEOUT_S_MAX).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

impl Action {
    /// Names a call of a tool and opens the stream.
    pub(crate) fn admit(&mut self, id: &str) {
        if let Some(run) = &self.run {
            name_tool_call(run, &mut self.call);
        }
        self.open = self.stream.as_ref().map(|options| {
            let flow = Arc::new(Flow::new(options.acknowledges, options.remove_think));
            self.session.open_stream(id, flow.clone());
            OpenStream { session: self.session.clone(), id: id.to_owned(), flow }
        });
    }

    /// Makes the calls; returns the last frame of the action.
    pub(crate) async fn serve(self, connection: &Connection, call: ProxyCall) -> Bytes {
        let id = call.sink.request_id().to_owned();
        let proxy = HostProxy { connection, call };
        let answering = self.answer(&proxy);
        let answer = match self.timeout {
            Some(timeout) => tokio::time::timeout(timeout, answering).await.unwrap_or_else(|_| {
                let message = "the call took longer than the plugin wanted to wait";
                Err(AgentAPIError::new(ErrorCode::DeadlineExceeded, message))
            }),
            None => answering.await,
        };
        match answer {
            Ok(_) if self.open.is_some() => frames::success(&id, "{}", Part::End, None),
            answer => frames::answer(&id, answer),
        }
    }

    async fn answer(&self, proxy: &HostProxy<'_>) -> Result<Box<RawValue>, AgentAPIError> {
        let HostCall { method, params, reply } = &self.call;
        if *reply == Reply::StorageKeys {
            return raw(&json!({"keys": self.all_keys(proxy).await?}));
        }
        let answer = proxy.call(method, params).await?;
        if matches!(reply, Reply::AsIs | Reply::Stream) {
            return Ok(answer);
        }
        let answer: Value = parse(&answer)?;
        match reply {
            Reply::Range { artifact_id } => raw(&self.range(proxy, artifact_id, &answer).await),
            reply => raw(&render(reply, &self.caller, &answer)?),
        }
    }

    /// The keys of all pages: the SDK has no pages here.
    async fn all_keys(&self, proxy: &HostProxy<'_>) -> Result<Vec<Value>, AgentAPIError> {
        let mut keys = Vec::new();
        let mut params = self.call.params.clone();
        for _ in 0..PAGES_MAX {
            let page: Value = parse(&proxy.call(self.call.method, &params).await?)?;
            let items = page["items"].as_array().into_iter().flatten();
            keys.extend(items.map(|item| item["key"].clone()));
            if page["has_more"] != true {
                break;
            }
            params["cursor"] = page["next_cursor"].clone();
        }
        Ok(keys)
    }

    /// A range of an artifact with the type of the whole, if the run may read its metadata.
    async fn range(&self, proxy: &HostProxy<'_>, artifact_id: &str, range: &Value) -> Value {
        let params = json!({"run_id": self.caller.run_id, "artifact_id": artifact_id});
        let known = proxy.call("artifacts.metadata", &params).await;
        let known = known.and_then(|known| parse(&known)).unwrap_or_default();
        json!({"artifact_id": artifact_id,
            "mime_type": known["mime_type"].as_str().unwrap_or("application/octet-stream"),
            "size_bytes": range["size_bytes"], "offset": range["offset"],
            "length": range["length"], "content_base64": range["data_base64"],
            "has_more": range["eof"] == false})
    }
}

/// Calls the host's proxy on behalf of an action.
struct HostProxy<'a> {
    connection: &'a Connection,
    call: ProxyCall,
}

impl HostProxy<'_> {
    async fn call(&self, method: &str, params: &Value) -> Result<Box<RawValue>, AgentAPIError> {
        let call = self.call.again(method, raw(params)?);
        self.connection.proxy.call(call).await
    }
}

/// The stream of an action; closed with it, also where the action never began.
pub(super) struct OpenStream {
    session: Arc<Session>,
    id: String,
    flow: Arc<Flow>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.session.close_stream(&self.id, &self.flow);
    }
}

/// Gives a call of a tool the id that the runner reports for it, unless the call has one.
fn name_tool_call(run: &Run, call: &mut HostCall) {
    if call.method == "tools.call" && call.params.get("tool_call_id").is_none() {
        let tool = call.params["tool_name"].as_str().unwrap_or_default();
        let fresh = || format!("call_{:016x}", getrandom::u64().unwrap_or_default());
        let id = run.wire.pairing().call(tool, fresh);
        call.params["tool_call_id"] = id.into();
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
