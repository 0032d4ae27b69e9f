//! The prompt of a turn: text, pictures and files of the event as content blocks.
//!
//! Invariant: what the harness cannot take as a block is a file in the workspace with a link in the prompt; nothing
//! is dropped silently.

use crate::workspace::Place;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_sdk::protocol::ContentElement;
use greenroom_sdk::protocol::content::MediaElement;
use greenroom_sdk::{RunCtx, RunFailure, Value, json};
use std::collections::HashSet;
use std::path::Path;

/// Largest file of an event.
const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest picture or sound inside the prompt.
const INLINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes per read of an artifact.
const PIECE_BYTES: u32 = 1024 * 1024;

/// What a harness takes besides text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Takes {
    pub(crate) image: bool,
    pub(crate) audio: bool,
}

impl Takes {
    pub(crate) fn read(initialized: &Value) -> Self {
        let can = &initialized["agentCapabilities"]["promptCapabilities"];
        let has = |name: &str| can[name].as_bool().unwrap_or_default();
        Self { image: has("image"), audio: has("audio") }
    }
}

/// The blocks of the event; `before` are texts that precede them.
pub(crate) async fn blocks(
    ctx: &RunCtx,
    place: &Place,
    takes: Takes,
    before: Vec<String>,
) -> Result<Vec<Value>, RunFailure> {
    let mut blocks: Vec<Value> = before.into_iter().map(text).collect();
    let mut seen = HashSet::new();
    let mut has_text = false;
    for part in &ctx.input.contents {
        match part {
            ContentElement::Text { text: said } => {
                has_text = true;
                blocks.push(text(said.clone()));
            }
            part => {
                if let Some(media) = part.media() {
                    seen.extend(media.artifact_id.clone());
                    blocks.push(media_block(ctx, place, takes, media).await);
                }
            }
        }
    }
    if !has_text && !ctx.text().is_empty() {
        blocks.push(text(ctx.text().to_owned()));
    }
    for attachment in &ctx.input.attachments {
        if seen.insert(attachment.artifact_id.clone()) {
            let media = MediaElement {
                artifact_id: Some(attachment.artifact_id.clone()),
                mime_type: attachment.mime_type.clone(),
                name: attachment.name.clone(),
                ..MediaElement::default()
            };
            blocks.push(media_block(ctx, place, takes, &media).await);
        }
    }
    match blocks.is_empty() {
        // An event without text, such as a schedule: its data is the question.
        true => Ok(vec![text(format!("{}: {}", ctx.event.event_type, json!(ctx.event.data)))]),
        false => Ok(blocks),
    }
}

fn text(text: String) -> Value {
    json!({"type": "text", "text": text})
}

async fn media_block(ctx: &RunCtx, place: &Place, takes: Takes, media: &MediaElement) -> Value {
    let name = media.name.clone().unwrap_or_else(|| "file".to_owned());
    match load(ctx, media).await {
        Ok(Loaded::Bytes(bytes, mime)) => {
            inline(takes, &bytes, &mime).unwrap_or_else(|| link(place, &name, &bytes, &mime))
        }
        Ok(Loaded::Url(url)) => json!({"type": "resource_link", "uri": url, "name": name}),
        Err(reason) => text(format!("[{name}: {reason}]")),
    }
}

enum Loaded {
    Bytes(Vec<u8>, String),
    Url(String),
}

async fn load(ctx: &RunCtx, media: &MediaElement) -> Result<Loaded, String> {
    let mime = media.mime_type.clone();
    if let Some(id) = &media.artifact_id {
        let bytes = download(ctx, id).await?;
        return Ok(Loaded::Bytes(bytes, mime.unwrap_or_else(unknown)));
    }
    if let Some(data) = &media.data_base64 {
        let bytes = STANDARD.decode(data).map_err(|error| error.to_string())?;
        return Ok(Loaded::Bytes(bytes, mime.unwrap_or_else(unknown)));
    }
    let url = media.url.clone().ok_or("it has no content")?;
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((kind, data)) => {
            let bytes = STANDARD.decode(data).map_err(|error| error.to_string())?;
            Ok(Loaded::Bytes(bytes, kind.to_owned()))
        }
        None => Ok(Loaded::Url(url)),
    }
}

fn unknown() -> String {
    "application/octet-stream".to_owned()
}

pub(crate) async fn download(ctx: &RunCtx, id: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    loop {
        let piece = ctx.artifacts().read_range(id, bytes.len() as u64, PIECE_BYTES).await;
        let piece = piece.map_err(|error| error.message)?;
        if piece.size_bytes > FILE_BYTES_MAX as u64 {
            return Err(format!("it has {} bytes, too many", piece.size_bytes));
        }
        let is_end = piece.eof || piece.bytes.is_empty();
        bytes.extend(piece.bytes);
        if is_end {
            return Ok(bytes);
        }
    }
}

fn inline(takes: Takes, bytes: &[u8], mime: &str) -> Option<Value> {
    let kind = match mime.split('/').next()? {
        "image" if takes.image => "image",
        "audio" if takes.audio => "audio",
        _ => return None,
    };
    (bytes.len() <= INLINE_BYTES_MAX)
        .then(|| json!({"type": kind, "mimeType": mime, "data": STANDARD.encode(bytes)}))
}

/// A file in the workspace.
fn link(place: &Place, name: &str, bytes: &[u8], mime: &str) -> Value {
    match place.write_incoming(name, bytes) {
        Ok(path) => link_to(&path, name, mime, bytes.len()),
        Err(error) => text(format!("[{name}: cannot be stored in the workspace: {error}]")),
    }
}

fn link_to(path: &Path, name: &str, mime: &str, bytes: usize) -> Value {
    let uri = format!("file://{}", path.display());
    json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime, "size": bytes})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_block_only_where_the_harness_takes_pictures() {
        let can = json!({"agentCapabilities": {"promptCapabilities": {"image": true}}});
        let takes = Takes::read(&can);
        assert_eq!(takes, Takes { image: true, audio: false });
        let block = inline(takes, b"x", "image/png");
        assert_eq!(block, Some(json!({"type": "image", "mimeType": "image/png", "data": "eA=="})));
        assert_eq!(inline(takes, b"x", "audio/wav"), None);
        assert_eq!(inline(Takes::read(&Value::Null), b"x", "image/png"), None);
    }
}
