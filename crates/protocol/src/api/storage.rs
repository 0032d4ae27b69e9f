//! `storage.*`: blobs per area.
//!
//! Invariant: a key is never a path; bytes are sent as base64.

use super::fields::{check_base64, check_optional, optional_limit};
use super::{Method, PAGE_LIMIT_MAX, Params};
use crate::manifest::StorageArea;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest storage key.
pub const STORAGE_KEY_BYTES_MAX: usize = 512;

/// The parameters of `storage.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageGetParams {
    pub area: StorageArea,
    pub key: String,
}

impl Params for StorageGetParams {
    const METHOD: Method = Method::StorageGet;

    fn check(&self) -> Result<(), String> {
        check_storage_key(&self.key)
    }
}

/// The result of `storage.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageValue {
    /// Null if the key is missing.
    pub data_base64: Option<String>,
    #[serde(default)]
    pub size_bytes: u64,
}

/// The parameters of `storage.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageSetParams {
    pub area: StorageArea,
    pub key: String,
    /// The bytes as base64.
    pub value: String,
}

impl Params for StorageSetParams {
    const METHOD: Method = Method::StorageSet;

    fn check(&self) -> Result<(), String> {
        check_storage_key(&self.key)?;
        check_base64("value", &self.value)
    }
}

/// The result of `storage.set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageWritten {
    pub size_bytes: u64,
}

/// The parameters of `storage.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageDeleteParams {
    pub area: StorageArea,
    pub key: String,
}

impl Params for StorageDeleteParams {
    const METHOD: Method = Method::StorageDelete;

    fn check(&self) -> Result<(), String> {
        check_storage_key(&self.key)
    }
}

/// The parameters of `storage.list`, ordered by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageListParams {
    pub area: StorageArea,
    /// Only keys with this prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// At least 1, capped at 200.
    #[serde(
        default,
        deserialize_with = "optional_limit::<_, PAGE_LIMIT_MAX>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
}

impl Params for StorageListParams {
    const METHOD: Method = Method::StorageList;

    fn check(&self) -> Result<(), String> {
        check_optional("prefix", self.prefix.as_deref())
    }
}

/// The result of `storage.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoragePage {
    pub items: Vec<StorageEntry>,
    #[serde(default)]
    pub next_cursor: Option<String>,
    #[serde(default)]
    pub has_more: bool,
}

/// A blob without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageEntry {
    pub key: String,
    pub size_bytes: u64,
    /// RFC 3339.
    pub updated_at: String,
}

/// A storage key: 1 to 512 bytes; `/` separates parts, none of which is empty, `.` or `..`; no `\` and no
/// control characters.
pub fn check_storage_key(key: &str) -> Result<(), String> {
    if key.is_empty() || key.len() > STORAGE_KEY_BYTES_MAX {
        return Err(format!("`key` must have 1 to {STORAGE_KEY_BYTES_MAX} bytes"));
    }
    if key.contains(|c: char| c.is_control() || c == '\\') {
        return Err("`key` must not contain control characters or `\\`".to_owned());
    }
    match key.split('/').any(|part| matches!(part, "" | "." | "..")) {
        true => Err("`key` must not have an empty part, `.` or `..`".to_owned()),
        false => Ok(()),
    }
}
