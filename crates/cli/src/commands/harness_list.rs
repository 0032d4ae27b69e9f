//! `greenroom harness list`: which external harnesses this machine has.
//!
//! Invariant: a harness is only asked for its version, with a time limit; nothing is installed.

use crate::failure::{Exit, Outcome};
use crate::wiring::harness::{harnesses, install};
use crate::{output, programs, wiring};
use greenroom_acp_agent::profile::{self, Profile};
use greenroom_config::{self as config, Acp, Config};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// List external harnesses: which are installed and configured, and how to get the others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom harness list
  greenroom harness list --json")]
pub struct Args {
    /// Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let config = match config::find_file(args.config.as_deref()) {
        Some(file) => {
            wiring::load_file(&file)
                .map_err(|error| crate::failure::Failure::from(anyhow::Error::new(error)))?
                .config
        }
        None => Config::default(),
    };
    let items: Vec<Value> = profile::all()
        .iter()
        .map(|profile| item(profile, &config))
        .chain(written(&config))
        .collect();
    if args.json {
        output::print_json(&json!({"items": items}))?;
        return Ok(Exit::Ok);
    }
    let head = ["HARNESS", "NAME", "STATE", "VERSION", "RUNNERS", "PROGRAM"];
    let head = head.map(str::to_owned).to_vec();
    let rows = items.iter().map(row);
    output::print(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
    for item in items.iter().filter(|item| item["installed"] == false) {
        if let (Some(name), Some(install)) = (item["name"].as_str(), item["install"].as_str()) {
            output::note(&format!("to get `{name}`: {install}"));
        }
    }
    Ok(Exit::Ok)
}

fn item(profile: &Profile, config: &Config) -> Value {
    let own: Vec<(&String, &Acp)> = harnesses(config)
        .filter(|(_, acp)| acp.profile.as_deref() == Some(&profile.name))
        .collect();
    let command = own.iter().map(|(_, acp)| &acp.command).find(|command| !command.is_empty());
    let command = command.unwrap_or(&profile.command);
    let found = command.first().and_then(|program| programs::find(program, None));
    let runners: Vec<&String> = own.iter().map(|(name, _)| *name).collect();
    json!({"name": profile.name, "title": profile.title, "installed": found.is_some(),
        "program": found.as_ref().map(|found| &found.path),
        "version": found.as_ref().and_then(|found| version(profile, &found.path)),
        "command": command, "runners": runners, "install": install(profile),
        "needs": profile.needs, "quirks": profile.quirks})
}

/// Harnesses with a written command.
fn written(config: &Config) -> impl Iterator<Item = Value> {
    harnesses(config).filter(|(_, acp)| acp.profile.is_none()).map(|(name, acp)| {
        let found = acp.command.first().and_then(|program| programs::find(program, None));
        json!({"name": name, "title": name, "installed": found.is_some(),
            "program": found.map(|found| found.path), "version": null, "command": acp.command,
            "runners": [name], "install": null, "needs": null, "quirks": []})
    })
}

/// The version of the package that contains the program.
fn version(profile: &Profile, program: &Path) -> Option<String> {
    let names = profile.packages.iter().map(|package| match package.rfind('@') {
        Some(at) if at > 0 => &package[..at],
        _ => package,
    });
    let names: Vec<&str> = names.collect();
    program.ancestors().find_map(|folder| {
        let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
        let package: Value = serde_json::from_str(&text).ok()?;
        let name = package["name"].as_str()?;
        // The program may be in a part of the package for this system.
        let is_part =
            names.iter().any(|wanted| name == *wanted || name.starts_with(&format!("{wanted}-")));
        is_part.then(|| package["version"].as_str().map(str::to_owned))?
    })
}

fn row(item: &Value) -> Vec<String> {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let runners = item["runners"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let state = if item["installed"] == true { "installed" } else { "missing" };
    vec![
        text("title"),
        text("name"),
        state.to_owned(),
        text("version"),
        runners.collect::<Vec<_>>().join(", "),
        text("program"),
    ]
}
