//! Models, tools and knowledge bases: what exists beside the host's own facts, and who answers for it.
//!
//! Invariant: a registry is asked only after the call was checked against the run's frozen grant; it never
//! decides who may call.

use crate::grant::Grant;
use crate::host::Shared;
use greenroom_protocol::api::Method;
use greenroom_protocol::{
    AgentAPIError, AgentResources, KnowledgeBaseResource, ModelResource, ToolResource,
};
use greenroom_runtime::ItemSink;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::pin::Pin;

/// The names of everything that exists, for grants to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceNames {
    pub models: Vec<String>,
    pub tools: Vec<String>,
    pub knowledge: Vec<String>,
}

/// One call that was checked: the resource it names is granted to the run.
pub struct ResourceCall<'a> {
    pub method: Method,
    pub workspace_id: &'a str,
    pub run_id: &'a str,
    pub agent: &'a str,
    pub params: &'a RawValue,
    pub sink: &'a ItemSink,
    /// The tools that `tools.search` may find.
    pub granted_tools: &'a BTreeSet<String>,
}

pub type ResourceAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<Box<RawValue>, AgentAPIError>> + Send + 'a>>;

/// What answers `models.*`, `tools.*` and `knowledge.*`.
pub trait Registry: Send + Sync + 'static {
    fn names(&self) -> ResourceNames;
    fn model(&self, name: &str) -> Option<ModelResource>;
    fn tool(&self, name: &str) -> Option<ToolResource>;
    fn knowledge(&self, name: &str) -> Option<KnowledgeBaseResource>;
    fn call<'a>(&'a self, call: ResourceCall<'a>) -> ResourceAnswer<'a>;
}

impl Shared {
    /// The resources of a run, as its runner sees them.
    pub(crate) fn resources(&self, grant: &Grant) -> AgentResources {
        let registry = &self.registry;
        let models = grant.models.names.iter().filter_map(|name| registry.model(name));
        let models = models.map(|model| ModelResource {
            operations: grant.models.operations.iter().copied().collect(),
            ..model
        });
        let tools = grant.tools.names.iter().filter_map(|name| registry.tool(name));
        let tools = tools.map(|tool| ToolResource {
            operations: grant.tools.operations.iter().copied().collect(),
            ..tool
        });
        let bases = grant.knowledge.names.iter().filter_map(|name| registry.knowledge(name));
        let bases = bases.map(|base| KnowledgeBaseResource {
            operations: grant.knowledge.operations.iter().copied().collect(),
            ..base
        });
        let actions = grant
            .actions
            .iter()
            .map(|(action, approval)| (action.clone(), serde_json::json!({"approval": approval})));
        AgentResources {
            // A model that the run may not use in any way is none of its resources.
            models: models.filter(|model| !model.operations.is_empty()).collect(),
            tools: tools.filter(|tool| !tool.operations.is_empty()).collect(),
            knowledge_bases: bases.filter(|base| !base.operations.is_empty()).collect(),
            storage: grant.storage_resource(),
            platform_capabilities: actions.collect(),
            ..AgentResources::default()
        }
    }
}

/// A host without models, tools and knowledge bases.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoResources;

impl Registry for NoResources {
    fn names(&self) -> ResourceNames {
        ResourceNames::default()
    }

    fn model(&self, _name: &str) -> Option<ModelResource> {
        None
    }

    fn tool(&self, _name: &str) -> Option<ToolResource> {
        None
    }

    fn knowledge(&self, _name: &str) -> Option<KnowledgeBaseResource> {
        None
    }

    fn call<'a>(&'a self, _call: ResourceCall<'a>) -> ResourceAnswer<'a> {
        Box::pin(std::future::ready(Err(crate::proxy::not_found("resource"))))
    }
}
