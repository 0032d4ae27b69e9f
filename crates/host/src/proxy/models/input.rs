//! Inputs and outputs of models besides text: artifacts by value in, large media as artifacts out.
//!
//! Invariant: an artifact reaches a model only if the run could read it itself.

use super::super::artifacts;
use super::super::call::{Call, refuse};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_models::{ModelRequest, ToolSpec};
use greenroom_protocol::api::models::{ModelInvokeParams, ModelMessage};
use greenroom_protocol::content::MediaElement;
use greenroom_protocol::manifest::ArtifactPermission;
use greenroom_protocol::{AgentAPIError, ContentElement, ErrorCode, MessageContent, Object};
use serde_json::Value;

/// Bytes of all artifacts that go into one request.
const MEDIA_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Media up to this size stay in the answer.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Size that one image, recording or file counts as.
const MEDIA_AS_BYTES: usize = 4_500;

/// Bytes of text in a call: its parameters without media.
pub(super) fn text_bytes(call_bytes: usize, messages: &[ModelMessage]) -> usize {
    let parts = messages.iter().filter_map(|message| match &message.content {
        Some(MessageContent::Parts(parts)) => Some(parts),
        _ => None,
    });
    let media = parts.flatten().filter_map(ContentElement::media);
    media.fold(call_bytes, |bytes, media| {
        let inline = media.data_base64.as_ref().map_or(0, String::len);
        bytes.saturating_sub(inline) + MEDIA_AS_BYTES
    })
}

pub(super) async fn request(
    call: &mut Call<'_>,
    params: ModelInvokeParams,
) -> Result<ModelRequest, AgentAPIError> {
    let mut messages = params.messages;
    let mut left = MEDIA_BYTES_MAX;
    for message in &mut messages {
        resolve(call, message, &mut left).await?;
    }
    let tools = params.tools.unwrap_or_default().into_iter().map(tool_spec);
    let tools = tools.collect::<Result<Vec<ToolSpec>, AgentAPIError>>()?;
    Ok(ModelRequest { messages, tools, options: params.extra_args.unwrap_or_default() })
}

async fn resolve(
    call: &mut Call<'_>,
    message: &mut ModelMessage,
    left: &mut u64,
) -> Result<(), AgentAPIError> {
    let Some(MessageContent::Parts(parts)) = &mut message.content else { return Ok(()) };
    for part in parts {
        if let Some(problem) = part.problem() {
            return Err(refuse(ErrorCode::InvalidArgument, problem));
        }
        let media = match part {
            ContentElement::Text { .. } => continue,
            ContentElement::Image(media)
            | ContentElement::Audio(media)
            | ContentElement::Video(media)
            | ContentElement::File(media) => media,
        };
        if let Some(artifact_id) = media.artifact_id.take() {
            load(call, media, &artifact_id, left).await?;
        }
    }
    Ok(())
}

async fn load(
    call: &mut Call<'_>,
    media: &mut MediaElement,
    artifact_id: &str,
    left: &mut u64,
) -> Result<(), AgentAPIError> {
    if !call.rights.grant.artifacts.operations.contains(&ArtifactPermission::Read) {
        let message = "artifacts may not be read by this run, so no model gets them";
        return Err(refuse(ErrorCode::Unauthorized, message).detail("reason", "not_granted"));
    }
    let (row, bytes) = artifacts::read_whole(call, artifact_id, *left).await?;
    *left -= bytes.len() as u64;
    media.data_base64 = Some(STANDARD.encode(&bytes));
    media.mime_type = Some(row.mime_type);
    media.name = media.name.take().or(row.name);
    Ok(())
}

/// `{name or tool_name, description, parameters or input_schema}`, also in the shape of chat completions.
fn tool_spec(mut tool: Object) -> Result<ToolSpec, AgentAPIError> {
    if let Some(Value::Object(function)) = tool.remove("function") {
        tool = function;
    }
    let name = ["tool_name", "name"].iter().find_map(|key| tool.get(*key)?.as_str());
    let Some(name) = name.filter(|name| !name.is_empty()).map(str::to_owned) else {
        return Err(refuse(ErrorCode::InvalidArgument, "a tool in `tools` has no `tool_name`"));
    };
    let schema = ["parameters", "input_schema"].iter().find_map(|key| tool.remove(*key));
    let description = tool.get("description").and_then(Value::as_str).map(str::to_owned);
    let parameters = schema.unwrap_or_else(|| serde_json::json!({"type": "object"}));
    Ok(ToolSpec { name, description, parameters })
}

/// Large media of an answer become artifacts of the run.
pub(super) async fn keep_media(
    call: &mut Call<'_>,
    segment: &mut Object,
) -> Result<(), AgentAPIError> {
    let is_media = matches!(
        segment.get("type").and_then(Value::as_str),
        Some("image" | "audio" | "video" | "file")
    );
    let data = segment.get("data").and_then(Value::as_str).unwrap_or_default();
    if !is_media || data.len() <= INLINE_BYTES_MAX {
        return Ok(());
    }
    // A URL is not bytes, however long it is.
    let Ok(bytes) = STANDARD.decode(data) else { return Ok(()) };
    let mime_type = segment.get("mime_type").and_then(Value::as_str).map(str::to_owned);
    let artifact_id = artifacts::keep_for_run(call, bytes, mime_type).await?;
    segment.remove("data");
    segment.insert("artifact_id".to_owned(), artifact_id.into());
    Ok(())
}
