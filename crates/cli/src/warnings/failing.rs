//! Agents and models whose configuration makes every message fail.
//!
//! Invariant: reports only what the file proves: agents of the reference runner, whose config format is known, and
//! providers that require a key.

use super::Problems;
use greenroom_config::{Agent, Config, Model, ModelKind, clean};
use greenroom_models::presets;

/// The built-in reference runner.
const REFERENCE: &str = "plugin:greenroom/local-agent/default";

/// Agents of the reference runner that would fail on every message.
pub(super) fn agents(config: &Config) -> Problems<'_> {
    let own = config.agents.iter().filter(|(_, agent)| agent.runner.to_string() == REFERENCE);
    let of_agent = |(name, agent)| {
        let keyed = |(key, problem): (&'static str, String)| {
            let message = format!("agent `{name}`: {problem}");
            (vec!["agents", String::as_str(name), key], message)
        };
        problems(config, agent).into_iter().map(keyed).collect::<Vec<_>>()
    };
    own.flat_map(of_agent).chain(on_harnesses(config)).collect()
}

/// Agents of external harnesses with a config that cannot be used.
fn on_harnesses(config: &Config) -> impl Iterator<Item = (Vec<&str>, String)> {
    let of_harness = |agent: &Agent| {
        let is_own = |plugin: &str| agent.runner.plugin() == plugin;
        let mut harnesses = config.runners.values().filter(|runner| runner.acp.is_some());
        harnesses.any(|runner| runner.plugin.as_deref().is_some_and(is_own))
    };
    config.agents.iter().filter(move |(_, agent)| of_harness(agent)).filter_map(|(name, agent)| {
        let problem = greenroom_acp_agent::check_config(&agent.config).err()?;
        Some((vec!["agents", name.as_str(), "config"], format!("agent `{name}`: {problem}")))
    })
}

fn problems(config: &Config, agent: &Agent) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    if let Err(problem) = greenroom_local_agent::check_config(&agent.config) {
        problems.push(("config", problem));
    }
    let is_chat =
        |name: &&String| config.model(name).is_none_or(|model| model.kind == ModelKind::Chat);
    let granted: Vec<&str> =
        agent.grant.models.iter().filter(is_chat).map(String::as_str).collect();
    if granted.is_empty() {
        let problem = "no chat model is granted, so every message fails; add \
                       `models = [\"NAME\"]` to its grant";
        problems.push(("grant", problem.to_owned()));
        return problems;
    }
    let model = agent.config.get("model").and_then(|value| value.as_str());
    let model = model.filter(|name| !name.is_empty()).map(|name| ("model", name));
    let others = agent.config.get("fallback_models").and_then(|value| value.as_array());
    let others = others.into_iter().flatten().filter_map(|value| value.as_str());
    let named = model.into_iter().chain(others.map(|name| ("fallback_models", name)));
    for (key, name) in named.filter(|(_, name)| !granted.contains(name)) {
        let name = clean(name);
        let problem = format!("`{key}` names `{name}`, which is not a granted chat model");
        problems.push(("config", problem));
    }
    problems
}

/// Models without a key whose provider requires one; at another address it may not.
pub(super) fn models(config: &Config) -> Problems<'_> {
    let problem = |model: &Model| {
        let key = presets::find(&model.provider)?.key_env?;
        let is_open = model.base_url.is_some() && model.provider != "azure";
        let has_key = model.api_key.is_some() || !model.headers.is_empty();
        (!is_open && !has_key).then(|| {
            format!(
                "model `{}`: `{}` needs a key; add \
                 `api_key = {{ env = \"{key}\" }}`",
                model.name, model.provider
            )
        })
    };
    let all = config.models.iter();
    all.filter_map(|model| Some((vec!["models", model.name.as_str()], problem(model)?))).collect()
}
