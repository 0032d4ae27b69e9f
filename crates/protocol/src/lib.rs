//! Greenroom's contract: every structure that crosses a process or network boundary.
//!
//! Invariant: types and pure checks only, no IO. A change here is a change of contract.

pub mod api;
pub mod content;
pub mod context;
pub mod error;
pub mod event;
pub mod form;
pub mod interaction;
pub mod manifest;
mod nesting;
mod number;
mod object;
pub mod payload;
pub mod records;
pub mod resources;
pub mod result;
pub mod run;
pub mod runner_id;
pub mod schema;
pub mod transcript;
pub mod version;
pub mod wire;

pub use api::Method;
pub use content::{
    ArtifactRef, ContentElement, MessageContent, RawEventRef, Role, StaticContextRef,
};
pub use context::{
    ActorContext, AdapterContext, AgentEventContext, AgentInput, AgentRunContext, AgentRunRequest,
    AgentRunState, AgentRuntimeContext, AgentTrigger, ContextAPICapabilities, ContextAccess,
    ConversationContext, DeliveryContext, InlineContextPolicy, InlineMode, StateLeftOut,
    SubjectContext, TriggerSource,
};
pub use error::{AgentAPIError, ErrorCode};
pub use event::{EventAnswer, EventDelivery, InvalidEvent, NewEvent};
pub use form::{DynamicFormItemSchema, FormOption, I18nObject};
pub use interaction::{INTERACTION_SUBMITTED, InteractionRequest, InteractionSubmission};
pub use manifest::{
    AgentRunnerCapabilities, AgentRunnerContextPolicy, AgentRunnerManifest, AgentRunnerPermissions,
    InvalidManifest, ListAgentRunnersResponse, ManifestWarning,
};
pub use nesting::{NESTING_MAX, depth as nesting_depth};
pub use payload::{DeltaRef, Payload};
pub use resources::{
    AgentResources, FileResource, KnowledgeBaseResource, ModelResource, StorageResource,
    ToolResource,
};
pub use result::{AgentRunResult, RawResult};
pub use run::{ModelCalls, OnInterrupt, Queue, Replaces, RunError, RunStatus, RunView};
pub use runner_id::RunnerId;
pub use transcript::{TranscriptItem, TranscriptRole};
pub use version::{PROTOCOL_VERSION, is_compatible};

/// A JSON object, for the open parts of the contract.
pub type Object = serde_json::Map<String, serde_json::Value>;

#[doc(hidden)]
pub fn yes() -> bool {
    true
}
