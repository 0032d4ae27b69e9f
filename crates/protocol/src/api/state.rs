//! `state.*`: small JSON values per scope (seed 003 §4.5).
//!
//! Invariant: a key has 1 to 256 bytes and no control characters; versions start at 1, 0 means missing.

use super::fields::{check_optional, lifetime, optional_limit};
use super::{Method, PAGE_LIMIT_MAX, Params};
use crate::payload::{StateScope, check_state_key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `state.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateGetParams {
    pub scope: StateScope,
    pub key: String,
}

impl Params for StateGetParams {
    const METHOD: Method = Method::StateGet;

    fn check(&self) -> Result<(), String> {
        check_state_key(&self.key)
    }
}

/// The result of `state.get`; a missing key has the value null and the version 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateValue {
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub version: i64,
}

/// The parameters of `state.set`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateSetParams {
    pub scope: StateScope,
    pub key: String,
    /// Any JSON, null included; at most 256 KiB as text.
    pub value: Value,
    /// Write only if the key still has this version; 0: only if the key is missing.
    #[serde(
        default,
        deserialize_with = "crate::number::count",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub if_version: Option<i64>,
    /// Expires after this many seconds, at least 1.
    #[serde(default, deserialize_with = "lifetime", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub ttl_s: Option<i64>,
}

impl Params for StateSetParams {
    const METHOD: Method = Method::StateSet;

    fn check(&self) -> Result<(), String> {
        check_state_key(&self.key)
    }
}

/// The result of `state.set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateWritten {
    pub version: i64,
}

/// The parameters of `state.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateDeleteParams {
    pub scope: StateScope,
    pub key: String,
    /// Delete only if the key still has this version.
    #[serde(
        default,
        deserialize_with = "crate::number::count",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub if_version: Option<i64>,
}

impl Params for StateDeleteParams {
    const METHOD: Method = Method::StateDelete;

    fn check(&self) -> Result<(), String> {
        check_state_key(&self.key)
    }
}

/// The result of `state.delete` and `storage.delete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// False if the key was missing.
    pub deleted: bool,
}

/// The parameters of `state.list`, ordered by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateListParams {
    pub scope: StateScope,
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

impl Params for StateListParams {
    const METHOD: Method = Method::StateList;

    fn check(&self) -> Result<(), String> {
        check_optional("prefix", self.prefix.as_deref())
    }
}

/// The result of `state.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatePage {
    pub items: Vec<StateEntry>,
    #[serde(default)]
    pub next_cursor: Option<String>,
    #[serde(default)]
    pub has_more: bool,
}

/// One value of a scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateEntry {
    pub key: String,
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub version: i64,
}
