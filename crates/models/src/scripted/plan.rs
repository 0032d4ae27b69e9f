//! From a request to what is answered: the first rule that applies, played.
//!
//! Invariant: pure but for the counts of rules with `times`; a plan ends with one finish or one fault.

use super::facts::Facts;
use super::pieces::pieces;
use super::rule::{Args, Pace, Rule, Step};
use super::sample::sample;
use super::template::{Source, fill_value};
use super::vectors;
use crate::{ModelError, ModelRequest};
use greenroom_protocol::Object;
use greenroom_protocol::api::models::{ModelStreamItem, ModelToolCall};
use regex_lite::{Captures, Regex};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime};

/// One moment of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Beat {
    Item(ModelStreamItem),
    Wait(Duration),
    /// Nothing comes behind it.
    Fault(Fault),
}

/// How an answer goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The provider refuses, or breaks off with an error.
    Status { status: u16, message: String, retry_after: Option<Duration> },
    /// The connection ends in the middle.
    Cut,
    /// The connection stays, and nothing comes.
    Silence,
    /// Something that the wire does not know.
    Garbage(String),
}

impl Fault {
    /// What a client makes of it.
    pub(super) fn error(self, idle: Duration) -> ModelError {
        match self {
            Self::Status { status: 429, message, retry_after } => {
                ModelError::RateLimited { message, retry_after }
            }
            Self::Status { status, message, .. } => ModelError::Refused { status, message },
            Self::Cut => ModelError::Unavailable("the connection was cut".to_owned()),
            Self::Silence => ModelError::Silent(idle),
            Self::Garbage(_) => ModelError::Garbled("a scripted answer that is none".to_owned()),
        }
    }
}

pub(super) fn plan(rules: &[Rule], request: &ModelRequest, now: SystemTime) -> Vec<Beat> {
    let facts = Facts::of(request);
    let mut player =
        Player { request, facts: &facts, now, beats: Vec::new(), state: State::default() };
    let taken = rules.iter().find_map(|rule| Some((rule, rule.takes(&facts)?)));
    match &taken {
        Some((rule, captures)) => player.play(rule, captures.as_ref()),
        None => player
            .text(&format!("No rule of this script applies to: {}", facts.text), Pace::default()),
    }
    player.end();
    player.beats
}

struct Player<'a> {
    request: &'a ModelRequest,
    facts: &'a Facts<'a>,
    now: SystemTime,
    beats: Vec<Beat>,
    state: State,
}

#[derive(Default)]
struct State {
    calls: usize,
    /// What was said, for the count of it.
    said: String,
    /// As the script gives it; `Some(None)` for none at all.
    usage: Option<Option<Object>>,
    finish: Option<String>,
    failed: bool,
}

