//! Scripted models over HTTP, in the wire formats of the providers.
//!
//! Invariant: no sockets here; the same script gives the same response in every wire, and scripted faults are
//! faults of the connection: a status, a closed connection, silence.

mod anthropic;
mod chat;
mod completion;
pub mod gateway;
mod gemini;
mod json;
mod ollama;
mod other;
mod responses;
mod route;
mod segments;
#[cfg(test)]
mod tests;

use crate::ModelRequest;
use crate::scripted::{Fault, PlanStep, Script, day};
use bytes::Bytes;
use completion::Completion;
use futures_util::stream::{self, BoxStream, StreamExt};
use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelStreamItem;
use route::Route;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A request with its complete body.
#[derive(Debug)]
pub struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    pub body: &'a [u8],
}

/// How to respond.
pub enum Reply {
    Whole {
        status: u16,
        retry_after: Option<Duration>,
        body: Bytes,
    },
    /// Status 200, then a stream.
    Stream {
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, Cut>>,
    },
    /// Close without a response.
    Cut,
    /// Stay open without a response.
    Silence,
}

/// Close the connection here, in the middle of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the script cuts the connection")]
pub struct Cut;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
}

/// A request, decoded from its wire.
#[derive(Debug, Clone)]
pub struct DecodedRequest {
    pub request: ModelRequest,
    pub model: String,
    pub streaming: Streaming,
    /// Whether the client wants usage in streams, where it can choose.
    usage_wanted: bool,
    /// Tools in namespaces of the Responses wire: our name → (namespace, name).
    namespaced: BTreeMap<String, (String, String)>,
    /// Tools of the Responses wire that take text instead of JSON.
    freeform: BTreeSet<String>,
    /// Whether the client gets opaque reasoning where its wire has no standard field for it.
    returns_reasoning: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    No,
    Events,
    /// Gemini without `alt=sse`: one JSON array, streamed.
    Array,
}

/// Id and time of a response.
#[derive(Debug, Clone)]
struct Stamp {
    id: String,
    seconds: u64,
    /// In RFC 3339.
    time: String,
}

/// Encodes items for one wire.
trait Encoder: Send {
    fn begin(&mut self, out: &mut String);
    fn item(&mut self, item: &ModelStreamItem, out: &mut String);
    /// An error during a stream.
    fn error(&mut self, status: u16, message: &str, out: &mut String);
}

/// Responds to a request. Waits as scripted.
pub async fn respond(script: &Arc<Script>, call: Call<'_>, now: SystemTime) -> Reply {
    let route = match route::find(&call) {
        Ok(route) => route,
        Err(problem) => return whole(problem.status, &problem.body(None), None),
    };
    let (wire, decoded) = match route {
        Route::Model(wire, decoded) => (wire, *decoded),
        Route::Other(value) => return whole(200, &value, None),
    };
    let plan = script.plan(&decoded.request, now);
    let stamp = stamp(&call, now);
    match decoded.streaming {
        Streaming::No => respond_whole(wire, &decoded, &stamp, plan).await,
        _ => respond_stream(wire, decoded, stamp, plan).await,
    }
}

/// An invalid request.
#[derive(Debug)]
struct Problem {
    wire: Option<Wire>,
    status: u16,
    message: String,
}

impl Problem {
    fn body(&self, wire: Option<Wire>) -> Value {
        error_body(self.wire.or(wire).unwrap_or(Wire::OpenAiChat), self.status, &self.message)
    }
}

async fn respond_whole(
    wire: Wire,
    decoded: &DecodedRequest,
    stamp: &Stamp,
    plan: Vec<PlanStep>,
) -> Reply {
    let mut completion = Completion::default();
    for step in plan {
        match step {
            PlanStep::Wait(time) => tokio::time::sleep(time).await,
            PlanStep::Item(item) => completion.push(&item),
            PlanStep::Fault(Fault::Cut) if completion.is_empty() => return Reply::Cut,
            PlanStep::Fault(Fault::Cut) => return half(&body(wire, decoded, stamp, &completion)),
            PlanStep::Fault(Fault::Silence) => return Reply::Silence,
            PlanStep::Fault(Fault::Garbage(text)) => {
                return Reply::Whole { status: 200, retry_after: None, body: text.into() };
            }
            PlanStep::Fault(Fault::Status { status, message, retry_after }) => {
                return whole(status, &error_body(wire, status, &message), retry_after);
            }
        }
    }
    whole(200, &body(wire, decoded, stamp, &completion), None)
}

