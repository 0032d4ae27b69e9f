//! Settings of LangBot plugins and of their agents that are missing or wrong, as far as their files tell.

use super::Problems;
use crate::plugin_manifest;
use greenroom_config::{Config, Launch, Runner, Wire};
use greenroom_protocol::{Object, form};
use greenroom_runtime::langbot_form;

pub(super) fn settings(config: &Config) -> Problems<'_> {
    let mut problems = Vec::new();
    for (name, runner) in &config.runners {
        let Some(manifest) = manifest(runner) else { continue };
        let own = langbot_form(&manifest.config);
        let given: Object =
            runner.config.iter().map(|(key, value)| (key.clone(), value.expose())).collect();
        let unknown = form::unknown(&own, &given).into_iter();
        let unknown = unknown.map(|key| format!("`{key}` is not a setting of the plugin"));
        let wrong = form::problems(&own, &form::fill(&own, &given, None)).into_iter();
        problems.extend(unknown.chain(wrong).map(|problem| {
            let message = format!("runner `{name}`: in `[runners.{name}.config]` {problem}");
            (vec!["runners", name.as_str(), "config"], message)
        }));
        for component in &manifest.components {
            let id = format!("plugin:{}/{}", manifest.path, component.name);
            let form = langbot_form(&component.config);
            let agents = config.agents.iter().filter(|(_, agent)| agent.runner.as_str() == id);
            problems.extend(agents.flat_map(|(agent, settings)| {
                let only_model = only_model(&settings.grant.models);
                let filled = form::fill(&form, &settings.config, only_model);
                let wrong = form::problems(&form, &filled).into_iter();
                wrong.map(move |problem| {
                    let message = format!("agent `{agent}`: in its `config` {problem}");
                    (vec!["agents", agent.as_str(), "config"], message)
                })
            }));
        }
    }
    problems
}

/// The only model of a grant; a pattern may stand for several.
pub(crate) fn only_model(granted: &[String]) -> Option<&str> {
    match granted {
        [model] if !model.ends_with('*') => Some(model),
        _ => None,
    }
}

fn manifest(runner: &Runner) -> Option<plugin_manifest::PluginManifest> {
    match &runner.launch {
        Launch::Process(process) if runner.wire == Wire::Langbot => {
            plugin_manifest::read(&process.dir)
        }
        _ => None,
    }
}
