//! Replies that a runner gives by a call instead of a result: they become messages of its run.
//!
//! Invariant: only runners that declare to handle events see the reply tool; a model that gets every tool of
//! a run would otherwise reply twice.

use super::content::{ARTIFACT, from_langbot};
use greenroom_protocol::manifest::ToolPermission;
use greenroom_protocol::{AgentAPIError, ErrorCode, ToolResource};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// LangBot's name of the reply tool.
const TOOL: &str = "event_reply";

/// What a call that replies contains.
#[derive(Debug, PartialEq)]
pub(crate) enum Replied {
    /// The content of a message.
    With(Value),
    /// Nothing yet, or nothing more.
    Not,
    /// The description of the reply tool.
    Described(Value),
}

/// The reply tool in the resources of a run.
pub(super) fn tool() -> ToolResource {
    let parameters = json!({
        "type": "object", "required": ["text"],
        "properties": {"text": {"type": "string", "description": "What to answer."}},
    });
    ToolResource {
        tool_name: TOOL.to_owned(),
        description: Some("Answers the event, where it came from.".to_owned()),
        parameters: parameters.as_object().cloned().unwrap_or_default(),
        operations: vec![ToolPermission::Detail, ToolPermission::Call],
        ..ToolResource::default()
    }
}

/// Whether an action can only be a reply.
pub(crate) fn is_only_that(action: &str) -> bool {
    action == "reply_stream"
}

/// Whether a reported tool call is a reply: the SDK reports those as well.
pub(crate) fn is_reported(call: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct NamedTool<'a> {
        #[serde(default, borrow)]
        tool_name: Option<Cow<'a, str>>,
    }
    serde_json::from_str::<NamedTool<'_>>(call.get())
        .is_ok_and(|named| named.tool_name.as_deref() == Some(TOOL))
}

/// The reply in an action, if it is one.
pub(crate) fn read(action: &str, data: &Value) -> Option<Result<Replied, AgentAPIError>> {
    let names_tool = |key: &str| data[key] == TOOL;
    match action {
        "get_tool_detail" if names_tool("tool_name") => {
            let ToolResource { tool_name, description, parameters, .. } = tool();
            let tool =
                json!({"name": tool_name, "description": description, "parameters": parameters});
            Some(Ok(Replied::Described(json!({ "tool": tool }))))
        }
        "call_tool" if names_tool("tool_name") => Some(text_reply(&data["parameters"]["text"])),
        "call_platform_api" if names_tool("context_tool") => {
            Some(chain(&data["params"]["message"]))
        }
        // Each update has the whole text, and so has the end: nothing is kept until then.
        "reply_stream" => Some(match data["operation"].as_str() {
            Some("finish") => text_reply(&data["text"]),
            Some("update" | "abort") => Ok(Replied::Not),
            _ => Err(invalid("`operation` is `update`, `finish` or `abort`")),
        }),
        _ => None,
    }
}

/// The message of a reply, and the answer to its call.
pub(crate) fn answer(replied: Replied) -> (Option<Value>, Value) {
    match replied {
        Replied::With(content) => (Some(content), json!({"result": {"status": "sent"}})),
        Replied::Not => (None, json!({"result": {"status": "kept"}})),
        Replied::Described(tool) => (None, tool),
    }
}

fn text_reply(text: &Value) -> Result<Replied, AgentAPIError> {
    match text.as_str() {
        Some(text) if !text.is_empty() => Ok(Replied::With(text.into())),
        Some(_) => Ok(Replied::Not),
        None => Err(invalid("`text` is not a text")),
    }
}

/// A chain of LangBot's message elements: text if it is only that, else our elements.
pub(super) fn chain(message: &Value) -> Result<Replied, AgentAPIError> {
    let parts = message.as_array().ok_or_else(|| invalid("`message` is not a list"))?;
    let mut text = String::new();
    let mut elements = Vec::new();
    for part in parts {
        match element(part)? {
            Value::String(part) => text += &part,
            Value::Null => {}
            media => {
                elements.extend(as_element(&mut text));
                elements.push(media);
            }
        }
    }
    if elements.is_empty() {
        return text_reply(&text.into());
    }
    elements.extend(as_element(&mut text));
    Ok(Replied::With(elements.into()))
}

