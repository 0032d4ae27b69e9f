//! A runner's manifest, with defaults that suit most runners.
//!
//! Invariant: the id is never written by hand; the plugin composes it from author, name and runner.

use greenroom_protocol::manifest::{
    ArtifactPermission, EventPermission, FilePermission, HarnessPermissionKind, HistoryPermission,
    KnowledgePermission, ModelPermission, StaticRefs, StorageArea, ToolPermission,
};
use greenroom_protocol::{
    AgentRunnerCapabilities, AgentRunnerContextPolicy, AgentRunnerManifest, AgentRunnerPermissions,
    DynamicFormItemSchema, FormOption, I18nObject, Object, PROTOCOL_VERSION, RunnerId,
};
use serde_json::Value;

/// A runner's manifest. `Manifest::new("default")` is complete; the other methods refine it.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub(crate) name: String,
    label: I18nObject,
    description: Option<I18nObject>,
    capabilities: AgentRunnerCapabilities,
    permissions: AgentRunnerPermissions,
    context: AgentRunnerContextPolicy,
    config_schema: Vec<DynamicFormItemSchema>,
    metadata: Object,
}

impl Manifest {
    /// A streaming, interruptible runner without permissions.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            label: I18nObject::Plain(name.clone()),
            name,
            description: None,
            capabilities: AgentRunnerCapabilities {
                streaming: true,
                interrupt: true,
                ..AgentRunnerCapabilities::default()
            },
            permissions: AgentRunnerPermissions::default(),
            context: AgentRunnerContextPolicy::default(),
            config_schema: Vec::new(),
            metadata: Object::new(),
        }
    }

    pub fn label(mut self, label: impl Into<I18nObject>) -> Self {
        self.label = label.into();
        self
    }

    pub fn description(mut self, description: impl Into<I18nObject>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Changes capabilities in place: `.capabilities(|c| c.tool_calling = true)`.
    pub fn capabilities(mut self, change: impl FnOnce(&mut AgentRunnerCapabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    pub fn context(mut self, change: impl FnOnce(&mut AgentRunnerContextPolicy)) -> Self {
        change(&mut self.context);
        self
    }

    /// Gets the tools of a run by reference: without their schemas, which `ctx.tools().get_detail` returns, and with
    /// a hash that changes with them.
    pub fn tools_by_reference(mut self) -> Self {
        self.context.wants_static_context_refs = StaticRefs::Wanted;
        self
    }

    /// Files of the agent's configuration, listed in `ctx.resources.files`.
    pub fn files(mut self, permissions: &[FilePermission]) -> Self {
        self.permissions.files = permissions.to_vec();
        self
    }

    pub fn models(mut self, permissions: &[ModelPermission]) -> Self {
        self.permissions.models = permissions.to_vec();
        self
    }

    pub fn tools(mut self, permissions: &[ToolPermission]) -> Self {
        self.permissions.tools = permissions.to_vec();
        self.capabilities.tool_calling = !permissions.is_empty();
        self
    }

    pub fn knowledge_bases(mut self, permissions: &[KnowledgePermission]) -> Self {
        self.permissions.knowledge_bases = permissions.to_vec();
        self.capabilities.knowledge_retrieval = !permissions.is_empty();
        self
    }

    pub fn history(mut self, permissions: &[HistoryPermission]) -> Self {
        self.permissions.history = permissions.to_vec();
        self
    }

    pub fn events(mut self, permissions: &[EventPermission]) -> Self {
        self.permissions.events = permissions.to_vec();
        self
    }

    pub fn artifacts(mut self, permissions: &[ArtifactPermission]) -> Self {
        self.permissions.artifacts = permissions.to_vec();
        self
    }

    /// Storage areas; any of them also allows state (seed 000 §4.3).
    pub fn storage(mut self, areas: &[StorageArea]) -> Self {
        self.permissions.storage = areas.to_vec();
        self
    }

    /// Platform actions that the runner may request, such as `message.send`.
    pub fn platform_api(mut self, actions: &[&str]) -> Self {
        self.permissions.platform_api = actions.iter().map(|&action| action.to_owned()).collect();
        self.capabilities.platform_api = !actions.is_empty();
        self
    }

    /// Requests `harness.permission`, for a runner that drives an external harness.
    pub fn harness(mut self, operations: &[HarnessPermissionKind]) -> Self {
        self.permissions.harness = operations.to_vec();
        self
    }

    /// Adds one item to the configuration form.
    pub fn config(mut self, item: ConfigItem) -> Self {
        self.config_schema.push(item.0);
        self
    }

    pub fn metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn with_id(self, id: RunnerId) -> AgentRunnerManifest {
        AgentRunnerManifest {
            id,
            name: self.name,
            label: self.label,
            description: self.description,
            protocol_version: PROTOCOL_VERSION.to_owned(),
            capabilities: self.capabilities,
            permissions: self.permissions,
            context: self.context,
            config_schema: self.config_schema,
            metadata: self.metadata,
            extra: Object::new(),
        }
    }
}

/// One item of a runner's configuration form, a field of an agent's `config`.
#[derive(Debug, Clone)]
pub struct ConfigItem(DynamicFormItemSchema);

impl ConfigItem {
    pub fn text(name: &str, label: impl Into<I18nObject>) -> Self {
        Self::new(name, label, "string")
    }

    pub fn integer(name: &str, label: impl Into<I18nObject>) -> Self {
        Self::new(name, label, "integer")
    }

    pub fn boolean(name: &str, label: impl Into<I18nObject>) -> Self {
        Self::new(name, label, "boolean")
    }

    /// A choice; add the choices with [`ConfigItem::option`].
    pub fn select(name: &str, label: impl Into<I18nObject>) -> Self {
        Self::new(name, label, "select")
    }

    /// An item of any other type, such as `model-selector`.
    pub fn new(name: &str, label: impl Into<I18nObject>, kind: &str) -> Self {
        Self(DynamicFormItemSchema {
            name: name.to_owned(),
            label: label.into(),
            description: None,
            kind: kind.to_owned(),
            required: false,
            default: Value::Null,
            options: Vec::new(),
            extra: Object::new(),
        })
    }

    pub fn description(mut self, description: impl Into<I18nObject>) -> Self {
        self.0.description = Some(description.into());
        self
    }

    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.0.default = value.into();
        self
    }

    pub fn required(mut self) -> Self {
        self.0.required = true;
        self
    }

    /// The minimum of a number.
    pub fn minimum(mut self, value: impl Into<Value>) -> Self {
        self.0.extra.insert("minimum".to_owned(), value.into());
        self
    }

    /// The maximum of a number.
    pub fn maximum(mut self, value: impl Into<Value>) -> Self {
        self.0.extra.insert("maximum".to_owned(), value.into());
        self
    }

    pub fn option(mut self, name: &str, label: impl Into<I18nObject>) -> Self {
        let extra = Object::new();
        self.0.options.push(FormOption { name: name.to_owned(), label: label.into(), extra });
        self
    }
}

/// A text in English and simplified Chinese.
pub fn en_zh(english: &str, chinese: &str) -> I18nObject {
    let texts = [("en_US", english), ("zh_Hans", chinese)];
    I18nObject::ByLocale(texts.map(|(locale, text)| (locale.to_owned(), text.to_owned())).into())
}
