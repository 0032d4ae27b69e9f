//! Events of a streamed message.
//!
//! Invariant: unknown block types are ignored with all their deltas.

use super::WIRE;
use crate::ModelError;
use crate::assembly::{Assembly, CallPart, Reason};
use crate::wires::{Flow, count, list, text};
use serde_json::{Value, json};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Decoder {
    open: HashMap<u64, Block>,
    /// Input tokens that are neither read from nor written to a cache.
    uncached: Option<u64>,
}

#[derive(Debug)]
enum Block {
    Text,
    Thinking { signature: String },
    ToolUse { input: Value, streamed: bool },
}

impl Decoder {
    pub(in crate::wires) fn event(
        &mut self,
        event: &Value,
        into: &mut Assembly,
    ) -> Result<Flow, ModelError> {
        let null = &Value::Null;
        let index = count(event, "index").unwrap_or(0);
        match text(event, "type").unwrap_or_default() {
            "message_start" => {
                let message = event.get("message").unwrap_or(null);
                into.note("provider_model", message.get("model"));
                into.note("provider_response_id", message.get("id"));
                self.usage(message.get("usage"), into);
            }
            "content_block_start" => {
                self.start(index, event.get("content_block").unwrap_or(null), into)?;
            }
            "content_block_delta" => {
                self.delta(index, event.get("delta").unwrap_or(null), into)?;
            }
            "content_block_stop" => self.stop(index, into)?,
            "message_delta" => {
                self.usage(event.get("usage"), into);
                let raw = event.get("delta").and_then(|delta| text(delta, "stop_reason"));
                if let Some(raw) = raw {
                    into.complete(reason(raw), raw);
                }
            }
            "message_stop" => return Ok(Flow::Over),
            "message" => return self.whole(event, into),
            _ => {}
        }
        Ok(Flow::More)
    }

    /// From a server that does not stream.
    fn whole(&mut self, message: &Value, into: &mut Assembly) -> Result<Flow, ModelError> {
        into.note("provider_model", message.get("model"));
        into.note("provider_response_id", message.get("id"));
        for (index, block) in (0..).zip(list(message, "content")) {
            self.start(index, block, into)?;
            self.stop(index, into)?;
        }
        self.usage(message.get("usage"), into);
        let raw = text(message, "stop_reason").unwrap_or("end_turn");
        into.complete(reason(raw), raw);
        Ok(Flow::Over)
    }

    fn start(&mut self, index: u64, block: &Value, into: &mut Assembly) -> Result<(), ModelError> {
        let opened = match text(block, "type").unwrap_or_default() {
            "text" => {
                into.text(text(block, "text").unwrap_or_default())?;
                Block::Text
            }
            "thinking" => {
                into.reasoning(text(block, "thinking").unwrap_or_default())?;
                let signature = text(block, "signature").unwrap_or_default().to_owned();
                Block::Thinking { signature }
            }
            "redacted_thinking" => {
                let data = block.get("data").cloned();
                return into.reasoning_data(json!({"wire": WIRE, "redacted": data}));
            }
            "tool_use" => {
                let (key, id, name) = (index.to_string(), text(block, "id"), text(block, "name"));
                into.call_part(CallPart { key: Some(&key), id, name, args: "" })?;
                let input = block.get("input").cloned().unwrap_or_default();
                Block::ToolUse { input, streamed: false }
            }
            _ => return Ok(()),
        };
        self.open.insert(index, opened);
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value, into: &mut Assembly) -> Result<(), ModelError> {
        let field = |name: &str| text(delta, name).unwrap_or_default();
        match (text(delta, "type").unwrap_or_default(), self.open.get_mut(&index)) {
            ("text_delta", Some(Block::Text)) => into.text(field("text")),
            ("thinking_delta", Some(Block::Thinking { .. })) => into.reasoning(field("thinking")),
            ("signature_delta", Some(Block::Thinking { signature })) => {
                signature.push_str(field("signature"));
                Ok(())
            }
            ("input_json_delta", Some(Block::ToolUse { streamed, .. })) => {
                let args = field("partial_json");
                *streamed |= !args.is_empty();
                let key = index.to_string();
                into.call_part(CallPart { key: Some(&key), args, ..CallPart::default() })
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self, index: u64, into: &mut Assembly) -> Result<(), ModelError> {
        match self.open.remove(&index) {
            Some(Block::Thinking { signature }) if !signature.is_empty() => {
                into.reasoning_data(json!({"wire": WIRE, "signature": signature}))
            }
            Some(Block::ToolUse { input, streamed }) => {
                let whole = (!streamed && input.is_object()).then(|| input.to_string());
                into.end_call(&index.to_string(), whole.as_deref())
            }
            _ => Ok(()),
        }
    }

    /// The API counts cached input separately; here it is part of the input.
    fn usage(&mut self, usage: Option<&Value>, into: &mut Assembly) {
        let Some(usage) = usage else { return };
        let known = &mut into.usage;
        self.uncached = count(usage, "input_tokens").or(self.uncached);
        known.output = count(usage, "output_tokens").or(known.output);
        known.cached = count(usage, "cache_read_input_tokens").or(known.cached);
        known.cache_write = count(usage, "cache_creation_input_tokens").or(known.cache_write);
        known.input = self
            .uncached
            .map(|uncached| uncached + known.cached.unwrap_or(0) + known.cache_write.unwrap_or(0));
    }
}

fn reason(raw: &str) -> Reason {
    match raw {
        "tool_use" => Reason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Reason::Length,
        "refusal" => Reason::ContentFilter,
        _ => Reason::Stop,
    }
}
