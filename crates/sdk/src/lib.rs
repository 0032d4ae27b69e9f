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
//! Invariant: this crate uses only the public wire; a run cannot affect the other runs of the process.

mod apis;
mod artifacts;
mod bytes;
mod calls;
mod connection;
mod ctx;
mod deadline;
mod environment;
mod events;
mod failure;
mod gateway;
mod harness;
mod history;
mod inbox;
mod items;
mod knowledge;
mod lines;
mod local;
mod manifest;
mod message;
mod models;
mod outbox;
mod platform;
mod plugin;
mod result;
mod serve;
mod state;
mod stdio;
mod steering;
mod storage;
pub mod template;
pub mod testing;
mod tool;
mod tools;
mod unchecked;
mod upload;
#[cfg(feature = "websocket")]
mod websocket;

pub use artifacts::{ArtifactBytes, ArtifactOptions, ArtifactStream, ArtifactsApi};
pub use ctx::RunCtx;
pub use events::EventsApi;
pub use failure::RunFailure;
pub use gateway::Gateway;
pub use greenroom_protocol as protocol;
pub use greenroom_protocol::api::artifacts::ArtifactView;
pub use greenroom_protocol::api::events::{EventPage, EventPageParams, EventView};
pub use greenroom_protocol::api::harness::{
    HarnessDecision, HarnessFileChange, HarnessPermission, HarnessPermissionParams, HarnessReason,
    HarnessToolKind,
};
pub use greenroom_protocol::api::history::{
    Direction, HistoryFilters, HistoryPage, HistoryPageParams, HistorySearchParams, SearchHit,
};
pub use greenroom_protocol::api::knowledge::{KnowledgePassage, KnowledgeRetrieveParams};
pub use greenroom_protocol::api::models::{
    CountTokensParams, ModelInvokeParams, ModelMessage, ModelRerankParams, ModelStreamItem,
    ModelToolCall, ProviderResponse, RankedDocument,
};
pub use greenroom_protocol::api::platform::{ActionOutcome, ActionStatus};
pub use greenroom_protocol::api::state::{
    StateDeleteParams, StateEntry, StateListParams, StatePage, StateValue,
};
pub use greenroom_protocol::api::steering::{SteeringItem, SteeringPullParams};
pub use greenroom_protocol::api::storage::{StorageEntry, StorageListParams, StoragePage};
pub use greenroom_protocol::api::tools::{
    ToolAuthority, ToolCallParams, ToolCallResult, ToolSearchParams,
};
pub use greenroom_protocol::api::{Method, Moment};
pub use greenroom_protocol::manifest::{
    ArtifactPermission, EventPermission, FilePermission, HarnessPermissionKind, HistoryPermission,
    KnowledgePermission, ModelPermission, StorageArea, ToolPermission,
};
pub use greenroom_protocol::payload::{ArtifactCreated, Message, StateScope};
pub use greenroom_protocol::wire::{CallToolResult, ToolRisk};
pub use greenroom_protocol::{
    AgentAPIError, ErrorCode, KnowledgeBaseResource, Object, Role, ToolResource, TranscriptItem,
    TranscriptRole,
};
pub use harness::HarnessApi;
pub use history::HistoryApi;
pub use knowledge::KnowledgeApi;
pub use manifest::{ConfigItem, Manifest, en_zh};
pub use models::{ModelStream, ModelsApi};
pub use platform::PlatformApi;
pub use plugin::{InvalidPlugin, Plugin, Runner};
pub use result::RunResult;
pub use schemars;
pub use serde;
pub use serde_json::{Value, json};
pub use serve::{ServeError, Transport, serve, serve_on};
pub use state::{SetOptions, StateApi};
pub use steering::SteeringApi;
pub use storage::StorageApi;
pub use tokio_util::sync::CancellationToken;
pub use tool::{IntoToolOutput, NoInput, Tool, ToolCtx, ToolError, ToolOutput};
pub use tools::ToolsApi;
pub use unchecked::Unchecked;
pub use upload::Upload;

/// The examples of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/write-a-runner.md")]
struct Guide;
