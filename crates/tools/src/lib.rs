//! Tools: which exist, what a call returns, and how the result is shown.
//!
//! Invariant: nothing here decides who may call; every call has exactly one output, whatever happens.

mod child;
pub mod manifest;
mod mcp;
mod output;
mod plugins;
pub mod post;
pub mod project_cli;
pub mod schema;
pub mod search;
pub mod skills;
pub mod subject;
mod tool;
mod toolbox;
pub mod ui;

pub use child::{MethodCall, run_method};
pub use mcp::{
    Answer, Ask, Asks, LOOPBACK_PATH, McpCall, McpHealth, McpLimits, McpServer, McpSettings,
    McpStatus, McpTransport, OAuthError, OAuthGrant, OAuthSettings, OnProgress, OnQuestion,
    OnSecrets, Progress, Question, Redirected, SignInRequest, SignInStatus, is_loopback,
};
pub use output::{Attachment, Status, ToolAgentOutput, ToolFailure, ToolOutput};
pub use tool::{Risk, Source, Tool};
pub use toolbox::{
    Admitted, CliProgram, Entry, Invocation, ModuleHealth, ToolSettings, Toolbox, ToolsError, check,
};
