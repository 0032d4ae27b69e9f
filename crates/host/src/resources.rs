//! The configured models, tools, skills and knowledge bases.
//!
//! Invariant: a run keeps the resources that it started with, whatever is reloaded meanwhile. Nothing here
//! decides who may use them.

use crate::grant::{Grant, GrantFile};
use crate::host::HostError;
use crate::redaction::Redactor;
use greenroom_models::{Kind, Model, ModelSettings, Models};
use greenroom_protocol::manifest::ModelPermission;
use greenroom_protocol::{AgentResources, ModelResource, Object, ToolResource};
use greenroom_runtime::Runtime;
use greenroom_tools::{Entry, OnSecrets, ToolSettings, Toolbox};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of the list of methods in a tool's description; a longer one is abridged.
const METHODS_BYTES_MAX: usize = 1200;

/// Everything that grants choose from.
#[derive(Debug)]
pub struct Resources {
    pub models: Models,
    pub tools: Arc<Toolbox>,
    search_model: Option<String>,
}

/// The configuration of resources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceSettings {
    pub models: Vec<ModelSettings>,
    pub tools: ToolSettings,
    /// The model of `[tool_search]`, which embeds tools.
    pub search_model: Option<String>,
}

/// The names of everything that exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceNames {
    pub models: Vec<String>,
    pub tools: Vec<String>,
    /// `module.method`, each.
    pub methods: Vec<String>,
    pub skills: Vec<String>,
    pub knowledge: Vec<String>,
}

impl Resources {
    /// Builds the configured resources; unchanged servers stay connected.
    pub(crate) fn build(
        settings: ResourceSettings,
        runtime: &Runtime,
        before: Option<&Resources>,
        redactor: &Redactor,
    ) -> Result<Self, HostError> {
        let redactor = redactor.clone();
        let on_secrets: OnSecrets = Arc::new(move |secrets| redactor.learn(secrets));
        let before = before.map(|before| &*before.tools);
        Ok(Self {
            models: Models::new(settings.models)?,
            tools: Arc::new(Toolbox::start(
                settings.tools,
                runtime.clone(),
                before,
                Some(on_secrets),
            )?),
            search_model: settings.search_model,
        })
    }

    /// The model that embeds tools, if one is configured.
    pub(crate) fn search_model(&self) -> Option<Arc<Model>> {
        self.search_model.as_deref().and_then(|name| self.models.get(name))
    }

    pub fn names(&self) -> ResourceNames {
        ResourceNames {
            models: self.models.names().map(str::to_owned).collect(),
            tools: self.tools.names(),
            methods: self.tools.methods(),
            skills: self.tools.skills(),
            knowledge: Vec::new(),
        }
    }
}

/// The resources of a run, as its runner sees them.
pub(crate) fn granted_resources(grant: &Grant, resources: &Resources) -> AgentResources {
    let models = grant.models.names.iter().filter_map(|name| resources.models.get(name));
    let models = models.map(|model| model_resource(&model, grant));
    let tools = grant.tools.names.iter().filter_map(|name| resources.tools.entry(name));
    let tools = tools.map(|entry| tool_resource(&entry, grant, &resources.tools));
    let actions = grant
        .actions
        .iter()
        .map(|(action, approval)| (action.clone(), json!({"approval": approval})));
    let mut extra = Object::new();
    if !grant.skills.is_empty() {
        // Names and descriptions only; the text of a skill is read on demand.
        extra.insert("skills".to_owned(), json!(resources.tools.cards(&grant.skills)));
    }
    AgentResources {
        // A model that the run may not use at all is left out.
        models: models.filter(|model| !model.operations.is_empty()).collect(),
        tools: tools.filter(|tool| !tool.operations.is_empty()).collect(),
        files: grant.files.iter().map(GrantFile::resource).collect(),
        storage: grant.storage_resource(),
        platform_capabilities: actions.collect(),
        extra,
        ..AgentResources::default()
    }
}

