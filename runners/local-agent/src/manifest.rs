//! What the runner says about itself, and the form of its config in English and Chinese.

use greenroom_sdk::{
    ArtifactPermission, ConfigItem, HistoryPermission, Manifest, ModelPermission, StorageArea,
    ToolPermission, en_zh,
};

pub(crate) fn manifest() -> Manifest {
    Manifest::new("default")
        .label(en_zh("Local agent", "本地智能体"))
        .description(en_zh(
            "Answers with a model of the host, and uses the tools it was given",
            "用宿主提供的模型回答,并使用被授予的工具",
        ))
        .models(&[ModelPermission::Invoke, ModelPermission::Stream])
        .tools(&[ToolPermission::Detail, ToolPermission::Call])
        .history(&[HistoryPermission::Page, HistoryPermission::Search])
        .artifacts(&[ArtifactPermission::Metadata, ArtifactPermission::Read])
        .storage(&[StorageArea::Plugin])
        .config(
            ConfigItem::text("prompt", en_zh("System prompt", "系统提示词"))
                .description(en_zh("What the agent is told first", "首先告诉智能体的内容"))
                .default(crate::config::PROMPT),
        )
        .config(
            ConfigItem::text("model", en_zh("Model", "模型"))
                .description(en_zh(
                    "The first granted one when empty",
                    "留空则用第一个被授予的模型",
                ))
                .default(""),
        )
        .config(
            ConfigItem::integer("max_tool_rounds", en_zh("Tool rounds", "工具轮数"))
                .description(en_zh("Rounds of tool calls per answer", "每次回答最多的工具调用轮数"))
                .default(crate::config::TOOL_ROUNDS),
        )
        .config(
            ConfigItem::integer("history_items", en_zh("History", "历史条数"))
                .description(en_zh(
                    "Items of the conversation that the model sees",
                    "模型可见的会话条数",
                ))
                .default(crate::config::HISTORY_ITEMS),
        )
}
