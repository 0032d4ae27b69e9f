//! What a tool is, wherever it comes from.
//!
//! Invariant: a name is stable and belongs to one source; the schema is the source's own, unchanged.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub source: Source,
    /// What a call does at worst; that of `project_cli` depends on its method.
    pub risk: Risk,
    pub timeout: Duration,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    ProjectCli,
    Skills,
    /// An MCP server by its name in the configuration.
    Mcp(String),
    /// A runner process that offers tools, by its name in the configuration.
    Plugin(String),
}

/// How much harm a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It changes nothing.
    Read,
    Write,
    /// What it changes cannot be brought back.
    Destructive,
    /// It reaches people or systems outside.
    External,
}

impl Risk {
    pub const ALL: [Risk; 4] = [Risk::Read, Risk::Write, Risk::Destructive, Risk::External];

    pub fn as_str(self) -> &'static str {
        match self {
            Risk::Read => "read",
            Risk::Write => "write",
            Risk::Destructive => "destructive",
            Risk::External => "external",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|risk| risk.as_str() == text)
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::ProjectCli => f.write_str("project_cli"),
            Source::Skills => f.write_str("skills"),
            Source::Mcp(name) => write!(f, "tools.{name}"),
            Source::Plugin(name) => write!(f, "runners.{name}"),
        }
    }
}