async fn respond_stream(
    wire: Wire,
    decoded: DecodedRequest,
    stamp: Stamp,
    plan: Vec<PlanStep>,
) -> Reply {
    let plan: VecDeque<PlanStep> = plan.into();
    let first = plan.iter().find(|step| !matches!(step, PlanStep::Wait(_)));
    if let Some(PlanStep::Fault(_)) = first {
        // Nothing was sent yet: the fault applies to the whole response.
        return respond_whole(wire, &decoded, &stamp, plan.into()).await;
    }
    let usage = plan.iter().find_map(|step| match step {
        PlanStep::Item(ModelStreamItem::Usage(usage)) => Some(usage.clone()),
        _ => None,
    });
    let content_type = match (wire, decoded.streaming) {
        (Wire::Ollama, _) => "application/x-ndjson",
        (_, Streaming::Array) => "application/json",
        _ => "text/event-stream",
    };
    let mut encoder = encoder(wire, decoded, stamp, usage);
    let mut begun = String::new();
    encoder.begin(&mut begun);
    let begun = (!begun.is_empty()).then(|| Ok(Bytes::from(begun)));
    let pieces = stream::iter(begun).chain(pieces(encoder, plan)).boxed();
    Reply::Stream { content_type, pieces }
}

fn pieces(
    encoder: Box<dyn Encoder>,
    plan: VecDeque<PlanStep>,
) -> impl stream::Stream<Item = Result<Bytes, Cut>> + Send {
    stream::unfold((encoder, plan), |(mut encoder, mut plan)| async move {
        loop {
            let mut out = String::new();
            match plan.pop_front()? {
                PlanStep::Wait(time) => tokio::time::sleep(time).await,
                PlanStep::Item(item) => encoder.item(&item, &mut out),
                PlanStep::Fault(Fault::Silence) => std::future::pending().await,
                PlanStep::Fault(Fault::Cut) => {
                    return Some((cut().await, (encoder, VecDeque::new())));
                }
                PlanStep::Fault(Fault::Garbage(text)) => out = format!("data: {text}\n\n"),
                PlanStep::Fault(Fault::Status { status, message, .. }) => {
                    encoder.error(status, &message, &mut out);
                }
            }
            if !out.is_empty() {
                return Some((Ok(Bytes::from(out)), (encoder, plan)));
            }
        }
    })
}

fn encoder(
    wire: Wire,
    decoded: DecodedRequest,
    stamp: Stamp,
    usage: Option<Object>,
) -> Box<dyn Encoder> {
    match wire {
        Wire::OpenAiChat => Box::new(chat::Stream::new(decoded, stamp)),
        Wire::OpenAiResponses => Box::new(responses::Stream::new(decoded, stamp)),
        Wire::Anthropic => Box::new(anthropic::Stream::new(decoded, stamp, usage)),
        Wire::Gemini => Box::new(gemini::Stream::new(decoded, stamp)),
        Wire::Ollama => Box::new(ollama::Stream::new(decoded, stamp)),
    }
}

fn body(wire: Wire, decoded: &DecodedRequest, stamp: &Stamp, completion: &Completion) -> Value {
    match wire {
        Wire::OpenAiChat => chat::body(decoded, stamp, completion),
        Wire::OpenAiResponses => responses::body(decoded, stamp, completion),
        Wire::Anthropic => anthropic::body(decoded, stamp, completion),
        Wire::Gemini => gemini::body(decoded, stamp, completion),
        Wire::Ollama => ollama::body(decoded, stamp, completion),
    }
}

fn error_body(wire: Wire, status: u16, message: &str) -> Value {
    match wire {
        Wire::OpenAiChat | Wire::OpenAiResponses => chat::error_body(status, message),
        Wire::Anthropic => anthropic::error_body(status, message),
        Wire::Gemini => gemini::error_body(status, message),
        Wire::Ollama => ollama::error_body(message),
    }
}

fn whole(status: u16, body: &Value, retry_after: Option<Duration>) -> Reply {
    Reply::Whole { status, retry_after, body: body.to_string().into() }
}

/// Closes the connection after what precedes was written.
async fn cut() -> Result<Bytes, Cut> {
    tokio::task::yield_now().await;
    Err(Cut)
}

/// Half of a response.
fn half(body: &Value) -> Reply {
    let text = body.to_string().into_bytes();
    let half = Bytes::copy_from_slice(&text[..text.len() / 2]);
    let half = stream::once(std::future::ready(Ok(half)));
    let pieces = half.chain(stream::once(cut())).boxed();
    Reply::Stream { content_type: "application/json", pieces }
}

fn stamp(call: &Call<'_>, now: SystemTime) -> Stamp {
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Stamp { id: json::hash(call.body), seconds, time: day::time(now) }
}
