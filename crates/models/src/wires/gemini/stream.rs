//! Chunks of a streamed `GenerateContentResponse`.
//!
//! Invariant: every function call is complete; only the first candidate is used.

use super::WIRE;
use crate::ModelError;
use crate::assembly::{Assembly, Reason};
use crate::wires::{Flow, count, list, text};
use serde_json::{Value, json};

pub(in crate::wires) fn event(event: &Value, into: &mut Assembly) -> Result<Flow, ModelError> {
    into.note("provider_model", event.get("modelVersion"));
    into.note("provider_response_id", event.get("responseId"));
    if let Some(metadata) = event.get("usageMetadata") {
        usage(metadata, into);
    }
    if let Some(blocked) = event.get("promptFeedback").and_then(|f| text(f, "blockReason")) {
        into.complete(Reason::ContentFilter, blocked);
    }
    let first = |candidate: &&Value| count(candidate, "index").unwrap_or(0) == 0;
    let Some(candidate) = list(event, "candidates").iter().find(first) else {
        return Ok(Flow::More);
    };
    for part in candidate.get("content").map(|content| list(content, "parts")).unwrap_or_default() {
        self::part(part, into)?;
    }
    if let Some(raw) = text(candidate, "finishReason") {
        into.complete(reason(raw), raw);
    }
    Ok(Flow::More)
}

fn part(part: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    let signature = text(part, "thoughtSignature");
    let content = text(part, "text").unwrap_or_default();
    let is_thought = part.get("thought") == Some(&true.into());
    if is_thought {
        into.reasoning(content)?;
    }
    if let Some(signature) = signature {
        into.reasoning_data(json!({"wire": WIRE, "signature": signature}))?;
    }
    if is_thought {
        return Ok(());
    }
    if let Some(call) = part.get("functionCall") {
        let args = call.get("args").unwrap_or(&Value::Null);
        let name = text(call, "name").unwrap_or_default();
        return match args {
            Value::Null => into.complete_call(text(call, "id"), name, &json!({})),
            args => into.complete_call(text(call, "id"), name, args),
        };
    }
    if let Some(data) = part.get("inlineData") {
        let mime_type = text(data, "mimeType").unwrap_or("image/png");
        return into.media(mime_type, text(data, "data").unwrap_or_default());
    }
    into.text(content)
}

/// Thinking is counted separately; here it is part of the output.
fn usage(usage: &Value, into: &mut Assembly) {
    let known = &mut into.usage;
    let prompt = count(usage, "promptTokenCount");
    let tools = count(usage, "toolUsePromptTokenCount").unwrap_or(0);
    known.input = prompt.map(|prompt| prompt + tools).or(known.input);
    known.reasoning = count(usage, "thoughtsTokenCount").or(known.reasoning);
    let answer = count(usage, "candidatesTokenCount");
    known.output = match (answer, known.reasoning) {
        (None, None) => known.output,
        (answer, thoughts) => Some(answer.unwrap_or(0) + thoughts.unwrap_or(0)),
    };
    known.total = count(usage, "totalTokenCount").or(known.total);
    known.cached = count(usage, "cachedContentTokenCount").or(known.cached);
}

fn reason(raw: &str) -> Reason {
    match raw {
        "MAX_TOKENS" => Reason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Reason::ContentFilter,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "OTHER"
        | "IMAGE_OTHER"
        | "NO_IMAGE" => Reason::Error,
        _ => Reason::Stop,
    }
}
