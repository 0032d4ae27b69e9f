//! Assembles decoder output to stream items: deltas, complete tool calls, one usage, one finish.
//!
//! Invariant: ids are never empty and unique, also against those of the request; a call starts once and ends
//! once; nothing follows the finish; no response is larger than `ANSWER_BYTES_MAX`.

mod args;
mod call;

use crate::names::Names;
use crate::usage::Usage;
use crate::{ModelError, ModelRequest};
use call::Call;
pub(crate) use call::CallPart;
use greenroom_protocol::Object;
use greenroom_protocol::api::models::{ModelStreamItem, ModelToolCall};
use serde_json::{Value, json};
use std::collections::{HashSet, VecDeque};

/// Limit for text, arguments, media and opaque data of a response together.
pub(crate) const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Far more than any model requests at once.
const CALLS_MAX: usize = 1024;

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    Error,
}

#[derive(Debug)]
pub(crate) struct Assembly {
    names: Names,
    used_ids: HashSet<String>,
    /// Tools that cannot be called without arguments.
    requires_args: HashSet<String>,
    /// Prefix of generated ids.
    seed: String,
    generated: usize,
    calls: Vec<Call>,
    items: VecDeque<ModelStreamItem>,
    bytes: usize,
    reason: Option<Reason>,
    finished: bool,
    pub(crate) usage: Usage,
    /// Metadata of the response.
    pub(crate) metadata: Object,
}

