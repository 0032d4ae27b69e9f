//! `greenroom check`: validates a configuration.

use crate::failure::{Exit, Outcome};
use crate::{output, warnings, wiring};
use greenroom_config::Loaded;
use greenroom_host::settings::Agent;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Validate the configuration, list its agents and warn about missing parts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom check
  greenroom check --config greenroom.toml --json")]
pub struct Args {
    /// Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Loads the configuration as `serve` does and prints its agents and runners.
pub fn run(args: &Args) -> Outcome {
    let (config, loaded) = wiring::load(args.config.as_deref())?;
    let agents = wiring::agents(&config);
    let file = loaded.as_ref().map(Loaded::path);
    let warnings = loaded.as_ref().map(warnings::all).unwrap_or_default();
    let unchecked = warnings::unchecked(&config).into_iter().map(|(agent, id)| {
        format!(
            "agent `{agent}`: only a running host knows whether a runner offers `{id}`; \
             `greenroom doctor` checks it"
        )
    });
    let unchecked: Vec<String> = unchecked.collect();
    let reaches = warnings::reaches(&config);
    if args.json {
        let agents: Vec<_> = agents
            .iter()
            .map(|agent| {
                json!({"name": agent.name, "runner_id": agent.runner, "events": agent.events,
                    "scope": agent.scope, "queue": agent.queue.as_str(),
                    "built_in": agent.built_in})
            })
            .collect();
        let runners: Vec<_> = config.runners.keys().collect();
        output::print_json(
            &json!({"ok": true, "file": file.map(|file| file.display().to_string()), "agents": agents,
                "runners": runners, "warnings": warnings, "notes": unchecked,
                "networks": reaches.iter().cloned().collect::<BTreeMap<_, _>>()}),
        )?;
        return Ok(Exit::Ok);
    }
    match file {
        Some(file) => {
            let but = match warnings.len() {
                0 => String::new(),
                1 => ", with a warning".to_owned(),
                count => format!(", with {count} warnings"),
            };
            output::note(&format!("`{}` is valid{but}", file.display()));
            warnings.iter().for_each(|warning| output::note(&warning.show(file)));
            unchecked.iter().for_each(|text| output::note(&format!("note: {text}")));
            for (process, reach) in &reaches {
                output::note(&format!("note: {process} reaches {reach}"));
            }
        }
        None => output::note("no configuration file: the defaults are used"),
    }
    let head = ["AGENT", "EVENTS", "SCOPE", "RUNNER"].map(str::to_owned).to_vec();
    let rows = agents.iter().map(row);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::print(&output::table(&rows))?;
    if agents.iter().filter(|agent| !agent.events.is_empty()).count() > 1 {
        output::note(
            "note: if several agents match an event, the one with the narrowest scope handles it",
        );
    }
    Ok(Exit::Ok)
}

fn row(agent: &Agent) -> Vec<String> {
    let takes = match agent.events.join(", ") {
        none if none.is_empty() => "only when named".to_owned(),
        events if agent.built_in => format!("{events} that no other agent matches"),
        events => events,
    };
    let scope = &agent.scope;
    let parts = [
        ("workspace", &scope.workspace),
        ("bot", &scope.bot),
        ("conversation", &scope.conversation),
        ("actor", &scope.actor),
    ];
    let parts = parts
        .iter()
        .filter_map(|(part, value)| value.as_ref().map(|value| format!("{part}={value}")));
    let filters = agent.filters.iter().map(|(field, values)| {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        format!("{field}={}", values.join("|"))
    });
    let scope: Vec<String> = parts.chain(filters).collect();
    let scope = if scope.is_empty() { "anywhere".to_owned() } else { scope.join(" ") };
    vec![agent.name.clone(), takes, scope, agent.runner.to_string()]
}
