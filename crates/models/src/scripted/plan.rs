//! Plans the response to a request: the steps of the first matching rule.
//!
//! Invariant: pure except for the counters of rules with `times`; a plan ends with one finish or one fault.

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

/// One step of a planned response.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanStep {
    Item(ModelStreamItem),
    Wait(Duration),
    /// The last step.
    Fault(Fault),
}

/// How a response fails.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// An HTTP error, before or during the stream.
    Status { status: u16, message: String, retry_after: Option<Duration> },
    /// The connection is closed in the middle.
    Cut,
    /// The connection stays open, and nothing is sent.
    Silence,
    /// Data that the wire does not allow.
    Garbage(String),
}

impl Fault {
    /// The error that a client reports.
    pub(super) fn error(self, idle: Duration) -> ModelError {
        match self {
            Self::Status { status: 429, message, retry_after } => {
                ModelError::RateLimited { message, retry_after }
            }
            Self::Status { status, message, .. } => ModelError::Rejected { status, message },
            Self::Cut => ModelError::Unavailable("the connection was cut".to_owned()),
            Self::Silence => ModelError::IdleTimeout(idle),
            Self::Garbage(_) => ModelError::InvalidResponse("scripted garbage".to_owned()),
        }
    }
}

pub(super) fn plan(rules: &[Rule], request: &ModelRequest, now: SystemTime) -> Vec<PlanStep> {
    let facts = Facts::new(request);
    let mut player =
        Player { request, facts: &facts, now, steps: Vec::new(), state: State::default() };
    let matched = rules.iter().find_map(|rule| Some((rule, rule.try_match(&facts)?)));
    match &matched {
        Some((rule, captures)) => player.play(rule, captures.as_ref()),
        None => {
            player.text(&format!("No rule of this script matches: {}", facts.text), Pace::default())
        }
    }
    player.end();
    player.steps
}

struct Player<'a> {
    request: &'a ModelRequest,
    facts: &'a Facts<'a>,
    now: SystemTime,
    steps: Vec<PlanStep>,
    state: State,
}

#[derive(Default)]
struct State {
    calls: usize,
    /// Everything sent, for counting its tokens.
    output: String,
    /// As given by the script; `Some(None)` for no usage.
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
                    let args = render_args(args, regex, &source);
                    self.call(name, id.clone(), args, *pace);
                }
                Step::Sample => {
                    let schema = self.facts.requested_schema.clone().unwrap_or(Value::Bool(true));
                    self.text(&sample(&schema).to_string(), Pace::default());
                }
                Step::Wait(time) => self.steps.push(PlanStep::Wait(*time)),
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
        self.steps.push(PlanStep::Item(item));
    }

    fn fault(&mut self, fault: Fault) {
        self.state.failed = true;
        self.steps.push(PlanStep::Fault(fault));
    }

    fn text(&mut self, text: &str, pace: Pace) {
        self.state.output.push_str(text);
        self.pieces(text, pace, |text| ModelStreamItem::TextDelta { text });
    }

    fn reasoning(&mut self, text: &str, pace: Pace, signature: Option<&str>) {
        self.state.output.push_str(text);
        self.pieces(text, pace, |text| ModelStreamItem::ReasoningDelta { text });
        if let Some(signature) = signature {
            self.item(signed(signature));
        }
    }

    fn call(&mut self, name: &str, id: Option<String>, args_text: String, pace: Pace) {
        let id = id.unwrap_or_else(|| self.call_id());
        self.state.calls += 1;
        self.state.output.push_str(&args_text);
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
                self.steps.push(PlanStep::Wait(pace.wait));
            }
            self.item(item(piece));
        }
    }

    /// Deterministic per request; a longer conversation gives a different id.
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

    /// Usage and finish, unless the response failed.
    fn end(&mut self) {
        if self.state.failed {
            return;
        }
        let usage = match self.state.usage.take() {
            Some(usage) => usage.map(with_total),
            None => Some(self.estimated_usage()),
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

    fn estimated_usage(&self) -> Object {
        let input = vectors::request_tokens(self.request);
        let output = vectors::tokens(&self.state.output);
        let mut usage = Object::new();
        usage.insert("input_tokens".to_owned(), input.into());
        usage.insert("output_tokens".to_owned(), output.into());
        with_total(usage)
    }
}

/// Opaque data of a reasoning segment.
fn signed(signature: &str) -> ModelStreamItem {
    let segment = json!({"type": "reasoning", "data": signature});
    let Value::Object(segment) = segment else { unreachable!("render_args as an object") };
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

fn render_args(args: &Args, regex: Option<&Regex>, source: &Source<'_>) -> String {
    match args {
        Args::Json(value) => fill_value(value, regex, source).to_string(),
        Args::Raw(template) => template.fill(source),
    }
}
