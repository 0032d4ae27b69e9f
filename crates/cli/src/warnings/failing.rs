//! Agents and models that cannot work as they are configured: what every message would end with.
//!
//! Invariant: judges only what is certain from the file: agents of the reference runner, whose config the
//! program knows, and providers that take nobody without a key.

use super::Found;
use greenroom_config::{Agent, Config, Model, ModelKind, clean};
use greenroom_models::presets;

/// The reference runner, which the program carries.
const REFERENCE: &str = "plugin:greenroom/local-agent/default";

/// Agents of the reference runner that would fail on every message.
pub(super) fn agents(config: &Config) -> Found<'_> {
    let own = config.agents.iter().filter(|(_, agent)| agent.runner.to_string() == REFERENCE);
    let told = |(name, agent)| {
        let place = |(key, problem): (&'static str, String)| {
            let message = format!("agent `{name}`: {problem}");
            (vec!["agents", String::as_str(name), key], message)
        };
        problems(config, agent).into_iter().map(place).collect::<Vec<_>>()
    };
    own.flat_map(told).collect()
}

fn problems(config: &Config, agent: &Agent) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Err(problem) = greenroom_local_agent::check_config(&agent.config) {
        found.push(("config", problem));
    }
    let is_chat =
        |name: &&String| config.model(name).is_none_or(|model| model.kind == ModelKind::Chat);
    let granted: Vec<&str> =
        agent.grant.models.iter().filter(is_chat).map(String::as_str).collect();
    if granted.is_empty() {
        let problem = "no chat model is granted, and without one every message fails; add \
                       `models = [\"NAME\"]` to its grant";
        found.push(("grant", problem.to_owned()));
        return found;
    }
    let model = agent.config.get("model").and_then(|value| value.as_str());
    let model = model.filter(|name| !name.is_empty()).map(|name| ("model", name));
    let others = agent.config.get("fallback_models").and_then(|value| value.as_array());
    let others = others.into_iter().flatten().filter_map(|value| value.as_str());
    let named = model.into_iter().chain(others.map(|name| ("fallback_models", name)));
    for (key, name) in named.filter(|(_, name)| !granted.contains(name)) {
        let name = clean(name);
        let problem = format!("`{key}` names `{name}`, which is no chat model of its grant");
        found.push(("config", problem));
    }
    found
}

/// Models without a key whose provider needs one. At an address of one's own it may do without.
pub(super) fn models(config: &Config) -> Found<'_> {
    let told = |model: &Model| {
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
    all.filter_map(|model| Some((vec!["models", model.name.as_str()], told(model)?))).collect()
}
