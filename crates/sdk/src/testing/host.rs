//! The host's side of one run: the context, and responses to calls.
//!
//! Invariant: a method without a response is rejected with `unauthorized`, like an ungranted method; a method with one
//! is enabled in `ctx.context.available_apis`.

use super::context;
use crate::plugin::CheckedPlugin;
use crate::{Method, Object, Plugin, lines, local};
use greenroom_protocol::wire::{RpcError, method};
use greenroom_protocol::{AgentAPIError, AgentRunResult, ErrorCode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf};

const PIPE_BYTES: usize = 64 * 1024;
/// The id of our own `run_agent`.
const RUN_REQUEST: i64 = 1;

/// A host with prepared responses.
///
/// ```
/// # use greenroom_sdk::{Manifest, Plugin, RunCtx, RunFailure, Runner};
/// use greenroom_sdk::{Method, StateScope, json, testing};
///
/// # struct Greeter;
/// # impl Runner for Greeter {
/// #     fn manifest(&self) -> Manifest { Manifest::new("default") }
/// #     async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
/// #         let name = ctx.state().get(StateScope::Actor, "name").await?.value;
/// #         ctx.message(format!("Hello, {}", name.as_str().unwrap_or("you"))).await
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let host = testing::Host::new()
///     .on(Method::StateGet, |_| testing::Reply::ok(json!({ "value": "Ada", "version": 1 })));
/// let ran = host.run(Plugin::new("me", "greeter").runner(Greeter), "hi").await?;
/// assert_eq!(ran.requests[0].params["key"], "name");
/// assert_eq!(ran.results[0].data["message"]["content"], "Hello, Ada");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Host {
    config: Object,
    answers: HashMap<Method, Answer>,
    edits: Vec<Edit>,
}

type Answer = Box<dyn FnMut(&Value) -> Reply + Send>;
type Edit = Box<dyn FnOnce(&mut Value) + Send>;

/// A call that the run made.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: String,
    /// Including `run_id`.
    pub params: Value,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub results: Vec<AgentRunResult>,
    /// The calls in order.
    pub requests: Vec<Request>,
    /// How many calls the run cancelled with `request.cancel`.
    pub given_up: usize,
}

/// The response to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    items: Vec<Value>,
    /// `None` leaves the call open.
    answer: Option<Result<Value, AgentAPIError>>,
}

impl Reply {
    /// A result.
    pub fn ok(result: Value) -> Self {
        Self { items: Vec::new(), answer: Some(Ok(result)) }
    }

    /// An error.
    pub fn refused(error: AgentAPIError) -> Self {
        Self { items: Vec::new(), answer: Some(Err(error)) }
    }

    /// No response.
    pub fn none() -> Self {
        Self { items: Vec::new(), answer: None }
    }

    /// Sends these `stream.item`s first.
    pub fn after(mut self, items: impl IntoIterator<Item = Value>) -> Self {
        self.items.extend(items);
        self
    }
}

impl Host {
    pub fn new() -> Self {
        Self::default()
    }

    /// The agent's `config`.
    pub fn config(mut self, config: Object) -> Self {
        self.config = config;
        self
    }

    /// Responds to a method; `answer` gets the parameters of each call.
    pub fn on(
        mut self,
        method: Method,
        answer: impl FnMut(&Value) -> Reply + Send + 'static,
    ) -> Self {
        self.answers.insert(method, Box::new(answer));
        self
    }

    /// Changes the run context before the run starts, such as `resources` or `runtime`.
    pub fn context(mut self, edit: impl FnOnce(&mut Value) + Send + 'static) -> Self {
        self.edits.push(Box::new(edit));
        self
    }

    /// Runs the plugin's first runner once.
    pub async fn run(mut self, plugin: Plugin, text: &str) -> io::Result<Ran> {
        let plugin = Arc::new(plugin.checked().map_err(io::Error::other)?);
        let request = self.run_agent(&plugin, text)?;
        let (host, runner) = tokio::io::duplex(PIPE_BYTES);
        let (reader, writer) = tokio::io::split(runner);
        let serving = lines::serve(plugin, BufReader::new(reader), writer);
        let (_, ran) = tokio::try_join!(serving, self.exchange(host, request))?;
        Ok(ran)
    }

    fn run_agent(&mut self, plugin: &CheckedPlugin, text: &str) -> io::Result<Value> {
        let runner = plugin.manifests().first().copied();
        let runner = runner.ok_or_else(|| io::Error::other("the plugin offers no runner"))?;
        let mut context = context("run-1", text, std::mem::take(&mut self.config));
        for method in self.answers.keys() {
            if let Some((name, _)) = local::flag(&Default::default(), *method) {
                context["context"]["available_apis"][name] = true.into();
            }
        }
        for edit in self.edits.drain(..) {
            edit(&mut context);
        }
        Ok(json!({
            "jsonrpc": "2.0",
            "id": RUN_REQUEST,
            "method": method::RUN_AGENT,
            "params": { "runner_id": runner.id, "runner_name": runner.name, "context": context },
        }))
    }

    async fn exchange(mut self, host: DuplexStream, request: Value) -> io::Result<Ran> {
        let (reader, mut writer) = tokio::io::split(host);
        send(&mut writer, &request).await?;
        let mut ran = Ran { results: Vec::new(), requests: Vec::new(), given_up: 0 };
        let mut lines = BufReader::new(reader).lines();
        while let Some(line) = lines.next_line().await? {
            let mut message: Value = serde_json::from_str(&line)?;
            let params = message["params"].take();
            match message["method"].as_str() {
                Some(method::RUN_RESULT) => ran.results.push(serde_json::from_value(params)?),
                Some(method::REQUEST_CANCEL) => ran.given_up += 1,
                Some(name) => {
                    let request = Request { method: name.to_owned(), params };
                    self.reply(&mut writer, &message["id"], &request).await?;
                    ran.requests.push(request);
                }
                None if message["id"] == RUN_REQUEST => break,
                None => {}
            }
        }
        writer.shutdown().await?;
        Ok(ran)
    }

    async fn reply(
        &mut self,
        writer: &mut WriteHalf<DuplexStream>,
        id: &Value,
        request: &Request,
    ) -> io::Result<()> {
        let answers = Method::parse(&request.method).and_then(|m| self.answers.get_mut(&m));
        let reply = answers.map(|answer| answer(&request.params)).unwrap_or_else(|| {
            let text = format!("`{}` is not granted to this run", request.method);
            Reply::refused(AgentAPIError::new(ErrorCode::Unauthorized, text))
        });
        for item in reply.items {
            let params = json!({ "request_id": id, "item": item });
            let method = method::STREAM_ITEM;
            send(writer, &json!({ "jsonrpc": "2.0", "method": method, "params": params })).await?;
        }
        match reply.answer {
            Some(Ok(result)) => {
                send(writer, &json!({ "jsonrpc": "2.0", "id": id, "result": result })).await
            }
            Some(Err(error)) => {
                let error = RpcError::from(error);
                send(writer, &json!({ "jsonrpc": "2.0", "id": id, "error": error })).await
            }
            None => Ok(()),
        }
    }
}

async fn send(writer: &mut WriteHalf<DuplexStream>, message: &Value) -> io::Result<()> {
    writer.write_all(format!("{message}\n").as_bytes()).await
}
