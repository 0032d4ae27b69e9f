//! `artifacts.*`: stored files, read whole, in ranges or as a stream (seed 003 §4.4).
//!
//! Invariant: a name is never a path; sizes are bytes, not base64 characters.

use super::fields::{check_base64, check_name, fixed, lifetime, limit, offset, or_default};
use super::{Method, Params};
use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default length of a range.
pub const RANGE_BYTES_DEFAULT: u32 = 64 * 1024;
/// Longest name of an artifact.
pub const ARTIFACT_NAME_BYTES_MAX: usize = 255;
/// Longest MIME type.
pub const MIME_TYPE_BYTES_MAX: usize = 255;

/// The parameters of `artifacts.metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactIdParams {
    pub artifact_id: String,
}

impl Params for ArtifactIdParams {
    const METHOD: Method = Method::ArtifactsMetadata;

    fn check(&self) -> Result<(), String> {
        check_name("artifact_id", &self.artifact_id)
    }
}

/// An artifact: the result of `artifacts.metadata`, `artifacts.create` and `artifacts.commit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactView {
    pub artifact_id: String,
    #[serde(default)]
    pub name: Option<String>,
    pub mime_type: String,
    pub size_bytes: u64,
    /// 64 hexadecimal digits in lower case.
    pub sha256: String,
    #[serde(default)]
    pub conversation_id: Option<String>,
    #[serde(default)]
    pub run_id: Option<String>,
    #[serde(default)]
    pub agent: Option<String>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; null if it does not expire.
    #[serde(default)]
    pub expires_at: Option<String>,
    #[serde(default)]
    pub metadata: Object,
}

/// The parameters of `artifacts.read_range`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadRangeParams {
    pub artifact_id: String,
    /// The first byte; at or after the end, the range is empty.
    #[serde(default, deserialize_with = "offset")]
    #[schemars(with = "Option<u64>")]
    pub offset: u64,
    /// At least 1; the host may return less, and does at the end.
    #[serde(
        default = "fixed::<RANGE_BYTES_DEFAULT>",
        deserialize_with = "limit::<_, RANGE_BYTES_DEFAULT, { u32::MAX }>"
    )]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub length: u32,
}

impl Params for ReadRangeParams {
    const METHOD: Method = Method::ArtifactsReadRange;

    fn check(&self) -> Result<(), String> {
        check_name("artifact_id", &self.artifact_id)
    }
}

/// The result of `artifacts.read_range`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRange {
    pub data_base64: String,
    pub offset: u64,
    /// Bytes in this range.
    pub length: u64,
    /// Bytes of the whole artifact.
    pub size_bytes: u64,
    /// The range reaches the end.
    pub eof: bool,
}

/// The parameters of `artifacts.open_stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStreamParams {
    pub artifact_id: String,
    /// Where to start.
    #[serde(default, deserialize_with = "offset")]
    #[schemars(with = "Option<u64>")]
    pub offset: u64,
}

impl Params for OpenStreamParams {
    const METHOD: Method = Method::ArtifactsOpenStream;

    fn check(&self) -> Result<(), String> {
        check_name("artifact_id", &self.artifact_id)
    }
}

/// One `stream.item` of `artifacts.open_stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactStreamItem {
    pub offset: u64,
    pub data_base64: String,
}

/// The result of `artifacts.open_stream`, after its items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactStreamEnd {
    /// Bytes of the whole artifact.
    pub size_bytes: u64,
    pub sha256: String,
}

/// The parameters of `artifacts.create`; the result is an [`ArtifactView`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactCreateParams {
    /// A file name: no path, no control characters, at most 255 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Checked against the content; default: detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    pub content_base64: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Object::is_empty")]
    #[schemars(with = "Option<Object>")]
    pub metadata: Object,
    /// At least 1; default: it does not expire.
    #[serde(default, deserialize_with = "lifetime", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_in_s: Option<i64>,
}

impl Params for ArtifactCreateParams {
    const METHOD: Method = Method::ArtifactsCreate;

    fn check(&self) -> Result<(), String> {
        if let Some(name) = &self.name {
            check_artifact_name(name)?;
        }
        if let Some(mime_type) = &self.mime_type {
            check_mime_type(mime_type)?;
        }
        check_base64("content_base64", &self.content_base64)
    }
}

/// The parameters of `artifacts.begin`: an artifact that is uploaded in parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactBeginParams {
    /// A file name: no path, no control characters, at most 255 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Checked against the content; default: detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size of the whole, if it is known: one that is too large is refused at once.
    #[serde(
        default,
        deserialize_with = "crate::number::size",
        skip_serializing_if = "Option::is_none"
    )]
    pub size_bytes: Option<u64>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Object::is_empty")]
    #[schemars(with = "Option<Object>")]
    pub metadata: Object,
    /// At least 1; default: it does not expire.
    #[serde(default, deserialize_with = "lifetime", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_in_s: Option<i64>,
}

impl Params for ArtifactBeginParams {
    const METHOD: Method = Method::ArtifactsBegin;

    fn check(&self) -> Result<(), String> {
        if let Some(name) = &self.name {
            check_artifact_name(name)?;
        }
        self.mime_type.as_deref().map_or(Ok(()), check_mime_type)
    }
}

/// The result of `artifacts.begin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactUpload {
    pub upload_id: String,
    /// Largest part of one `artifacts.append`.
    pub part_bytes_max: u64,
}

/// The parameters of `artifacts.append`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactAppendParams {
    pub upload_id: String,
    /// Where the part begins: the size of all parts before it.
    #[serde(default, deserialize_with = "offset")]
    #[schemars(with = "Option<u64>")]
    pub offset: u64,
    pub data_base64: String,
}

impl Params for ArtifactAppendParams {
    const METHOD: Method = Method::ArtifactsAppend;

    fn check(&self) -> Result<(), String> {
        check_name("upload_id", &self.upload_id)?;
        check_base64("data_base64", &self.data_base64)
    }
}

/// The result of `artifacts.append`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactAppended {
    /// Bytes so far.
    pub size_bytes: u64,
}

/// The parameters of `artifacts.commit`; the result is an [`ArtifactView`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactCommitParams {
    pub upload_id: String,
    /// The hash of the whole; bytes with another one are not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The same for the size.
    #[serde(
        default,
        deserialize_with = "crate::number::size",
        skip_serializing_if = "Option::is_none"
    )]
    pub size_bytes: Option<u64>,
}

impl Params for ArtifactCommitParams {
    const METHOD: Method = Method::ArtifactsCommit;

    fn check(&self) -> Result<(), String> {
        check_name("upload_id", &self.upload_id)
    }
}

/// A plain file name: 1 to 255 bytes, not `.` or `..`, no path separators of any system, no control characters.
pub fn check_artifact_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > ARTIFACT_NAME_BYTES_MAX {
        return Err(format!("`name` must have 1 to {ARTIFACT_NAME_BYTES_MAX} bytes"));
    }
    if name == "." || name == ".." || name.contains(['/', '\\']) {
        return Err("`name` must be a file name, not a path".to_owned());
    }
    match name.contains(char::is_control) {
        true => Err("`name` must not contain control characters".to_owned()),
        false => Ok(()),
    }
}

/// `type/subtype`, with or without parameters, in visible ASCII.
pub fn check_mime_type(mime_type: &str) -> Result<(), String> {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    let is_token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    let is_type =
        essence.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
    let is_plain = mime_type.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    match is_type && is_plain && mime_type.len() <= MIME_TYPE_BYTES_MAX {
        true => Ok(()),
        false => Err("`mime_type` must be a MIME type".to_owned()),
    }
}
