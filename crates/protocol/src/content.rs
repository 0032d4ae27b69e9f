//! Message content: roles, content elements and references.
//!
//! Invariant: the element types are a closed set, their fields are open. Bytes are sent as artifacts; a
//! reference never contains what it refers to.

use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentElement {
    Text { text: String },
    Image(MediaElement),
    Audio(MediaElement),
    Video(MediaElement),
    File(MediaElement),
}

/// Media as artifact, URL or inline bytes. At least one is required; readers use the first present one, in this
/// order. Inline bytes need a `mime_type`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediaElement {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

impl ContentElement {
    /// The media, unless it is text.
    pub fn media(&self) -> Option<&MediaElement> {
        match self {
            ContentElement::Text { .. } => None,
            ContentElement::Image(media)
            | ContentElement::Audio(media)
            | ContentElement::Video(media)
            | ContentElement::File(media) => Some(media),
        }
    }

    pub fn artifact(&self) -> Option<ArtifactRef> {
        let media = self.media()?;
        Some(ArtifactRef {
            artifact_id: media.artifact_id.clone()?,
            name: media.name.clone(),
            mime_type: media.mime_type.clone(),
            ..ArtifactRef::default()
        })
    }

    /// Why the element is invalid, if it is.
    pub fn problem(&self) -> Option<&'static str> {
        self.media()?.problem()
    }
}

impl MediaElement {
    fn problem(&self) -> Option<&'static str> {
        let inline = self.data_base64.is_some();
        if self.artifact_id.is_none() && self.url.is_none() && !inline {
            return Some("media needs `artifact_id`, `url` or `data_base64`");
        }
        if self.url.as_deref().is_some_and(|url| !is_public_url(url)) {
            return Some("the `url` of media must start with `https://`, `http://` or `data:`");
        }
        (inline && self.mime_type.is_none()).then_some("`data_base64` needs a `mime_type`")
    }
}

/// Whether it is a web or data URL, not a path on the reader's machine.
fn is_public_url(url: &str) -> bool {
    let has_scheme =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme));
    ["https://", "http://", "data:"].into_iter().any(has_scheme)
}

/// The content of a message: plain text, or its parts in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MessageContent {
    Text(String),
    Parts(#[serde(deserialize_with = "crate::object::list")] Vec<ContentElement>),
}

impl MessageContent {
    /// The text alone, parts joined without a separator.
    pub fn text(&self) -> String {
        match self {
            MessageContent::Text(text) => text.clone(),
            MessageContent::Parts(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    ContentElement::Text { text } => Some(text.as_str()),
                    _ => None,
                })
                .collect(),
        }
    }
}

/// A reference to an artifact, with enough metadata to decide whether to fetch it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    pub artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::number::size",
        skip_serializing_if = "Option::is_none"
    )]
    pub size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub metadata: Object,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

/// A reference to the platform's original payload, never the payload itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RawEventRef {
    pub ref_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::number::size",
        skip_serializing_if = "Option::is_none"
    )]
    pub size_bytes: Option<u64>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

/// A static part of the context by its content, for provider caches (seed 003 §6): the same content has the same
/// reference in every run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StaticContextRef {
    pub kind: String,
    /// SHA-256 of its bytes, `sha256:HEX`.
    pub hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Our addition: the id with which `artifacts.*` returns its bytes, if the run may read artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_on_the_web_or_in_the_address_itself() {
        let problem = |url: &str| {
            let media = MediaElement { url: Some(url.to_owned()), ..MediaElement::default() };
            ContentElement::Image(media).problem()
        };
        for url in ["https://example.com/a.png", "HTTP://example.com", "data:image/png;base64,aGk="]
        {
            assert_eq!(problem(url), None, "{url}");
        }
        let expected = Some("the `url` of media must start with `https://`, `http://` or `data:`");
        for url in
            ["file:///etc/passwd", "FILE:/etc/passwd", "ftp://example.com", "/etc/passwd", "", "é"]
        {
            assert_eq!(problem(url), expected, "{url}");
        }
    }
}
