//! The resources of a run in LangBot's form.
//!
//! Invariant: lists exactly what is granted, and the tools of the event.

use crate::wires::langbot::event_tools::EventParties;
use crate::wires::langbot::replies;
use greenroom_protocol::manifest::ModelPermission;
use greenroom_protocol::{
    AgentResources, AgentRunContext, FileResource, KnowledgeBaseResource, ModelResource, Object,
    StorageResource, ToolResource,
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
    inner: Cow<'a, ToolResource>,
    tool_type: Option<&'a str>,
}

#[derive(Serialize)]
struct KnowledgeBase<'a> {
    #[serde(flatten)]
    inner: &'a KnowledgeBaseResource,
    kb_name: &'a Option<String>,
}

#[derive(Serialize)]
struct Storage {
    #[serde(flatten)]
    inner: StorageResource,
    plugin_storage: bool,
    workspace_storage: bool,
}

impl<'a> Resources<'a> {
    pub(super) fn new(
        resources: &'a AgentResources,
        context: &AgentRunContext,
        replies: bool,
    ) -> Self {
        let AgentResources {
            models,
            tools,
            knowledge_bases,
            files,
            storage,
            platform_capabilities,
            extra,
        } = resources;
        let own = replies.then(|| {
            let parties = EventParties::of(context).tools();
            std::iter::once(replies::tool()).chain(parties).map(Tool::own)
        });
        let own = own.into_iter().flatten();
        let base = |inner: &'a KnowledgeBaseResource| KnowledgeBase { inner, kb_name: &inner.name };
        Self {
            models: models.iter().map(Model::new).collect(),
            tools: tools.iter().map(Tool::granted).chain(own).collect(),
            knowledge_bases: knowledge_bases.iter().map(base).collect(),
            files,
            storage: Storage {
                inner: *storage,
                plugin_storage: storage.plugin,
                workspace_storage: storage.workspace,
            },
            platform_capabilities,
            extra,
        }
    }
}

impl<'a> Tool<'a> {
    fn granted(inner: &'a ToolResource) -> Self {
        Self { inner: Cow::Borrowed(inner), tool_type: inner.source.as_deref() }
    }

    /// Every run may reply to its event, and ask about its parties.
    fn own(tool: ToolResource) -> Self {
        Self { inner: Cow::Owned(tool), tool_type: Some("platform") }
    }
}

impl<'a> Model<'a> {
    /// LangBot's operations are a closed set: embedding comes with `invoke`, and so does counting.
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
