//! From the result of a call to our output.
//!
//! Invariant: nothing of a result is lost: text and structure stay in `result`, bytes become attachments which
//! `result` refers to by index.

use super::settings::McpLimits;
use crate::{Attachment, ToolFailure, ToolOutput};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

/// Longer texts of resources become attachments.
const INLINE_TEXT_BYTES_MAX: usize = 64 * 1024;

pub(super) fn output(
    result: CallToolResult,
    linked: Vec<ResourceContents>,
    limits: &McpLimits,
) -> ToolOutput {
    let mut attachments = Attachments { kept: Vec::new(), max: limits.attachments_max };
    let is_error = result.is_error == Some(true);
    let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
    let only_text = result.content.iter().all(is_text) && linked.is_empty();
    let texts: Vec<String> =
        result.content.iter().filter_map(|block| Some(block.as_text()?.text.clone())).collect();
    let blocks = result.content.into_iter().map(|block| attachments.block(block));
    let mut content: Vec<Value> = blocks.collect();
    content.extend(linked.into_iter().map(|contents| attachments.resource(contents)));
    let result = match (result.structured_content, only_text) {
        (Some(structured), true) => structured,
        (Some(structured), false) => json!({"structured": structured, "content": content}),
        (None, _) => json!({"content": content}),
    };
    let output = match is_error {
        false => ToolOutput::success(result),
        true => {
            let message = match texts.join("\n") {
                text if text.is_empty() => "the tool failed without saying why".to_owned(),
                text => text,
            };
            let failure = ToolFailure::new("TOOL_ERROR", message);
            ToolOutput::failure(if only_text { failure } else { failure.detail("result", result) })
        }
    };
    ToolOutput { attachments: attachments.kept, ..output }
}

struct Attachments {
    kept: Vec<Attachment>,
    max: usize,
}

impl Attachments {
    fn block(&mut self, block: ContentBlock) -> Value {
        match block {
            ContentBlock::Text(text) => json!({"type": "text", "text": text.text}),
            ContentBlock::Image(image) => self.media("image", image.mime_type, &image.data),
            ContentBlock::Audio(audio) => self.media("audio", audio.mime_type, &audio.data),
            ContentBlock::Resource(embedded) => self.resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let mut shown = Map::new();
                shown.insert("type".to_owned(), "resource_link".into());
                shown.insert("uri".to_owned(), link.uri.into());
                shown.insert("name".to_owned(), link.name.into());
                for (key, value) in
                    [("mime_type", link.mime_type), ("description", link.description)]
                {
                    shown.extend(value.map(|value| (key.to_owned(), value.into())));
                }
                Value::Object(shown)
            }
            _ => json!({"type": "unknown"}),
        }
    }

    fn media(&mut self, kind: &str, mime_type: String, data: &str) -> Value {
        let shown = json!({"type": kind, "mime_type": mime_type});
        self.attach(shown, None, mime_type, decode(data))
    }

    fn resource(&mut self, contents: ResourceContents) -> Value {
        match contents {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                let mime_type = mime_type.unwrap_or_else(|| "text/plain".to_owned());
                let mut shown = json!({"type": "resource", "uri": uri, "mime_type": mime_type});
                if text.len() <= INLINE_TEXT_BYTES_MAX {
                    shown["text"] = text.clone().into();
                }
                self.attach(shown, file_name(&uri), mime_type, Ok(text.into_bytes()))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                let shown = json!({"type": "resource", "uri": uri, "mime_type": mime_type});
                self.attach(shown, file_name(&uri), mime_type, decode(&blob))
            }
            _ => json!({"type": "unknown"}),
        }
    }

    fn attach(
        &mut self,
        mut shown: Value,
        name: Option<String>,
        mime_type: String,
        bytes: Result<Vec<u8>, &'static str>,
    ) -> Value {
        let bytes = bytes.and_then(|bytes| match self.kept.len() < self.max {
            true => Ok(bytes),
            false => Err("the result has too many attachments"),
        });
        match bytes {
            Ok(bytes) => {
                shown["attachment"] = self.kept.len().into();
                self.kept.push(Attachment { name, mime_type, bytes });
            }
            Err(reason) => shown["error"] = reason.into(),
        }
        shown
    }
}

fn decode(data: &str) -> Result<Vec<u8>, &'static str> {
    STANDARD.decode(data).map_err(|_| "its bytes are not base64")
}

/// The last segment of a uri, where it is a valid file name.
fn file_name(uri: &str) -> Option<String> {
    let end = uri.find(['?', '#']).unwrap_or(uri.len());
    let name = uri[..end].rsplit('/').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let usable = !name.starts_with('.') && name.chars().all(is_plain);
    (usable && !name.is_empty() && name.len() <= 100).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    fn seen(result: Value) -> ToolOutput {
        output(serde_json::from_value(result).unwrap(), Vec::new(), &McpLimits::default())
    }

    #[test]
    fn text_stays_text_and_structure_stays_structure() {
        let text = json!([{"type": "text", "text": "hi"}]);
        assert_eq!(
            seen(json!({"content": text})),
            ToolOutput::success(json!({"content": [{"type": "text", "text": "hi"}]}))
        );
        let both = json!({"content": text, "structuredContent": {"n": 1}});
        assert_eq!(seen(both), ToolOutput::success(json!({"n": 1})));
    }

    #[test]
    fn bytes_become_attachments_that_the_result_refers_to() {
        let output = seen(json!({"content": [
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "!", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a/b.txt", "text": "body"}},
            {"type": "resource", "resource": {"uri": "x:..", "blob": "aGk="}},
            {"type": "resource_link", "uri": "demo://1", "name": "one"},
        ]}));
        assert_eq!(output.status, Status::Success);
        assert_eq!(
            output.result,
            json!({"content": [
                {"type": "image", "mime_type": "image/png", "attachment": 0},
                {"type": "audio", "mime_type": "audio/wav", "error": "its bytes are not base64"},
                {"type": "resource", "uri": "file:///a/b.txt", "mime_type": "text/plain", "text": "body", "attachment": 1},
                {"type": "resource", "uri": "x:..", "mime_type": "application/octet-stream", "attachment": 2},
                {"type": "resource_link", "uri": "demo://1", "name": "one"},
            ]})
        );
        let kept: Vec<_> = output
            .attachments
            .iter()
            .map(|kept| (kept.name.as_deref(), kept.mime_type.as_str(), kept.bytes.as_slice()))
            .collect();
        assert_eq!(
            kept,
            [
                (None, "image/png", b"hi".as_slice()),
                (Some("b.txt"), "text/plain", b"body"),
                (None, "application/octet-stream", b"hi"),
            ]
        );
    }

    #[test]
    fn an_error_is_a_failure_with_its_text() {
        let output =
            seen(json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]}));
        assert_eq!(output, ToolOutput::failure(ToolFailure::new("TOOL_ERROR", "no such file")));
    }
}
