//! Write a Greenroom runner in Rust.
//!
//! ```no_run
//! use greenroom_sdk::{Manifest, Plugin, RunCtx, RunFailure, Runner};
//!
//! struct Hello;
//!
//! impl Runner for Hello {
//!     fn manifest(&self) -> Manifest {
//!         Manifest::new("default").label("Hello")
//!     }
//!
//!     async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
//!         ctx.delta("Hello, ").await?;
//!         ctx.delta(ctx.text()).await?;
//!         ctx.message(format!("Hello, {}", ctx.text())).await
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     greenroom_sdk::serve(Plugin::new("you", "hello").runner(Hello))
//! }
//! ```
//!
//! Invariant: this crate speaks the public wire and knows nothing else of the host; whatever a run does,
//! the other runs of the process go on.

mod calls;
mod connection;
mod ctx;
mod environment;
mod failure;
mod lines;
mod manifest;
mod message;
mod outbox;
mod plugin;
mod result;
mod serve;
mod state;
mod stdio;
pub mod template;
pub mod testing;
mod unchecked;
#[cfg(feature = "websocket")]
mod websocket;

pub use ctx::RunCtx;
pub use failure::RunFailure;
pub use greenroom_protocol as protocol;
pub use greenroom_protocol::manifest::{
    ArtifactPermission, EventPermission, HistoryPermission, KnowledgePermission, ModelPermission,
    StorageArea, ToolPermission,
};
pub use greenroom_protocol::payload::{ArtifactCreated, Message, StateScope};
pub use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
pub use manifest::{ConfigItem, Manifest, en_zh};
pub use plugin::{InvalidPlugin, Plugin, Runner};
pub use result::RunResult;
pub use serde_json::{Value, json};
pub use serve::{ServeError, Transport, serve, serve_on};
pub use state::{SetOptions, StateApi, StateEntry, StateValue};
pub use tokio_util::sync::CancellationToken;
pub use unchecked::Unchecked;
