//! `greenroom runner add`: adds a LangBot plugin as a runner.
//!
//! Invariant: existing files of the plugin are kept; the configuration is only appended to, and unchanged if the
//! result would be invalid.

mod components;
mod dialect;
mod inspect;
mod install;
pub(super) mod write;

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use greenroom_config as config;
use inspect::Plugin;
use std::path::{Path, PathBuf};

/// Add a LangBot plugin as a runner
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom runner add ./my-plugin
  greenroom runner add author-plugin-0.1.0.lbpkg --name helper
  greenroom runner add ./older-plugin --sdk ./langbot-plugin-sdk")]
pub struct Args {
    /// Folder of the plugin, or its package (.lbpkg)
    path: PathBuf,
    /// Name of the runner in the configuration [default: that of the plugin]
    #[arg(long)]
    name: Option<String>,
    /// Configuration to add it to [default: greenroom.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Python interpreter for its virtual environment
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
    /// LangBot SDK to install instead of the published one: a folder, a wheel or a requirement
    #[arg(long, value_name = "PATH")]
    sdk: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let file = config::find_file(args.config.as_deref());
    let file = file.unwrap_or_else(|| PathBuf::from("greenroom.toml"));
    let file = std::path::absolute(&file)?;
    let folder = folder(args, &file)?;
    if !config::is_langbot_plugin(&folder) {
        let message = format!("`{}` is not a LangBot plugin", folder.display());
        return Err(Failure::new(message)
            .exit(Exit::Usage)
            .hint("it has no `manifest.yaml` with `kind: Plugin`"));
    }
    let runners = write::runners(&file)?;
    if let Some(name) = runners.in_folder(&folder) {
        let message = format!("`{}` is `[runners.{name}]` already", folder.display());
        return Err(Failure::new(message)
            .hint("to install its requirements again, remove that section first"));
    }
    let kinds = components::check(&folder)?;
    let dialect = dialect::of(&folder)?;
    let interpreter =
        install::environment(&folder, &args.python, &dialect.sdk(args.sdk.as_deref(), &folder)?)?;
    let plugin = inspect::inspect(&folder, &interpreter)?;
    let name = args.name.clone().unwrap_or_else(|| plugin.runner_name());
    if let Some(other) = runners.of_plugin(&plugin.path()) {
        let message = format!("`{}` is `[runners.{other}]` already", plugin.path());
        return Err(Failure::new(message).hint(
            "a plugin can be configured once: remove that section to use this folder instead",
        ));
    }
    if runners.has(&name) {
        let message = format!("`[runners.{name}]` already exists");
        return Err(Failure::new(message).hint("choose another name with `--name`"));
    }
    if plugin.runners.is_empty() && kinds.is_empty() {
        return Err(Failure::new(format!("`{}` has no components", plugin.path())));
    }
    write::add(&file, &name, &folder, &plugin)?;
    kinds.note(&name, &plugin.path());
    report(args, &file, &name, &plugin)
}

/// The folder of the plugin; a package is unpacked beside the configuration.
fn folder(args: &Args, file: &Path) -> Result<PathBuf, Failure> {
    let is_package = args.path.extension().is_some_and(|extension| extension == "lbpkg");
    if !args.path.exists() {
        let message = format!("`{}` does not exist", args.path.display());
        return Err(Failure::new(message).exit(Exit::Usage));
    }
    if !is_package {
        return Ok(std::fs::canonicalize(&args.path)?);
    }
    let stem = args.path.file_stem().unwrap_or_default();
    let folder = file.parent().unwrap_or(file).join("plugins").join(stem);
    if folder.exists() {
        return Err(Failure::new(format!("`{}` already exists", folder.display()))
            .hint("remove it to unpack the package again, or add the folder itself"));
    }
    install::unpack(&args.path, &folder, &args.python)?;
    Ok(std::fs::canonicalize(&folder)?)
}

fn report(args: &Args, file: &Path, name: &str, plugin: &Plugin) -> Outcome {
    if args.json {
        output::print_json(&serde_json::json!({"name": name, "plugin": plugin.path(),
            "version": plugin.version, "sdk_version": plugin.sdk_version,
            "runners": plugin.runners, "config": file}))?;
    } else {
        let head = ["RUNNER", "DIALECT", "ASKS FOR"].map(str::to_owned).to_vec();
        let rows = plugin.runners.iter().map(|runner| {
            let id = format!("plugin:{}/{}", plugin.path(), runner.name);
            vec![id, runner.kind.clone(), asks_for(&runner.permissions)]
        });
        output::print(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
    }
    let added = format!("added `[runners.{name}]` to `{}`", file.display());
    let Some(runner) = plugin.runners.first().map(|runner| &runner.name) else {
        output::note(&added);
        return Ok(Exit::Ok);
    };
    let grant = match asks_for_models(plugin) {
        true => "\ngrant = { models = [\"default\"] }",
        false => "",
    };
    output::note(&format!(
        "{added}\nhint: bind it with\n[agents.{name}]\nrunner = \"plugin:{}/{runner}\"\nevents = []{grant}",
        plugin.path()
    ));
    Ok(Exit::Ok)
}

fn asks_for_models(plugin: &Plugin) -> bool {
    let first = plugin.runners.first().and_then(|runner| runner.permissions["models"].as_array());
    first.is_some_and(|operations| !operations.is_empty())
}

/// The permissions of a manifest, in one line.
pub(crate) fn asks_for(permissions: &serde_json::Value) -> String {
    let asked = permissions.as_object().into_iter().flatten().filter_map(|(area, operations)| {
        let operations: Vec<&str> =
            operations.as_array()?.iter().filter_map(serde_json::Value::as_str).collect();
        (!operations.is_empty()).then(|| format!("{area}: {}", operations.join(", ")))
    });
    let asked: Vec<String> = asked.collect();
    if asked.is_empty() { "nothing".to_owned() } else { asked.join("; ") }
}