fn model_resource(model: &Model, grant: &Grant) -> ModelResource {
    let settings = model.settings();
    let able: &[ModelPermission] = match settings.kind {
        Kind::Chat => &[ModelPermission::Invoke, ModelPermission::Stream],
        Kind::Embedding => &[ModelPermission::Embed],
        Kind::Rerank => &[ModelPermission::Rerank],
    };
    let granted = &grant.models.operations;
    let known = [
        ("model", Some(Value::from(settings.model.as_str()))),
        ("context_window", settings.window().map(Value::from)),
        ("max_output_tokens", settings.max_output_tokens.map(Value::from)),
        ("tool_calling", settings.tool_calling.map(Value::from)),
    ];
    let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    ModelResource {
        model_id: settings.name.clone(),
        model_type: Some(settings.kind.as_str().to_owned()),
        provider: Some(settings.provider_name.clone()),
        operations: able.iter().copied().filter(|one| granted.contains(one)).collect(),
        metadata: known.collect(),
        extra: Object::new(),
    }
}

/// A tool as the run may use it.
pub(crate) fn tool_resource(entry: &Entry, grant: &Grant, tools: &Toolbox) -> ToolResource {
    let tool = &entry.tool;
    let parameters = match &tool.input_schema {
        Value::Object(schema) => schema.clone(),
        _ => Object::new(),
    };
    let mut metadata = Object::from_iter([
        ("risk".to_owned(), tool.risk.as_str().into()),
        ("timeout_s".to_owned(), tool.timeout.as_secs().into()),
    ]);
    if let Some(schema) = &tool.output_schema {
        metadata.insert("output_schema".to_owned(), schema.clone());
    }
    let description = match entry.is_project_cli() {
        true => {
            let risks = tools.risks(&grant.methods);
            // That of a call is its method's; that of the tool is the worst of them.
            let worst = risks.values().max().copied().unwrap_or(tool.risk);
            metadata.insert("risk".to_owned(), worst.as_str().into());
            metadata.insert("risks".to_owned(), json!(risks));
            metadata.insert("methods".to_owned(), json!(grant.methods));
            format!("{} Methods: {}.", tool.description, method_list(&grant.methods))
        }
        false => tool.description.clone(),
    };
    ToolResource {
        tool_name: tool.name.clone(),
        description: Some(description),
        parameters,
        source: Some(tool.source.to_string()),
        operations: grant.tools.operations.iter().copied().collect(),
        metadata,
        extra: Object::new(),
    }
}

/// The methods in the description of the project CLI: all of them, or of a long list some of every module.
fn method_list(methods: &BTreeSet<String>) -> String {
    let all = methods.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if all.len() <= METHODS_BYTES_MAX {
        return all;
    }
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (module, method) in methods.iter().filter_map(|name| name.split_once('.')) {
        modules.entry(module).or_default().push(method);
    }
    let room = METHODS_BYTES_MAX / modules.len().max(1);
    let mut parts = Vec::new();
    for (module, names) in modules {
        let mut shown = String::new();
        let mut count = 0;
        for name in &names {
            let more = format!("{}{module}.{name}", if count == 0 { "" } else { ", " });
            if count > 0 && shown.len() + more.len() > room {
                break;
            }
            shown.push_str(&more);
            count += 1;
        }
        let left_out = names.len() - count;
        parts.push(match left_out {
            0 => shown,
            _ => format!("{shown} and {left_out} more of {module}"),
        });
    }
    let list: String = parts.join(", ").chars().take(2 * METHODS_BYTES_MAX).collect();
    format!("{list}; a wrong name is answered with similar ones")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_many_methods_stays_small_and_names_every_module() {
        let few = BTreeSet::from(["memory.read".to_owned(), "memory.update".to_owned()]);
        assert_eq!(method_list(&few), "memory.read, memory.update");
        let many = (0..300).map(|n| format!("module{}.method_{n:03}", n % 6)).collect();
        let list = method_list(&many);
        assert!(list.len() < 1600, "{}: {list}", list.len());
        for module in 0..6 {
            assert!(list.contains(&format!("module{module}.method_00{module}")), "{list}");
            assert!(list.contains(&format!(" more of module{module}")), "{list}");
        }
    }
}
