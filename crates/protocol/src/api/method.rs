//! The methods of the API by name.
//!
//! Invariant: this list is complete; a name is written once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! methods {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// One method of the host's API.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] #[serde(rename = $name)] $variant),+
        }

        impl Method {
            /// Every method, in the order of the contract.
            pub const ALL: &'static [Method] = &[$(Method::$variant),+];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Method::$variant => $name),+ }
            }

            /// The method with this name.
            pub fn parse(name: &str) -> Option<Method> {
                match name { $($name => Some(Method::$variant),)+ _ => None }
            }
        }
    };
}

methods! {
    ModelsInvoke = "models.invoke",
    ModelsStream = "models.stream",
    ModelsRerank = "models.rerank",
    ModelsEmbed = "models.embed",
    ModelsCountTokens = "models.count_tokens",
    ToolsGetDetail = "tools.get_detail",
    ToolsSearch = "tools.search",
    ToolsCall = "tools.call",
    KnowledgeList = "knowledge.list",
    KnowledgeRetrieve = "knowledge.retrieve",
    HistoryPage = "history.page",
    HistorySearch = "history.search",
    EventsGet = "events.get",
    EventsPage = "events.page",
    ArtifactsMetadata = "artifacts.metadata",
    ArtifactsReadRange = "artifacts.read_range",
    ArtifactsOpenStream = "artifacts.open_stream",
    ArtifactsCreate = "artifacts.create",
    ArtifactsBegin = "artifacts.begin",
    ArtifactsAppend = "artifacts.append",
    ArtifactsCommit = "artifacts.commit",
    StateGet = "state.get",
    StateSet = "state.set",
    StateDelete = "state.delete",
    StateList = "state.list",
    StorageGet = "storage.get",
    StorageSet = "storage.set",
    StorageDelete = "storage.delete",
    StorageList = "storage.list",
    PlatformRequestAction = "platform.request_action",
    SteeringPull = "steering.pull",
    HarnessPermission = "harness.permission",
}

impl Method {
    /// Whether it sends `stream.item` notifications before its response.
    pub fn is_streaming(self) -> bool {
        matches!(self, Method::ModelsStream | Method::ArtifactsOpenStream)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
