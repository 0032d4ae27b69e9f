//! Whether the runners and tools that agents name are there, which is known once their sources have told what they
//! offer; and whether a runner gets the models that it asks for.
//!
//! Invariant: judges only sources that have told; nothing is refused because of it.

use crate::config::{Config, ToolSource};
use greenroom_protocol::{AgentRunnerManifest, RunnerId};
use greenroom_tools::project_cli::close_matches;

/// What a running host offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Full names, as `files.read`.
    pub tools: Vec<String>,
    /// Servers and runners that are ready, and so have told what they offer.
    pub sources: Vec<String>,
    /// What the ready runners offer.
    pub runners: Vec<OfferedRunner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedRunner {
    pub id: RunnerId,
    pub asks_for_models: bool,
}

impl OfferedRunner {
    pub(crate) fn new(manifest: &AgentRunnerManifest) -> Self {
        let asks_for_models = !manifest.permissions.models.is_empty();
        Self { id: manifest.id.clone(), asks_for_models }
    }
}

/// What agents name that does not exist, one sentence each.
pub(crate) fn missing(config: &Config, offered: &Offered) -> Vec<String> {
    let mut found = Vec::new();
    for (agent, settings) in &config.agents {
        let id = &settings.runner;
        let of_plugin = offered.runners.iter().filter(|runner| runner.id.plugin() == id.plugin());
        let known: Vec<String> = of_plugin.map(|runner| runner.id.to_string()).collect();
        if !known.is_empty() && !known.contains(&id.to_string()) {
            let near = close_matches(id.as_str(), &known).into_iter().next();
            let hint = near.map_or_else(
                || format!("there is `{}`", known.join("`, `")),
                |near| format!("did you mean `{near}`?"),
            );
            found.push(format!("agent `{agent}`: there is no runner `{id}`; {hint}"));
        }
        for granted in &settings.grant.tools {
            let source = granted.split('.').next().unwrap_or_default();
            let has_told = offered.sources.iter().any(|ready| ready == source);
            if has_told && !offered.tools.iter().any(|tool| fits(granted, tool)) {
                let hint = hint(granted, source, &offered.tools);
                found.push(format!("agent `{agent}`: there is no tool `{granted}`; {hint}"));
            }
        }
    }
    found
}

/// Agents whose runner asks for models and gets none: it may be meant so.
pub(crate) fn without_models(config: &Config, offered: &Offered) -> Vec<String> {
    let asks = |id: &RunnerId| {
        offered.runners.iter().any(|runner| runner.id == *id && runner.asks_for_models)
    };
    let agents = config.agents.iter();
    let agents = agents.filter(|(_, agent)| agent.grant.models.is_empty() && asks(&agent.runner));
    let told = agents.map(|(name, _)| {
        format!(
            "agent `{name}`: its runner asks for models and gets none; if it needs one, add \
             `models = [\"NAME\"]` to the agent's grant"
        )
    });
    told.collect()
}

/// What agents are granted of a server that its own `allow` leaves out, with the agent it is about.
pub(crate) fn left_out(config: &Config) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    for (agent, settings) in &config.agents {
        for granted in &settings.grant.tools {
            let Some((source, tool)) = granted.split_once('.') else { continue };
            let Some(ToolSource::Mcp(server)) = config.tools.get(source) else { continue };
            let Some(allow) = &server.allow else { continue };
            // Two patterns may meet in a name that nobody wrote down.
            let is_open = tool.ends_with('*') || allow.iter().any(|pattern| fits(pattern, tool));
            if !is_open {
                let names: Vec<String> =
                    allow.iter().map(|name| format!("{source}.{name}")).collect();
                let hint = hint(granted, source, &names);
                found.push((
                    agent.as_str(),
                    format!(
                        "agent `{agent}`: `tools.{source}.allow` leaves out `{granted}`; {hint}"
                    ),
                ));
            }
        }
    }
    found
}

/// A pattern is a name, or a beginning with `*` behind it.
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
    // The nearest name says nothing about a pattern.
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
    use crate::config::{Surroundings, parse};
    use std::path::Path;

    fn config(grant: &str) -> Config {
        let text = format!(
            "[tools.files]\nurl = \"https://files.example.com/mcp\"\nallow = [\"read\", \"list*\"]\n\
             [agents.clerk]\nrunner = \"plugin:local/a/b\"\ngrant = {{ tools = [{grant}] }}\n"
        );
        let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let around = Surroundings { dir: Path::new("/srv"), env: &|_| None, read: &read };
        parse(Path::new("greenroom.toml"), &text, &around).unwrap().config
    }

    #[test]
    fn a_misspelt_tool_is_told_with_the_nearest_one_once_its_source_is_there() {
        let config = config(r#""files.raed", "files.read", "files.x*""#);
        let tools = vec!["files.read".to_owned(), "files.list_all".to_owned()];
        assert_eq!(
            missing(&config, &Offered { tools: tools.clone(), ..Offered::default() }),
            [""; 0]
        );
        let sources = vec!["files".to_owned()];
        let told = missing(&config, &Offered { tools, sources, ..Offered::default() });
        assert_eq!(
            told,
            [
                "agent `clerk`: there is no tool `files.raed`; did you mean `files.read`?",
                "agent `clerk`: there is no tool `files.x*`; there are `files.read`, `files.list_all`",
            ]
        );
    }

    #[test]
    fn a_misspelt_runner_is_told_once_its_plugin_is_there_and_so_is_a_missing_model() {
        let config = config("");
        let offered = |id: &str, asks_for_models| {
            let id = RunnerId::parse(id).unwrap();
            let runners = vec![OfferedRunner { id, asks_for_models }];
            Offered { runners, ..Offered::default() }
        };
        assert_eq!(missing(&config, &offered("plugin:other/a/b", true)), [""; 0]);
        assert_eq!(
            missing(&config, &offered("plugin:local/a/bee", true)),
            [
                "agent `clerk`: there is no runner `plugin:local/a/b`; did you mean `plugin:local/a/bee`?"
            ]
        );
        assert_eq!(missing(&config, &offered("plugin:local/a/b", true)), [""; 0]);
        assert_eq!(without_models(&config, &offered("plugin:local/a/b", false)), [""; 0]);
        let told = without_models(&config, &offered("plugin:local/a/b", true));
        assert!(told[0].starts_with("agent `clerk`: its runner asks for models"), "{told:?}");
    }

    #[test]
    fn a_grant_of_what_the_server_does_not_allow_is_known_before_it_runs() {
        let config = config(r#""files.raed", "files.read", "files.list_all", "files.*""#);
        let told = "agent `clerk`: `tools.files.allow` leaves out `files.raed`; did you mean `files.read`?";
        assert_eq!(left_out(&config), [("clerk", told.to_owned())]);
    }
}
