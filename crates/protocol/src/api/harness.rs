//! `harness.permission`: an external harness asks before it does something with its own tools.
//!
//! Invariant: the host decides, by the frozen grant of the run. The kind and the details are what the harness says of
//! itself: they are shown to who decides, and prove nothing.

use super::fields::or_default;
use super::{Method, Params};
use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest title and longest path.
pub const HARNESS_TEXT_BYTES_MAX: usize = 4096;
/// Most paths and most file changes of one question.
pub const HARNESS_PARTS_MAX: usize = 100;

/// What a tool of a harness does. The names are those of the Agent Client Protocol.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HarnessToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    #[default]
    Other,
}

impl HarnessToolKind {
    pub const ALL: [HarnessToolKind; 10] = [
        HarnessToolKind::Read,
        HarnessToolKind::Edit,
        HarnessToolKind::Delete,
        HarnessToolKind::Move,
        HarnessToolKind::Search,
        HarnessToolKind::Execute,
        HarnessToolKind::Think,
        HarnessToolKind::Fetch,
        HarnessToolKind::SwitchMode,
        HarnessToolKind::Other,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            HarnessToolKind::Read => "read",
            HarnessToolKind::Edit => "edit",
            HarnessToolKind::Delete => "delete",
            HarnessToolKind::Move => "move",
            HarnessToolKind::Search => "search",
            HarnessToolKind::Execute => "execute",
            HarnessToolKind::Think => "think",
            HarnessToolKind::Fetch => "fetch",
            HarnessToolKind::SwitchMode => "switch_mode",
            HarnessToolKind::Other => "other",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The parameters of `harness.permission`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarnessPermissionParams {
    pub kind: HarnessToolKind,
    /// One line for a person.
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The command line that is to be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The files that are touched.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<String>>")]
    pub paths: Vec<String>,
    /// How files would change.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<HarnessFileChange>>")]
    pub changes: Vec<HarnessFileChange>,
    /// What the harness says beyond that.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub input: Object,
}

/// One file before and after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HarnessFileChange {
    pub path: String,
    /// Missing for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    pub new_text: String,
}

impl Params for HarnessPermissionParams {
    const METHOD: Method = Method::HarnessPermission;

    fn check(&self) -> Result<(), String> {
        if !(1..=HARNESS_TEXT_BYTES_MAX).contains(&self.title.len()) {
            return Err(format!("`title` must have 1 to {HARNESS_TEXT_BYTES_MAX} bytes"));
        }
        if self.paths.len() > HARNESS_PARTS_MAX || self.changes.len() > HARNESS_PARTS_MAX {
            return Err(format!(
                "`paths` and `changes` have at most {HARNESS_PARTS_MAX} items each"
            ));
        }
        let changed = self.changes.iter().map(|change| &change.path);
        match self.paths.iter().chain(changed).all(|path| path.len() <= HARNESS_TEXT_BYTES_MAX) {
            true => Ok(()),
            false => Err(format!("a path has at most {HARNESS_TEXT_BYTES_MAX} bytes")),
        }
    }
}

/// The result of `harness.permission`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HarnessPermission {
    pub decision: HarnessDecision,
    pub reason: HarnessReason,
    /// The approval that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HarnessDecision {
    Allow,
    Deny,
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HarnessReason {
    /// The grant, without a question.
    Grant,
    /// A person.
    Answered,
    /// Nobody answered in time.
    Expired,
}
