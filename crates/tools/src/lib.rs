//! Tools behind one gate: what exists, what a call gives, and how it is shown.
//!
//! Invariant: nothing here decides who may call; every call gets exactly one output, whatever happens to it.

mod output;
pub mod project_cli;
pub mod schema;
mod tool;

pub use output::{Attachment, Status, ToolAgentOutput, ToolFailure, ToolOutput};
pub use tool::{Risk, Source, Tool};
