//! What a run was granted, in LangBot's words.
//!
//! Invariant: nothing is listed that is not granted, save the answer to the own event; nothing granted is left
//! out.

use crate::wires::langbot::replies;
use greenroom_protocol::manifest::ModelPermission;
use greenroom_protocol::{
    AgentResources, FileResource, KnowledgeBaseResource, ModelResource, Object, StorageResource,
    ToolResource,
};
use serde::Serialize;
use std::borrow::Cow;

#[derive(Serialize)]
pub(super) struct Resources<'a> {
    models: Vec<Model<'a>>,
    tools: Vec<Tool<'a>>,
    knowledge_bases: Vec<KnowledgeBase<'a>>,
    files: &'a [FileResource],
    storage: Storage,
    platform_capabilities: &'a Object,
    #[serde(flatten)]
    extra: &'a Object,
}

#[derive(Serialize)]
struct Model<'a> {
    model_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_type: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: &'a Option<String>,
    operations: Vec<&'static str>,
    metadata: &'a Object,
    #[serde(flatten)]
    extra: &'a Object,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(flatten)]
    told: Cow<'a, ToolResource>,
    tool_type: Option<&'a str>,
}

#[derive(Serialize)]
struct KnowledgeBase<'a> {
    #[serde(flatten)]
    told: &'a KnowledgeBaseResource,
    kb_name: &'a Option<String>,
}

#[derive(Serialize)]
struct Storage {
    #[serde(flatten)]
    told: StorageResource,
    plugin_storage: bool,
    workspace_storage: bool,
}

impl<'a> Resources<'a> {
    pub(super) fn new(resources: &'a AgentResources, replies: bool) -> Self {
        let AgentResources {
            models,
            tools,
            knowledge_bases,
            files,
            storage,
            platform_capabilities,
            extra,
        } = resources;
        let base = |told: &'a KnowledgeBaseResource| KnowledgeBase { told, kb_name: &told.name };
        Self {
            models: models.iter().map(Model::new).collect(),
            tools: tools.iter().map(Tool::granted).chain(replies.then(Tool::reply)).collect(),
            knowledge_bases: knowledge_bases.iter().map(base).collect(),
            files,
            storage: Storage {
                told: *storage,
                plugin_storage: storage.plugin,
                workspace_storage: storage.workspace,
            },
            platform_capabilities,
            extra,
        }
    }
}

impl<'a> Tool<'a> {
    fn granted(told: &'a ToolResource) -> Self {
        Self { told: Cow::Borrowed(told), tool_type: told.source.as_deref() }
    }

    /// Every run may answer its event.
    fn reply() -> Self {
        Self { told: Cow::Owned(replies::tool()), tool_type: Some("platform") }
    }
}

impl<'a> Model<'a> {
    /// Operations are a closed set there: vectors come with `invoke`, and so does counting.
    fn new(model: &'a ModelResource) -> Self {
        let ModelResource { model_id, model_type, provider, operations, metadata, extra } = model;
        let has = |operation| operations.contains(&operation);
        let invoke = has(ModelPermission::Invoke);
        let known = [
            ("invoke", invoke || has(ModelPermission::Embed)),
            ("stream", has(ModelPermission::Stream)),
            ("rerank", has(ModelPermission::Rerank)),
            ("count_tokens", invoke),
        ];
        let granted = known.into_iter().filter(|(_, granted)| *granted).map(|(name, _)| name);
        let operations = granted.collect();
        Self { model_id, model_type, provider, operations, metadata, extra }
    }
}
