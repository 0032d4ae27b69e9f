//! A tool, independent of its source.
//!
//! Invariant: a name is stable and belongs to one source; the schema is the source's, unchanged.

pub use greenroom_protocol::wire::ToolRisk as Risk;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub source: Source,
    /// The worst effect of a call; that of `project_cli` depends on its method.
    pub risk: Risk,
    pub timeout: Duration,
}

/// The source of a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    ProjectCli,
    Skills,
    /// An MCP server by its name in the configuration.
    Mcp(String),
    /// A runner process that offers tools, by its name in the configuration.
    Plugin(String),
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