fn as_element(text: &mut String) -> Option<Value> {
    let text = std::mem::take(text);
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// A text, one of our elements, or null.
fn element(part: &Value) -> Result<Value, AgentAPIError> {
    let text = |key: &str| part[key].as_str().filter(|text| !text.is_empty());
    let kind = text("type").unwrap_or_default();
    let media = |kind: &str| {
        let found = match (text("url"), text("base64")) {
            (Some(url), _) if !is_address(url) => {
                return Err(invalid("`url` is an address with `https://` or `http://`"));
            }
            (Some(url), _) if kind == "image" => {
                json!({"type": "image_url", "image_url": {"url": url}})
            }
            (Some(url), _) => json!({"type": "file_url", "file_url": url}),
            (None, Some(data)) => {
                let kind = format!("{kind}_base64");
                json!({"type": kind, kind.clone(): data})
            }
            (None, None) => {
                return Err(invalid(
                    "a picture or file needs `url` or `base64`: paths are not read",
                ));
            }
        };
        let mut found = found;
        if let Some(name) = text("name") {
            found["file_name"] = name.into();
        }
        Ok(from_langbot(&found))
    };
    match kind {
        "Plain" | "Unknown" if part["text"].is_string() => Ok(part["text"].clone()),
        "Plain" | "Unknown" => Err(invalid("`text` is not a text")),
        "At" if part["target"].is_null() => Err(invalid("`target` is missing")),
        "At" => {
            let target =
                part["target"].as_str().map_or_else(|| part["target"].to_string(), str::to_owned);
            Ok(format!("@{}", text("display").unwrap_or(&target)).into())
        }
        "AtAll" => Ok("@all".into()),
        // The target of the reply is known already.
        "Source" | "Quote" => Ok(Value::Null),
        "Image" => media("image"),
        "File" | "Voice" => media("file"),
        other => Err(invalid(&format!("an element of the kind `{other}` cannot be sent"))),
    }
}

/// Whether a message may link to this: a URL or an artifact.
fn is_address(url: &str) -> bool {
    ["https://", "http://", ARTIFACT].iter().any(|beginning| url.starts_with(beginning))
}

fn invalid(message: &str) -> AgentAPIError {
    AgentAPIError::new(ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replied(action: &str, data: Value) -> Result<Replied, AgentAPIError> {
        read(action, &data).expect("it is an answer")
    }

    fn reply_message(message: Value) -> Result<Replied, AgentAPIError> {
        let params = json!({"message": message, "quote_origin": true});
        replied(
            "call_platform_api",
            json!({"action": "send_message", "context_tool": "event_reply", "params": params}),
        )
    }

    #[test]
    fn every_way_to_answer_says_the_same() {
        let text = Ok(Replied::With("hello".into()));
        let call = json!({"tool_name": "event_reply", "parameters": {"text": "hello"}});
        assert_eq!(replied("call_tool", call), text);
        assert_eq!(reply_message(json!([{"type": "Plain", "text": "hello"}])), text);
        let finish = json!({"operation": "finish", "text": "hello", "stream_id": "1"});
        assert_eq!(replied("reply_stream", finish), text);
        for operation in ["update", "abort"] {
            let data = json!({"operation": operation, "text": "hel"});
            assert_eq!(replied("reply_stream", data), Ok(Replied::Not));
        }
    }

    #[test]
    fn a_chain_becomes_a_text_or_elements_in_its_order() {
        let chain = json!([
            {"type": "Source", "id": 1}, {"type": "At", "target": 7, "display": ""}, {"type": "Plain", "text": " look: "},
            {"type": "Image", "url": "https://example.com/a.png", "base64": ""}, {"type": "Plain", "text": "and"},
            {"type": "File", "name": "a.txt", "base64": "aGk="},
        ]);
        let elements = json!([
            {"type": "text", "text": "@7 look: "},
            {"type": "image", "url": "https://example.com/a.png"},
            {"type": "text", "text": "and"},
            {"type": "file", "name": "a.txt", "data_base64": "aGk=", "mime_type": "application/octet-stream"},
        ]);
        assert_eq!(reply_message(chain), Ok(Replied::With(elements)));
        let words = json!([{"type": "AtAll"}, {"type": "Plain", "text": " come"}]);
        assert_eq!(reply_message(words), Ok(Replied::With("@all come".into())));
        assert_eq!(reply_message(json!([])), Ok(Replied::Not));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_its_reason() {
        let refusal = |message| reply_message(message).unwrap_err();
        let path = refusal(json!([{"type": "Image", "path": "/etc/passwd"}]));
        assert_eq!(path.code, ErrorCode::InvalidArgument);
        assert_eq!(path.message, "a picture or file needs `url` or `base64`: paths are not read");
        let secret = refusal(json!([{"type": "Image", "url": "file:///etc/passwd"}]));
        assert_eq!(secret.message, "`url` is an address with `https://` or `http://`");
        assert_eq!(refusal(json!([{"type": "Plain", "text": 5}])).message, "`text` is not a text");
        assert_eq!(refusal(json!([{"type": "At"}])).message, "`target` is missing");
        let face = refusal(json!([{"type": "Face", "face_id": 3}]));
        assert_eq!(face.message, "an element of the kind `Face` cannot be sent");
        assert_eq!(refusal(json!("hello")).message, "`message` is not a list");
        let call = json!({"tool_name": "event_reply", "parameters": {"text": 5}});
        assert_eq!(replied("call_tool", call).unwrap_err().message, "`text` is not a text");
    }

    #[test]
    fn other_calls_are_not_answers() {
        assert_eq!(
            read("call_tool", &json!({"tool_name": "other", "parameters": {"text": "x"}})),
            None
        );
        assert_eq!(read("call_platform_api", &json!({"action": "send_message"})), None);
        assert_eq!(read("state_get", &json!({"tool_name": "event_reply"})), None);
    }
}
