//! The method families of the host's API.
//!
//! Invariant: a family only borrows its run.

use crate::RunCtx;
use crate::artifacts::ArtifactsApi;
use crate::events::EventsApi;
use crate::harness::HarnessApi;
use crate::history::HistoryApi;
use crate::knowledge::KnowledgeApi;
use crate::models::ModelsApi;
use crate::platform::PlatformApi;
use crate::state::StateApi;
use crate::steering::SteeringApi;
use crate::storage::StorageApi;
use crate::tools::ToolsApi;

/// The host's API. Each call ends at the run's deadline, and is cancelled at the host when its future is
/// dropped.
impl RunCtx {
    /// The transcript of the conversation, by page or by search.
    pub fn history(&self) -> HistoryApi<'_> {
        HistoryApi(self)
    }

    /// The event log.
    pub fn events(&self) -> EventsApi<'_> {
        EventsApi(self)
    }

    /// Files and other bytes by reference.
    pub fn artifacts(&self) -> ArtifactsApi<'_> {
        ArtifactsApi(self)
    }

    /// Small JSON values stored by the host: `ctx.state().get(StateScope::Conversation, "topic")`.
    pub fn state(&self) -> StateApi<'_> {
        StateApi(self)
    }

    /// Blobs stored by the host.
    pub fn storage(&self) -> StorageApi<'_> {
        StorageApi(self)
    }

    /// Actions on the platform that the event came from.
    pub fn platform(&self) -> PlatformApi<'_> {
        PlatformApi(self)
    }

    /// Messages that arrive during the run.
    pub fn steering(&self) -> SteeringApi<'_> {
        SteeringApi(self)
    }

    /// The models in `ctx.resources.models`.
    pub fn models(&self) -> ModelsApi<'_> {
        ModelsApi(self)
    }

    /// The tools in `ctx.resources.tools`.
    pub fn tools(&self) -> ToolsApi<'_> {
        ToolsApi(self)
    }

    /// What an external harness may do, for runners that drive one.
    pub fn harness(&self) -> HarnessApi<'_> {
        HarnessApi(self)
    }

    /// The knowledge bases in `ctx.resources.knowledge_bases`.
    pub fn knowledge(&self) -> KnowledgeApi<'_> {
        KnowledgeApi(self)
    }
}
