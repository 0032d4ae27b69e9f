//! Scripts over HTTP, in the wires of the providers: what is asked is read, what is answered is written.
//!
//! Invariant: no sockets here; the same script gives the same answer in every wire, and a script's faults are
//! faults of the connection: a status, an end in the middle, silence.

mod answer;
mod anthropic;
mod chat;
mod gemini;
mod json;
mod ollama;
mod other;
mod responses;
mod route;
#[cfg(test)]
mod tests;

use crate::ModelRequest;
use crate::scripted::{Beat, Fault, Script, day};
use answer::Answer;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelStreamItem;
use route::Route;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// One request, read whole.
#[derive(Debug)]
pub struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    pub body: &'a [u8],
}

/// What is to be done with the connection.
pub enum Reply {
    Whole {
        status: u16,
        retry_after: Option<Duration>,
        body: Bytes,
    },
    /// Status 200, then piece by piece.
    Stream {
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, Cut>>,
    },
    /// Closed without a word.
    Cut,
    /// Kept open without a word.
    Silence,
}

/// The connection is to end here, in the middle of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the script cuts the connection")]
pub struct Cut;

/// The wires in which a model can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
}

/// What a client asked for, read from its wire.
#[derive(Debug, Clone)]
pub struct Asked {
    pub request: ModelRequest,
    pub model: String,
    pub streaming: Streaming,
    /// Whether a stream tells its usage, where clients can choose.
    usage_wanted: bool,
    /// Tools that the Responses wire keeps in namespaces: our name → (namespace, name).
    namespaced: BTreeMap<String, (String, String)>,
    /// Tools of the Responses wire that take text instead of JSON.
    freeform: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    No,
    Events,
    /// Gemini without `alt=sse`: one JSON array, piece by piece.
    Array,
}

/// Ids and times of one answer.
#[derive(Debug, Clone)]
struct Stamp {
    id: String,
    seconds: u64,
    /// The same in RFC 3339.
    time: String,
}

/// Writes items as one wire does.
trait Encoder: Send {
    fn begin(&mut self, out: &mut String);
    fn item(&mut self, item: &ModelStreamItem, out: &mut String);
    /// An error in the middle of a stream.
    fn error(&mut self, status: u16, message: &str, out: &mut String);
}

/// Answers one request. Waits as long as the script says.
pub async fn respond(script: &Arc<Script>, call: Call<'_>, now: SystemTime) -> Reply {
    let route = match route::find(&call) {
        Ok(route) => route,
        Err(problem) => return whole(problem.status, &problem.body(None), None),
    };
    let (wire, asked) = match route {
        Route::Model(wire, asked) => (wire, *asked),
        Route::Other(value) => return whole(200, &value, None),
    };
    let beats = script.plan(&asked.request, now);
    let stamp = stamp(&call, now);
    match asked.streaming {
        Streaming::No => answer_whole(wire, &asked, &stamp, beats).await,
        _ => answer_stream(wire, asked, stamp, beats).await,
    }
}

/// A request that cannot be answered, as its wire says so.
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

async fn answer_whole(wire: Wire, asked: &Asked, stamp: &Stamp, beats: Vec<Beat>) -> Reply {
    let mut answer = Answer::default();
    for beat in beats {
        match beat {
            Beat::Wait(time) => tokio::time::sleep(time).await,
            Beat::Item(item) => answer.push(&item),
            Beat::Fault(Fault::Cut) if answer.is_empty() => return Reply::Cut,
            Beat::Fault(Fault::Cut) => return half(&body(wire, asked, stamp, &answer)),
            Beat::Fault(Fault::Silence) => return Reply::Silence,
            Beat::Fault(Fault::Garbage(text)) => {
                return Reply::Whole { status: 200, retry_after: None, body: text.into() };
            }
            Beat::Fault(Fault::Status { status, message, retry_after }) => {
                return whole(status, &error_body(wire, status, &message), retry_after);
            }
        }
    }
    whole(200, &body(wire, asked, stamp, &answer), None)
}

async fn answer_stream(wire: Wire, asked: Asked, stamp: Stamp, beats: Vec<Beat>) -> Reply {
    let beats: VecDeque<Beat> = beats.into();
    let first = beats.iter().find(|beat| !matches!(beat, Beat::Wait(_)));
    if let Some(Beat::Fault(_)) = first {
        // Nothing has gone out: the fault is that of the whole answer.
        return answer_whole(wire, &asked, &stamp, beats.into()).await;
    }
    let usage = beats.iter().find_map(|beat| match beat {
        Beat::Item(ModelStreamItem::Usage(usage)) => Some(usage.clone()),
        _ => None,
    });
    let content_type = match (wire, asked.streaming) {
        (Wire::Ollama, _) => "application/x-ndjson",
        (_, Streaming::Array) => "application/json",
        _ => "text/event-stream",
    };
    let mut encoder = encoder(wire, asked, stamp, usage);
    let mut begun = String::new();
    encoder.begin(&mut begun);
    let begun = (!begun.is_empty()).then(|| Ok(Bytes::from(begun)));
    let pieces = stream::iter(begun).chain(pieces(encoder, beats)).boxed();
    Reply::Stream { content_type, pieces }
}

fn pieces(
    encoder: Box<dyn Encoder>,
    beats: VecDeque<Beat>,
) -> impl stream::Stream<Item = Result<Bytes, Cut>> + Send {
    stream::unfold((encoder, beats), |(mut encoder, mut beats)| async move {
        loop {
            let mut out = String::new();
            match beats.pop_front()? {
                Beat::Wait(time) => tokio::time::sleep(time).await,
                Beat::Item(item) => encoder.item(&item, &mut out),
                Beat::Fault(Fault::Silence) => std::future::pending().await,
                Beat::Fault(Fault::Cut) => {
                    return Some((cut().await, (encoder, VecDeque::new())));
                }
                Beat::Fault(Fault::Garbage(text)) => out = format!("data: {text}\n\n"),
                Beat::Fault(Fault::Status { status, message, .. }) => {
                    encoder.error(status, &message, &mut out);
                }
            }
            if !out.is_empty() {
                return Some((Ok(Bytes::from(out)), (encoder, beats)));
            }
        }
    })
}

fn encoder(wire: Wire, asked: Asked, stamp: Stamp, usage: Option<Object>) -> Box<dyn Encoder> {
    match wire {
        Wire::OpenAiChat => Box::new(chat::Stream::new(asked, stamp)),
        Wire::OpenAiResponses => Box::new(responses::Stream::new(asked, stamp)),
        Wire::Anthropic => Box::new(anthropic::Stream::new(asked, stamp, usage)),
        Wire::Gemini => Box::new(gemini::Stream::new(asked, stamp)),
        Wire::Ollama => Box::new(ollama::Stream::new(asked, stamp)),
    }
}

fn body(wire: Wire, asked: &Asked, stamp: &Stamp, answer: &Answer) -> Value {
    match wire {
        Wire::OpenAiChat => chat::body(asked, stamp, answer),
        Wire::OpenAiResponses => responses::body(asked, stamp, answer),
        Wire::Anthropic => anthropic::body(asked, stamp, answer),
        Wire::Gemini => gemini::body(asked, stamp, answer),
        Wire::Ollama => ollama::body(asked, stamp, answer),
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

/// The end in the middle, once what stands before it could be written.
async fn cut() -> Result<Bytes, Cut> {
    tokio::task::yield_now().await;
    Err(Cut)
}

/// An answer of which half arrives.
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
