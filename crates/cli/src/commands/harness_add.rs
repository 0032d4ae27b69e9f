//! `greenroom harness add`: adds an external harness as a runner and an agent.
//!
//! Invariant: the configuration is only appended to, and unchanged if the result would be invalid; what the harness
//! may do is written out, so that it can be read and changed.

use super::runner_add::write::{gap, replace};
use crate::failure::{Exit, Failure, Outcome};
use crate::wiring::harness::install;
use crate::{output, programs, wiring};
use greenroom_acp_agent::AUTHOR;
use greenroom_acp_agent::profile::{self, Profile};
use greenroom_config::{self as config, Config};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The model of a host without configured ones.
const DEFAULT_MODEL: &str = "default";

/// Add an external harness as a runner and an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom harness add codex
  greenroom harness add claude --keys own --name reviewer
  greenroom harness add goose --command ./node_modules/.bin/goose --command acp")]
pub struct Args {
    /// Profile of the harness: claude, codex, gemini, goose, kimi or opencode
    profile: String,
    /// Name of the runner and the agent [default: that of the profile]
    #[arg(long)]
    name: Option<String>,
    /// Program and arguments of the harness, one word each [default: those of the profile]
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    command: Vec<String>,
    /// Whose models and keys it uses
    #[arg(long, value_name = "KEYS", default_value = "gateway", value_parser = ["gateway", "own"])]
    keys: String,
    /// Model that it uses [default: the first of the configuration]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Configuration to add it to [default: greenroom.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let Some(profile) = profile::find(&args.profile) else {
        let names: Vec<String> = profile::all().into_iter().map(|profile| profile.name).collect();
        return Err(Failure::new(format!("there is no profile `{}`", args.profile))
            .exit(Exit::Usage)
            .hint(format!(
                "one of: {}; other programs need a `command`, see docs/guides/harnesses.md",
                names.join(", ")
            )));
    };
    let file = config::find_file(args.config.as_deref());
    let file = file.unwrap_or_else(|| PathBuf::from("greenroom.toml"));
    let file = std::path::absolute(&file)?;
    let known = load(&file)?;
    let name = args.name.clone().unwrap_or_else(|| profile.name.clone());
    let runner_id = format!("plugin:{AUTHOR}/{name}/default");
    if greenroom_protocol::RunnerId::parse(&runner_id).is_err() {
        let message = format!("`{name}` cannot name a harness");
        return Err(Failure::new(message)
            .exit(Exit::Usage)
            .hint("use letters, digits, `-`, `_` and `.`"));
    }
    for (section, exists) in [
        ("runners", known.runners.contains_key(&name)),
        ("agents", known.agents.contains_key(&name)),
    ] {
        if exists {
            let message = format!("`[{section}.{name}]` already exists");
            return Err(Failure::new(message).hint("choose another name with `--name`"));
        }
    }
    let model = args.model.clone().or_else(|| known.models.first().map(|model| model.name.clone()));
    let model = match args.keys.as_str() {
        "gateway" => model.or_else(|| Some(DEFAULT_MODEL.to_owned())),
        _ => args.model.clone(),
    };
    let added = sections(&profile, &name, args, model.as_deref());
    append(&file, &added)?;
    report(args, &file, &profile, &name, model.as_deref())
}

fn load(file: &Path) -> Result<Config, Failure> {
    if !file.exists() {
        return Ok(Config::default());
    }
    let loaded = wiring::load_file(file).map_err(|error| {
        let context = format!("`{}` must be valid before a harness is added", file.display());
        Failure::from(anyhow::Error::new(error).context(context))
    })?;
    Ok(loaded.config)
}

/// The two tables, with everything that the harness may do.
fn sections(profile: &Profile, name: &str, args: &Args, model: Option<&str>) -> String {
    // JSON texts and lists of texts are valid TOML.
    let quoted = |text: &str| Value::from(text).to_string();
    let command = match args.command.as_slice() {
        [] => String::new(),
        words => format!("command = {}\n", json!(words)),
    };
    let network = match args.keys.as_str() {
        "own" => format!(
            "network = {}                # its own provider, with its own key\n",
            json!(profile.hosts)
        ),
        _ => "network = false                     # the host only\n".to_owned(),
    };
    let env = match &profile.key_variable {
        Some(variable) if args.keys == "own" => {
            format!("env = {{ {variable} = {{ env = {} }} }}\n", quoted(variable))
        }
        _ => String::new(),
    };
    let config = match (args.keys.as_str(), model) {
        ("own", Some(model)) => format!(
            "config = {{ workspace = \"conversation\", keys = \"own\", model = {} }}\n",
            quoted(model)
        ),
        ("own", None) => "config = { workspace = \"conversation\", keys = \"own\" }\n".to_owned(),
        _ => "config = { workspace = \"conversation\" }   # or \"folder\" or \"git\"\n".to_owned(),
    };
    let models = match (args.keys.as_str(), model) {
        ("gateway", Some(model)) => format!("models = [{}]\n", quoted(model)),
        _ => String::new(),
    };
    let profile = quoted(&profile.name);
    format!(
        "[runners.{name}]\nwire = \"acp\"\nprofile = {profile}\n{command}{network}{env}\n\
         [agents.{name}]\nrunner = \"plugin:{AUTHOR}/{name}/default\"\n\
         events = []                         # only events that name it\n{config}\n\
         [agents.{name}.grant]\n{models}\
         # What it may do with its own tools: \"always\", \"ask\" (a person) or \"never\"\n\
         harness = {{ read = \"always\", search = \"always\", think = \"always\", edit = \"ask\", delete = \"ask\", \
         move = \"ask\", execute = \"ask\", fetch = \"ask\", other = \"ask\" }}\n"
    )
}

fn append(file: &Path, added: &str) -> Result<(), Failure> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(anyhow::Error::new(error).into()),
    };
    let text = format!("{text}{}{added}", gap(&text));
    config::load_text(file, &text, &wiring::known()).map_err(|error| {
        let context = format!("cannot add the harness to `{}`", file.display());
        Failure::from(anyhow::Error::new(error).context(context))
    })?;
    replace(file, &text)
}

fn report(args: &Args, file: &Path, profile: &Profile, name: &str, model: Option<&str>) -> Outcome {
    let program = args.command.first().or_else(|| profile.command.first());
    let is_installed = program.is_some_and(|program| programs::find(program, None).is_some());
    if args.json {
        output::print_json(&json!({"runner": name, "agent": name, "profile": profile.name,
            "model": model, "keys": args.keys, "installed": is_installed,
            "install": install(profile), "config": file}))?;
        return Ok(Exit::Ok);
    }
    output::note(&format!(
        "added `[runners.{name}]` and `[agents.{name}]` to `{}`",
        file.display()
    ));
    output::note(
        "it may read and search in its workspace; it asks before it edits, deletes, executes or fetches; \
         it reaches no other folder of this machine",
    );
    output::note(&match (args.keys.as_str(), model) {
        ("own", _) => format!(
            "it uses its own key{} and reaches {}",
            profile.key_variable.as_ref().map(|name| format!(" from `{name}`")).unwrap_or_default(),
            profile.hosts.join(", ")
        ),
        (_, Some(model)) => {
            format!("it uses the model `{model}` of the host, and reaches the host only")
        }
        (_, None) => "it has no model yet: add `models = [\"NAME\"]` to its grant".to_owned(),
    });
    if !is_installed {
        output::note(&format!("it is not installed: {}", install(profile)));
    }
    output::note(&format!("hint: greenroom send \"hello\" --agent {name} --follow"));
    Ok(Exit::Ok)
}
