//! The messages of a request in a common form, from which every wire is written.
//!
//! Invariant: segments of an earlier response replace its content and calls; every tool result knows the name of
//! its tool; media are inline or URLs that a provider can reach.

use crate::ModelError;
use greenroom_protocol::api::models::{ModelMessage, ModelToolCall};
use greenroom_protocol::content::MediaElement;
use greenroom_protocol::{ContentElement, MessageContent, Object, Role};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part<'a>>,
    /// For `tool` turns: the answered call, and the name of its tool if known.
    pub(crate) answers: Option<(&'a str, String)>,
    /// For `tool` turns: whether the call failed.
    pub(crate) is_error: bool,
}

#[derive(Debug)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Reasoning { text: &'a str, data: Option<&'a Value> },
    Media(Media<'a>),
    Call(Cow<'a, ModelToolCall>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Media<'a> {
    pub(crate) kind: MediaKind,
    pub(crate) source: Source<'a>,
    pub(crate) mime_type: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Image,
    Audio,
    Video,
    File,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Base64(&'a str),
    Url(&'a str),
}

impl Turn<'_> {
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(*text),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn media(&self) -> impl Iterator<Item = &Media<'_>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Media(media) => Some(media),
            _ => None,
        })
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &ModelToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call.as_ref()),
            _ => None,
        })
    }
}

impl MediaKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
            MediaKind::File => "file",
        }
    }
}

impl Media<'_> {
    pub(crate) fn mime(&self) -> &str {
        self.mime_type.unwrap_or(match self.kind {
            MediaKind::Image => "image/png",
            MediaKind::Audio => "audio/wav",
            MediaKind::Video => "video/mp4",
            MediaKind::File => "application/octet-stream",
        })
    }

    pub(crate) fn data_url(&self) -> String {
        match self.source {
            Source::Url(url) => url.to_owned(),
            Source::Base64(data) => format!("data:{};base64,{data}", self.mime()),
        }
    }

    /// The error of wires that do not support it.
    pub(crate) fn unsupported(&self, provider: &str) -> ModelError {
        let how = match self.source {
            Source::Url(_) => " by URL",
            Source::Base64(_) => "",
        };
        let (kind, mime) = (self.kind.as_str(), self.mime_type.unwrap_or("unknown type"));
        ModelError::InvalidRequest(format!("{provider} does not support {kind} ({mime}){how}"))
    }
}

pub(crate) fn turns(messages: &[ModelMessage]) -> Result<Vec<Turn<'_>>, ModelError> {
    let mut names: HashMap<String, String> = HashMap::new();
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        let parts = parts(message)?;
        let answers = match (message.role, &message.tool_call_id) {
            (Role::Tool, Some(id)) => {
                let known = message.name.clone().or_else(|| names.get(id).cloned());
                Some((id.as_str(), known.unwrap_or_default()))
            }
            (Role::Tool, None) => {
                let text = "a `tool` message needs `tool_call_id`";
                return Err(ModelError::InvalidRequest(text.to_owned()));
            }
            _ => None,
        };
        let is_error = message.is_error == Some(true);
        let turn = Turn { role: message.role, parts, answers, is_error };
        names.extend(turn.calls().map(|call| (call.id.clone(), call.name.clone())));
        turns.push(turn);
    }
    Ok(turns)
}

fn parts(message: &ModelMessage) -> Result<Vec<Part<'_>>, ModelError> {
    let mut parts = match &message.segments {
        Some(segments) if message.role == Role::Assistant && !segments.is_empty() => {
            segments.iter().filter_map(segment_part).collect()
        }
        _ => content_parts(message.content.as_ref())?,
    };
    for call in &message.tool_calls {
        let known =
            |part: &Part<'_>| matches!(part, Part::Call(existing) if existing.id == call.id);
        if !parts.iter().any(known) {
            parts.push(Part::Call(Cow::Borrowed(call)));
        }
    }
    Ok(parts)
}

fn content_parts(content: Option<&MessageContent>) -> Result<Vec<Part<'_>>, ModelError> {
    let elements = match content {
        None => return Ok(Vec::new()),
        Some(MessageContent::Text(text)) if text.is_empty() => return Ok(Vec::new()),
        Some(MessageContent::Text(text)) => return Ok(vec![Part::Text(text)]),
        Some(MessageContent::Parts(elements)) => elements,
    };
    let mut parts = Vec::with_capacity(elements.len());
    for element in elements {
        match element {
            ContentElement::Text { text } if text.is_empty() => {}
            ContentElement::Text { text } => parts.push(Part::Text(text)),
            ContentElement::Image(media) => parts.push(media_part(MediaKind::Image, media)?),
            ContentElement::Audio(media) => parts.push(media_part(MediaKind::Audio, media)?),
            ContentElement::Video(media) => parts.push(media_part(MediaKind::Video, media)?),
            ContentElement::File(media) => parts.push(media_part(MediaKind::File, media)?),
        }
    }
    Ok(parts)
}

fn media_part(kind: MediaKind, media: &MediaElement) -> Result<Part<'_>, ModelError> {
    let (source, mime_type) = match (&media.data_base64, &media.url) {
        (Some(data), _) => (Source::Base64(data), media.mime_type.as_deref()),
        (None, Some(url)) => match data_url(url) {
            Some((mime_type, data)) => (Source::Base64(data), Some(mime_type)),
            None => (Source::Url(url), media.mime_type.as_deref()),
        },
        (None, None) => {
            let text = "media need `data_base64` or `url`";
            return Err(ModelError::InvalidRequest(text.to_owned()));
        }
    };
    Ok(Part::Media(Media { kind, source, mime_type, name: media.name.as_deref() }))
}

/// `data:image/png;base64,…`
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((mime_type.split(';').next()?, data))
}

/// Segments that no wire can send back (an artifact, a surface) are omitted.
fn segment_part(segment: &Object) -> Option<Part<'_>> {
    let text = |name: &str| segment.get(name).and_then(Value::as_str);
    let image = |kind, data| Media {
        kind,
        source: Source::Base64(data),
        mime_type: text("mime_type"),
        name: None,
    };
    match text("type")? {
        "text" => text("text").filter(|text| !text.is_empty()).map(Part::Text),
        "reasoning" => {
            let data = segment.get("data").filter(|data| !data.is_null());
            Some(Part::Reasoning { text: text("text").unwrap_or_default(), data })
        }
        "tool_call" => {
            let call = ModelToolCall::deserialize(segment.get("tool_call")?).ok()?;
            Some(Part::Call(Cow::Owned(call)))
        }
        "image" => Some(Part::Media(image(MediaKind::Image, text("data")?))),
        "audio" => Some(Part::Media(image(MediaKind::Audio, text("data")?))),
        "video" => Some(Part::Media(image(MediaKind::Video, text("data")?))),
        _ => None,
    }
}