impl Player<'_> {
    fn play(&mut self, rule: &Rule, captures: Option<&Captures<'_>>) {
        let source = Source { facts: self.facts, captures, now: self.now };
        let regex = rule.when.regex.as_ref();
        for step in &rule.steps {
            match step {
                Step::Text { text, pace } => self.text(&text.fill(&source), *pace),
                Step::Reasoning { text, pace, signature } => {
                    self.reasoning(&text.fill(&source), *pace, signature.as_deref());
                }
                Step::Call { name, id, args, pace } => {
                    let args = written(args, regex, &source);
                    self.call(name, id.clone(), args, *pace);
                }
                Step::Sample => {
                    let wanted = self.facts.wanted.clone().unwrap_or(Value::Bool(true));
                    self.text(&sample(&wanted).to_string(), Pace::default());
                }
                Step::Wait(time) => self.beats.push(Beat::Wait(*time)),
                Step::Media(segment) => {
                    self.item(ModelStreamItem::Media { segment: segment.clone() });
                }
                Step::Usage(usage) => self.state.usage = Some(usage.clone()),
                Step::Finish(reason) => self.state.finish = Some(reason.clone()),
                Step::Error { status, message, retry_after } => self.fault(Fault::Status {
                    status: *status,
                    message: message.fill(&source),
                    retry_after: *retry_after,
                }),
                Step::Cut => self.fault(Fault::Cut),
                Step::Silence => self.fault(Fault::Silence),
                Step::Garbage(text) => self.fault(Fault::Garbage(text.clone())),
            }
        }
    }

    fn item(&mut self, item: ModelStreamItem) {
        self.beats.push(Beat::Item(item));
    }

    fn fault(&mut self, fault: Fault) {
        self.state.failed = true;
        self.beats.push(Beat::Fault(fault));
    }

    fn text(&mut self, text: &str, pace: Pace) {
        self.state.said.push_str(text);
        self.pieces(text, pace, |text| ModelStreamItem::TextDelta { text });
    }

    fn reasoning(&mut self, text: &str, pace: Pace, signature: Option<&str>) {
        self.state.said.push_str(text);
        self.pieces(text, pace, |text| ModelStreamItem::ReasoningDelta { text });
        if let Some(signature) = signature {
            self.item(signed(signature));
        }
    }

    fn call(&mut self, name: &str, id: Option<String>, args_text: String, pace: Pace) {
        let id = id.unwrap_or_else(|| self.call_id());
        self.state.calls += 1;
        self.state.said.push_str(&args_text);
        self.item(ModelStreamItem::ToolCallStart { id: id.clone(), name: name.to_owned() });
        self.pieces(&args_text, pace, |args_text| ModelStreamItem::ToolCallDelta {
            id: id.clone(),
            args_text,
        });
        let call = match serde_json::from_str::<Value>(&args_text) {
            Ok(args) => {
                ModelToolCall { id, name: name.to_owned(), args, args_text: None, args_error: None }
            }
            Err(error) => ModelToolCall {
                id,
                name: name.to_owned(),
                args: Value::Null,
                args_text: Some(args_text),
                args_error: Some(error.to_string()),
            },
        };
        self.item(ModelStreamItem::ToolCallEnd(call));
    }

    fn pieces(&mut self, text: &str, pace: Pace, item: impl Fn(String) -> ModelStreamItem) {
        for (number, piece) in pieces(text, pace.piece).into_iter().enumerate() {
            if number > 0 && !pace.wait.is_zero() {
                self.beats.push(Beat::Wait(pace.wait));
            }
            self.item(item(piece));
        }
    }

    /// The same for the same request; another one as soon as the conversation has gone on.
    fn call_id(&self) -> String {
        let mut hash = Sha256::new();
        let messages = serde_json::to_vec(&self.request.messages).unwrap_or_default();
        hash.update(messages);
        hash.update(self.state.calls.to_le_bytes());
        let digest = hash.finalize();
        format!(
            "call_{}",
            digest[..12].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        )
    }

    /// Usage and finish, unless it went wrong.
    fn end(&mut self) {
        if self.state.failed {
            return;
        }
        let usage = match self.state.usage.take() {
            Some(usage) => usage.map(with_total),
            None => Some(self.counted()),
        };
        if let Some(usage) = usage {
            self.item(ModelStreamItem::Usage(usage));
        }
        let reason = self.state.finish.take().unwrap_or_else(|| {
            let reason = if self.state.calls > 0 { "tool_calls" } else { "stop" };
            reason.to_owned()
        });
        self.item(ModelStreamItem::Finish { reason });
    }

    fn counted(&self) -> Object {
        let input = vectors::request_tokens(self.request);
        let output = vectors::tokens(&self.state.said);
        let mut usage = Object::new();
        usage.insert("input_tokens".to_owned(), input.into());
        usage.insert("output_tokens".to_owned(), output.into());
        with_total(usage)
    }
}

/// The provider's opaque part of a reasoning segment.
fn signed(signature: &str) -> ModelStreamItem {
    let segment = json!({"type": "reasoning", "data": signature});
    let Value::Object(segment) = segment else { unreachable!("written as an object") };
    ModelStreamItem::Media { segment }
}

fn with_total(mut usage: Object) -> Object {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    if let (Some(input), Some(output), None) =
        (count("input_tokens"), count("output_tokens"), count("total_tokens"))
    {
        usage.insert("total_tokens".to_owned(), input.saturating_add(output).into());
    }
    usage
}

fn written(args: &Args, regex: Option<&Regex>, source: &Source<'_>) -> String {
    match args {
        Args::Json(value) => fill_value(value, regex, source).to_string(),
        Args::Raw(template) => template.fill(source),
    }
}
