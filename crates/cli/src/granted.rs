//! Checks that the runners and tools of agents exist, once their sources have reported what they offer, and that a
//! runner is granted the models it needs.
//!
//! Invariant: checks ready sources only; the results are warnings.

use crate::warnings::only_model;
use greenroom_config::{Config, ToolSource};
use greenroom_protocol::{AgentRunnerManifest, DynamicFormItemSchema, RunnerId, form};
use greenroom_tools::project_cli::close_matches;

/// What a running host offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Offered {
    /// Full names, such as `files.read`.
    pub tools: Vec<String>,
    /// Servers and runners that are ready.
    pub sources: Vec<String>,
    /// Runners of the ready processes.
    pub runners: Vec<OfferedRunner>,
    /// Configured runners that are not ready, whose offer is unknown.
    pub not_ready: Vec<NotReady>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotReady {
    pub name: String,
    /// `author/name`, if known from the configuration or an earlier start.
    pub plugin: Option<String>,
    pub has_failed: bool,
}

impl NotReady {
    fn may_offer(&self, id: &RunnerId) -> bool {
        self.plugin.as_deref().is_none_or(|plugin| plugin == id.plugin())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfferedRunner {
    pub id: RunnerId,
    pub asks_for_models: bool,
    /// The form of its settings, where the host fills it in.
    pub form: Vec<DynamicFormItemSchema>,
}

impl OfferedRunner {
    pub(crate) fn new(manifest: &AgentRunnerManifest) -> Self {
        let asks_for_models = !manifest.permissions.models.is_empty();
        let is_langbot = manifest.metadata.get("wire").is_some_and(|wire| wire == "langbot");
        let form = if is_langbot { manifest.config_schema.clone() } else { Vec::new() };
        Self { id: manifest.id.clone(), asks_for_models, form }
    }
}

/// Runners and tools that agents refer to and that do not exist, one sentence each.
pub(crate) fn missing(config: &Config, offered: &Offered) -> Vec<String> {
    let mut found = Vec::new();
    for (agent, settings) in &config.agents {
        found.extend(
            no_runner(&settings.runner, offered).map(|text| format!("agent `{agent}`: {text}")),
        );
        for granted in &settings.grant.tools {
            let source = granted.split('.').next().unwrap_or_default();
            let is_ready = offered.sources.iter().any(|ready| ready == source);
            if is_ready && !offered.tools.iter().any(|tool| fits(granted, tool)) {
                let hint = hint(granted, source, &offered.tools);
                found.push(format!("agent `{agent}`: there is no tool `{granted}`; {hint}"));
            }
        }
    }
    found
}

/// Why a runner id does not exist, unless a starting runner may still offer it.
fn no_runner(id: &RunnerId, offered: &Offered) -> Option<String> {
    if offered.runners.iter().any(|runner| runner.id == *id) {
        return None;
    }
    let others: Vec<&NotReady> =
        offered.not_ready.iter().filter(|runner| runner.may_offer(id)).collect();
    if others.iter().any(|runner| !runner.has_failed) {
        return None;
    }
    Some(match others.is_empty() {
        true => {
            let known = offered.runners.iter().map(|runner| runner.id.to_string());
            format!("no runner offers `{id}`; {}", runner_hint(id, &known.collect::<Vec<_>>()))
        }
        // The id may be correct.
        false => {
            let names: Vec<String> =
                others.iter().map(|runner| format!("`{}`", runner.name)).collect();
            let names = names.join(", ");
            format!(
                "no runner that is ready offers `{id}`, and {names} failed to start; \
                 `greenroom runner list` shows why"
            )
        }
    })
}

/// The nearest known id, and the command that lists all.
pub(crate) fn runner_hint(id: &RunnerId, known: &[String]) -> String {
    let near = close_matches(id.as_str(), known).into_iter().next();
    let near = near.map(|near| format!("did you mean `{near}`? "));
    format!("{}`greenroom runner list` shows the ids that exist", near.unwrap_or_default())
}

/// Agents whose runner may be offered by a process that is not ready.
pub(crate) fn undecided(config: &Config, offered: &Offered) -> Vec<String> {
    let offers = |id: &RunnerId| offered.runners.iter().any(|runner| runner.id == *id);
    let agents = config.agents.iter().filter(|(_, agent)| !offers(&agent.runner));
    let texts = agents.filter_map(|(name, agent)| {
        let id = &agent.runner;
        let may = |runner: &&NotReady| runner.may_offer(id) && !runner.has_failed;
        let runner = offered.not_ready.iter().find(may)?;
        let ready = &runner.name;
        Some(format!("agent `{name}`: whether `{id}` exists is known once `{ready}` is ready"))
    });
    texts.collect()
}

/// Agents whose runner uses models and is granted none, which may be intended.
pub(crate) fn without_models(config: &Config, offered: &Offered) -> Vec<String> {
    let asks = |id: &RunnerId| {
        offered.runners.iter().any(|runner| runner.id == *id && runner.asks_for_models)
    };
    let agents = config.agents.iter();
    let agents = agents.filter(|(_, agent)| agent.grant.models.is_empty() && asks(&agent.runner));
    let texts = agents.map(|(name, _)| {
        format!(
            "agent `{name}`: its runner uses models and gets none; if it needs one, add \
             `models = [\"NAME\"]` to the agent's grant"
        )
    });
    texts.collect()
}

/// Settings of agents that are missing or wrong, by the form of their runner.
pub(crate) fn incomplete(config: &Config, offered: &Offered) -> Vec<String> {
    let agents = config.agents.iter().filter_map(|(name, agent)| {
        let runner = offered.runners.iter().find(|runner| runner.id == agent.runner)?;
        let filled = form::fill(&runner.form, &agent.config, only_model(&agent.grant.models));
        let wrong = form::problems(&runner.form, &filled).into_iter();
        Some(wrong.map(move |problem| format!("agent `{name}`: in its `config` {problem}")))
    });
    agents.flatten().collect()
}

/// Granted tools that the `allow` list of their server excludes, by agent.
pub(crate) fn left_out(config: &Config) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    for (agent, settings) in &config.agents {
        for granted in &settings.grant.tools {
            let Some((source, tool)) = granted.split_once('.') else { continue };
            let Some(ToolSource::Mcp(server)) = config.tools.get(source) else { continue };
            let Some(allow) = &server.allow else { continue };
            // Two patterns may both match a name that neither contains.
            let is_open = tool.ends_with('*') || allow.iter().any(|pattern| fits(pattern, tool));
            if !is_open {
                let names: Vec<String> =
                    allow.iter().map(|name| format!("{source}.{name}")).collect();
                let hint = hint(granted, source, &names);
                found.push((
                    agent.as_str(),
                    format!("agent `{agent}`: `tools.{source}.allow` excludes `{granted}`; {hint}"),
                ));
            }
        }
    }
    found
}

/// A pattern is a name, or a prefix followed by `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

fn hint(name: &str, source: &str, known: &[String]) -> String {
    let beginning = format!("{source}.");
    let own: Vec<String> =
        known.iter().filter(|tool| tool.starts_with(&beginning)).cloned().collect();
    // A pattern has no nearest name.
    let near = close_matches(name, &own).into_iter().find(|_| !name.ends_with('*'));
    match (near, own.len()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, 0) => format!("`{source}` offers none"),
        (None, 1..=8) => {
            let own: Vec<String> = own.iter().map(|tool| format!("`{tool}`")).collect();
            format!("there are {}", own.join(", "))
        }
        (None, count) => format!("`{source}` offers {count} others"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_config::{Surroundings, parse};
    use std::path::Path;

    fn config(grant: &str) -> Config {
        let text = format!(
            "[tools.files]\nurl = \"https://files.example.com/mcp\"\nallow = [\"read\", \"list*\"]\n\
             [agents.clerk]\nrunner = \"plugin:local/a/b\"\ngrant = {{ tools = [{grant}] }}\n"
        );
        let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let known = crate::wiring::known();
        let dir = Path::new("/srv");
        let around = Surroundings { dir, env: &|_| None, read: &read, known: &known };
        parse(Path::new("greenroom.toml"), &text, &around).unwrap().config
    }

    #[test]
    fn a_misspelt_tool_is_reported_with_the_nearest_one_once_its_source_is_ready() {
        let config = config(r#""files.raed", "files.read", "files.x*""#);
        let tools = vec!["files.read".to_owned(), "files.list_all".to_owned()];
        let id = RunnerId::parse("plugin:local/a/b").unwrap();
        let runners = vec![OfferedRunner { id, asks_for_models: false, form: Vec::new() }];
        let offered = Offered { tools, runners, ..Offered::default() };
        assert_eq!(missing(&config, &offered), [""; 0]);
        let sources = vec!["files".to_owned()];
        let texts = missing(&config, &Offered { sources, ..offered });
        assert_eq!(
            texts,
            [
                "agent `clerk`: there is no tool `files.raed`; did you mean `files.read`?",
                "agent `clerk`: there is no tool `files.x*`; there are `files.read`, `files.list_all`",
            ]
        );
    }

    #[test]
    fn a_runner_id_that_nothing_offers_is_reported_and_so_is_a_missing_model() {
        let config = config("");
        let offered = |id: &str, asks_for_models| {
            let id = RunnerId::parse(id).unwrap();
            let runners = vec![OfferedRunner { id, asks_for_models, form: Vec::new() }];
            Offered { runners, ..Offered::default() }
        };
        let all = "`greenroom runner list` shows the ids that exist";
        let none = format!("agent `clerk`: no runner offers `plugin:local/a/b`; {all}");
        assert_eq!(missing(&config, &offered("plugin:greenroom/echo/default", true)), [none]);
        let near = format!(
            "agent `clerk`: no runner offers `plugin:local/a/b`; \
             did you mean `plugin:local/a/bee`? {all}"
        );
        assert_eq!(missing(&config, &offered("plugin:local/a/bee", true)), [near]);
        assert_eq!(missing(&config, &offered("plugin:local/a/b", true)), [""; 0]);
        assert_eq!(without_models(&config, &offered("plugin:local/a/b", false)), [""; 0]);
        let texts = without_models(&config, &offered("plugin:local/a/b", true));
        assert!(texts[0].starts_with("agent `clerk`: its runner uses models"), "{texts:?}");
    }

    #[test]
    fn a_runner_id_is_not_judged_while_a_runner_starts_that_may_offer_it() {
        let config = config("");
        let offered = |plugin: Option<&str>, has_failed| {
            let (name, plugin) = ("slow".to_owned(), plugin.map(str::to_owned));
            let not_ready = vec![NotReady { name, plugin, has_failed }];
            Offered { not_ready, ..Offered::default() }
        };
        for plugin in [None, Some("local/a")] {
            let starting = offered(plugin, false);
            assert_eq!(missing(&config, &starting), [""; 0]);
            let text =
                "agent `clerk`: whether `plugin:local/a/b` exists is known once `slow` is ready";
            assert_eq!(undecided(&config, &starting), [text]);
            let failed = offered(plugin, true);
            let texts = missing(&config, &failed);
            assert!(
                texts[0].contains("ready offers `plugin:local/a/b`, and `slow` failed"),
                "{texts:?}"
            );
            assert_eq!(undecided(&config, &failed), [""; 0]);
        }
        let other = offered(Some("local/other"), false);
        assert!(missing(&config, &other)[0].contains("no runner offers `plugin:local/a/b`"));
    }

    #[test]
    fn a_grant_of_what_the_server_does_not_allow_is_known_before_it_runs() {
        let config = config(r#""files.raed", "files.read", "files.list_all", "files.*""#);
        let text =
            "agent `clerk`: `tools.files.allow` excludes `files.raed`; did you mean `files.read`?";
        assert_eq!(left_out(&config), [("clerk", text.to_owned())]);
    }
}
