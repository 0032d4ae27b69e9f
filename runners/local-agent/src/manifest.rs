//! The manifest: capabilities and permissions.
//!
//! Invariant: it requests everything that it can use; an agent's grant decides what it gets, and the loop works without
//! the rest.

mod form;

use greenroom_sdk::{
    ArtifactPermission, EventPermission, HistoryPermission, KnowledgePermission, Manifest,
    ModelPermission, StorageArea, ToolPermission, en_zh,
};

pub(crate) fn manifest() -> Manifest {
    let manifest = Manifest::new("default")
        .label(en_zh("Local agent", "本地智能体"))
        .description(en_zh(
            "Answers with a model of the host, and uses the tools and the knowledge it was given",
            "用宿主提供的模型回答，并使用被授予的工具和知识",
        ))
        .capabilities(|can| {
            can.multimodal_input = true;
            can.steering = true;
        })
        .context(|context| context.supports_history_search = true)
        .models(&[ModelPermission::Invoke, ModelPermission::Stream, ModelPermission::Rerank])
        .tools(&[ToolPermission::Detail, ToolPermission::Call])
        .knowledge_bases(&[KnowledgePermission::List, KnowledgePermission::Retrieve])
        .history(&[HistoryPermission::Page, HistoryPermission::Search])
        .events(&[EventPermission::Get])
        .artifacts(&[
            ArtifactPermission::Metadata,
            ArtifactPermission::Read,
            ArtifactPermission::Create,
        ])
        // Any area opens state, where the checkpoint and the choice of a model are.
        .storage(&[StorageArea::Plugin]);
    form::items().into_iter().fold(manifest, Manifest::config)
}
