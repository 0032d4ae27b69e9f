//! Runner ids: `plugin:author/name/runner`, stable and opaque to everything but the host.
//!
//! Invariant: a `RunnerId` is well formed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

pub const RUNNER_ID_BYTES_MAX: usize = 256;

/// The rule of `RunnerId::parse` for JSON Schema.
const PATTERN: &str = concat!(
    r"^plugin:(?!\.{1,2}/)[A-Za-z0-9_.-]+",
    r"/(?!\.{1,2}/)[A-Za-z0-9_.-]+",
    r"/(?!\.{1,2}$)[A-Za-z0-9_.-]+$"
);

#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = PATTERN, "maxLength" = RUNNER_ID_BYTES_MAX))]
pub struct RunnerId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a runner id of the form `plugin:author/name/runner`")]
pub struct InvalidRunnerId(String);

impl RunnerId {
    pub fn parse(text: &str) -> Result<Self, InvalidRunnerId> {
        let parts: Vec<&str> = match text.strip_prefix("plugin:") {
            Some(rest) if text.len() <= RUNNER_ID_BYTES_MAX => rest.split('/').collect(),
            _ => Vec::new(),
        };
        if parts.len() == 3 && parts.iter().all(|part| is_name(part)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidRunnerId(text.chars().take(80).collect()))
        }
    }

    pub fn new(author: &str, name: &str, runner: &str) -> Result<Self, InvalidRunnerId> {
        Self::parse(&format!("plugin:{author}/{name}/{runner}"))
    }

    /// The runner's plugin, as `author/name`.
    pub fn plugin(&self) -> &str {
        let rest = &self.0["plugin:".len()..];
        &rest[..rest.rfind('/').unwrap_or(rest.len())]
    }

    /// The runner's name inside its plugin.
    pub fn runner(&self) -> &str {
        &self.0[self.0.rfind('/').map_or(0, |at| at + 1)..]
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_name(part: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !part.is_empty() && part != "." && part != ".." && part.chars().all(allowed)
}

impl TryFrom<String> for RunnerId {
    type Error = InvalidRunnerId;
    fn try_from(text: String) -> Result<Self, InvalidRunnerId> {
        Self::parse(&text)
    }
}

impl From<RunnerId> for String {
    fn from(id: RunnerId) -> String {
        id.0
    }
}

impl fmt::Display for RunnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