impl Assembly {
    pub(crate) fn new(request: &ModelRequest, names: Names, seed: String) -> Self {
        let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
        let answered = request.messages.iter().filter_map(|message| message.tool_call_id.clone());
        let in_segments = request.messages.iter().flat_map(|message| &message.segments).flatten();
        let in_segments = in_segments
            .filter_map(|segment| segment.get("tool_call")?.get("id")?.as_str().map(str::to_owned));
        let requires_args =
            request.tools.iter().filter(|tool| args::are_required(&tool.parameters));
        Self {
            names,
            used_ids: calls
                .map(|call| call.id.clone())
                .chain(answered)
                .chain(in_segments)
                .collect(),
            requires_args: requires_args.map(|tool| tool.name.clone()).collect(),
            seed,
            generated: 0,
            calls: Vec::new(),
            items: VecDeque::new(),
            bytes: 0,
            reason: None,
            finished: false,
            usage: Usage::default(),
            metadata: Object::new(),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<ModelStreamItem> {
        self.items.pop_front()
    }

    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }

    /// Whether the provider sent a finish reason; only usage may follow.
    pub(crate) fn is_complete(&self) -> bool {
        self.reason.is_some()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<(), ModelError> {
        self.delta(text, |text| ModelStreamItem::TextDelta { text })
    }

    pub(crate) fn reasoning(&mut self, text: &str) -> Result<(), ModelError> {
        self.delta(text, |text| ModelStreamItem::ReasoningDelta { text })
    }

    /// Opaque data to send back with the preceding reasoning or the following part.
    pub(crate) fn reasoning_data(&mut self, data: Value) -> Result<(), ModelError> {
        self.grow(data.to_string().len())?;
        self.segment(json!({"type": "reasoning", "data": data}));
        Ok(())
    }

    pub(crate) fn media(&mut self, mime_type: &str, data: &str) -> Result<(), ModelError> {
        self.grow(data.len())?;
        let kinds = ["audio", "video"];
        let kind = kinds.into_iter().find(|kind| mime_type.starts_with(kind)).unwrap_or("image");
        self.segment(json!({"type": kind, "mime_type": mime_type, "data": data}));
        Ok(())
    }

    /// A part of a call, in any order.
    pub(crate) fn call_part(&mut self, call_part: CallPart<'_>) -> Result<(), ModelError> {
        self.grow(call_part.args.len())?;
        let at = match call::belongs_to(&self.calls, &call_part) {
            Some(at) => at,
            None if self.calls.len() == CALLS_MAX => {
                return Err(ModelError::InvalidResponse(format!(
                    "it contains more than {CALLS_MAX} calls"
                )));
            }
            None => {
                self.calls.push(Call::default());
                self.calls.len() - 1
            }
        };
        self.calls[at].take(&call_part);
        self.start(at);
        self.send_args(at);
        Ok(())
    }

    /// Ends a call. `args` is the whole text if the provider repeats it, or sends it only now.
    pub(crate) fn end_call(&mut self, key: &str, args: Option<&str>) -> Result<(), ModelError> {
        let open = self.calls.iter().rposition(|call| call.has_key(key) && !call.ended);
        let Some(at) = open else { return Ok(()) };
        if let Some(args) = args.filter(|args| !args.is_empty()) {
            self.grow(args.len())?;
            self.calls[at].args = args.to_owned();
        }
        self.end(at);
        Ok(())
    }

    /// A call that arrives in one piece.
    pub(crate) fn complete_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        args: &Value,
    ) -> Result<(), ModelError> {
        let text = match args {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let key = format!("whole-{}", self.calls.len());
        self.call_part(CallPart { key: Some(&key), id, name: Some(name), args: "" })?;
        self.end_call(&key, Some(&text))
    }

    /// The provider's finish reason; `raw` is its own word.
    pub(crate) fn complete(&mut self, reason: Reason, raw: &str) {
        self.reason = Some(reason);
        self.metadata.insert("provider_finish_reason".to_owned(), raw.into());
    }

    /// Ends open calls, then emits usage and reason.
    pub(crate) fn finish(&mut self) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        (0..self.calls.len()).for_each(|at| self.end(at));
        if let Some(usage) = self.usage.to_object() {
            self.items.push_back(ModelStreamItem::Usage(usage));
        }
        let reason = match (self.reason.unwrap_or(Reason::Stop), self.calls.is_empty()) {
            (Reason::Stop, false) | (Reason::ToolCalls, false) => "tool_calls",
            (Reason::Stop, true) | (Reason::ToolCalls, true) => "stop",
            (Reason::Length, _) => "length",
            (Reason::ContentFilter, _) => "content_filter",
            (Reason::Error, _) => "error",
        };
        self.items.push_back(ModelStreamItem::Finish { reason: reason.to_owned() });
    }

    /// Adds a non-empty text to the metadata.
    pub(crate) fn note(&mut self, name: &str, value: Option<&Value>) {
        if let Some(Value::String(text)) = value
            && !text.is_empty()
        {
            self.metadata.insert(name.to_owned(), text.as_str().into());
        }
    }

    fn delta(
        &mut self,
        text: &str,
        item: impl FnOnce(String) -> ModelStreamItem,
    ) -> Result<(), ModelError> {
        if !text.is_empty() {
            self.grow(text.len())?;
            self.items.push_back(item(text.to_owned()));
        }
        Ok(())
    }

    fn segment(&mut self, segment: Value) {
        if let Value::Object(segment) = segment {
            self.items.push_back(ModelStreamItem::Media { segment });
        }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes > ANSWER_BYTES_MAX {
            true => Err(ModelError::TooLarge(ANSWER_BYTES_MAX)),
            false => Ok(()),
        }
    }

    /// Emits the start of a call once its name is known.
    fn start(&mut self, at: usize) {
        let call = &self.calls[at];
        let Some(wire_name) = call.wire_name.as_deref().filter(|_| call.id.is_empty()) else {
            return;
        };
        let name = self.names.original(wire_name);
        let id = match call.provider_id.clone().filter(|id| !self.used_ids.contains(id)) {
            Some(id) => id,
            None => self.make_id(),
        };
        self.used_ids.insert(id.clone());
        self.calls[at].id = id.clone();
        self.calls[at].name = name.clone();
        self.items.push_back(ModelStreamItem::ToolCallStart { id, name });
    }

    fn make_id(&mut self) -> String {
        loop {
            self.generated += 1;
            let id = format!("call_{}{:02}", self.seed, self.generated);
            if !self.used_ids.contains(&id) {
                return id;
            }
        }
    }

    fn send_args(&mut self, at: usize) {
        let call = &mut self.calls[at];
        if call.id.is_empty() || call.args.len() == call.sent_bytes {
            return;
        }
        let args_text = call.args[call.sent_bytes..].to_owned();
        call.sent_bytes = call.args.len();
        self.items.push_back(ModelStreamItem::ToolCallDelta { id: call.id.clone(), args_text });
    }

    fn end(&mut self, at: usize) {
        if std::mem::replace(&mut self.calls[at].ended, true) {
            return;
        }
        let nameless = self.calls[at].wire_name.is_none();
        if nameless {
            self.calls[at].wire_name = Some(String::new());
        }
        self.start(at);
        let call = &self.calls[at];
        let parsed = match nameless {
            true => Err("the call has no name".to_owned()),
            false => args::parse(&call.args, self.requires_args.contains(&call.name)),
        };
        let (args, args_text, args_error) = match parsed {
            Ok(args) => (args, None, None),
            Err(error) => (Value::Null, Some(call.args.clone()), Some(error)),
        };
        let (id, name) = (call.id.clone(), call.name.clone());
        let ended = ModelToolCall { id, name, args, args_text, args_error };
        self.items.push_back(ModelStreamItem::ToolCallEnd(ended));
    }
}
