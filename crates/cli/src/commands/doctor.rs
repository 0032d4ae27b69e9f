//! `greenroom doctor`: checks the machine, the configuration and the running host.
//!
//! Invariant: changes nothing.

mod deliveries;
mod running;
mod sandbox;
mod sizes;

use crate::client::DEFAULT_DATA;
use crate::failure::{Exit, Outcome};
use crate::{output, warnings, wiring};
use futures_util::future::join;
use greenroom_config::env;
use greenroom_config::{self as config, Config, Launch, Limits, Loaded};
use greenroom_host::checks::{self, Check};
use greenroom_models::Model;
use greenroom_store::{Location, Probed, Store, StoreError};
use running::Running;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Free space below which the disk of the data folder counts as a problem.
const FREE_MIB_MIN: u64 = 256;

/// Check this machine, the host, its database, models, surfaces and runners
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks now: asks the host of the data folder when one runs, which connects to its models and surfaces; without
one it does so itself, and looks whether the runners could start. No model is called, nothing is sent.
`--json` also has every limit and how much the database holds.

Examples:
  greenroom doctor
  greenroom doctor --config greenroom.toml --json")]
pub struct Args {
    /// Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data folder [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Checks everything that a host depends on.
pub async fn run(args: &Args) -> Outcome {
    let named = args.data.clone().or_else(|| env::get(env::DATA).map(PathBuf::from));
    let data = named.unwrap_or_else(|| DEFAULT_DATA.into());
    let mut findings = sandbox::look().await;
    findings.extend([data_folder(&data), disk(&data)]);
    let (host, running) = Running::find(&data).await;
    findings.push(host);
    let listening = running.as_ref().and_then(|running| running.address);
    let (mut limits, mut kept) = (None, None);
    let config = match wiring::load(args.config.as_deref()) {
        Ok((config, loaded)) => {
            findings.extend(configuration(loaded.as_ref(), running.as_ref()));
            // The address may also come from the command line, which the warnings of the file do not cover.
            let elsewhere = listening.filter(|address| *address != config.server.listen);
            let exposed = elsewhere.and_then(|address| config.server.exposed(address));
            findings.extend(exposed.map(|text| finding("address", false, &text)));
            Some(config)
        }
        Err(failure) => {
            findings.push(finding("configuration", false, &failure.to_string()));
            // The valid parts are still checked.
            config::find_file(args.config.as_deref())
                .and_then(|path| config::load_lenient(&path, &wiring::known()))
        }
    };
    let store = config.as_ref().map(|config| probe_store(config, &data));
    findings.extend(match (&running, &config, &store) {
        (Some(running), config, _) => running.findings(config.as_ref()).await,
        (None, Some(config), Some(store)) => without_host(config, store).await,
        (None, ..) => Vec::new(),
    });
    if let (Some(config), Some(store)) = (config, store) {
        let place = wiring::artifacts(&config, &data);
        let sizes = store.ok().flatten().and_then(|probed| probed.sizes);
        findings.push(sizes::artifacts(&place, sizes.as_ref()));
        if let Some(sizes) = sizes {
            findings.push(sizes::summary(&sizes));
            kept = Some(sizes::as_json(&sizes));
        }
        findings.push(finding("limits", true, &changed(&config.limits)));
        limits = Some(config.limits);
    }
    let well = findings.iter().all(|finding| finding["ok"] == true);
    if args.json {
        let limits: serde_json::Map<String, Value> = limits
            .iter()
            .flat_map(Limits::values)
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        let report = json!({"ok": well, "findings": findings, "limits": limits, "sizes": kept});
        output::print_json(&report)?;
    } else {
        let row = |finding: &Value| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            let mark = if finding["ok"] == true { "ok" } else { "problem" };
            let mark = finding["state"].as_str().unwrap_or(mark);
            vec![mark.to_owned(), text("what"), text("found")]
        };
        let rows: Vec<Vec<String>> = findings.iter().map(row).collect();
        output::print(&output::table(&rows))?;
    }
    Ok(if well { Exit::Ok } else { Exit::Failure })
}

fn finding(what: &str, ok: bool, found: &str) -> Value {
    json!({"what": what, "ok": ok, "found": found})
}

fn data_folder(data: &Path) -> Value {
    let shown = data.display();
    match std::fs::metadata(data) {
        Ok(folder) if folder.is_dir() => {
            let problem = unwritable(data).map(|problem| format!("{shown}: {problem}"));
            finding("data folder", problem.is_none(), &problem.unwrap_or(shown.to_string()))
        }
        Ok(_) => finding("data folder", false, &format!("{shown} is not a folder")),
        Err(_) => finding("data folder", true, &format!("{shown}, created at the first start")),
    }
}

/// Why a folder, or the parent in which it will be created, is not writable.
fn unwritable(folder: &Path) -> Option<String> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let there = absolute.ancestors().find(|path| path.exists())?;
    if !there.is_dir() {
        return Some(format!("`{}` is not a folder", there.display()));
    }
    let access = rustix::fs::access(there, rustix::fs::Access::WRITE_OK);
    access.err().map(|error| format!("`{}` is not writable: {error}", there.display()))
}

/// The free space where the data folder is, or will be.
fn disk(data: &Path) -> Value {
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let there = absolute.ancestors().find(|path| path.exists()).unwrap_or(data);
    match rustix::fs::statvfs(there) {
        Ok(disk) => {
            let mib = (disk.f_bavail.saturating_mul(disk.f_frsize)) >> 20;
            finding("disk", mib >= FREE_MIB_MIN, &format!("{mib} MiB free"))
        }
        Err(error) => finding("disk", false, &format!("free space unknown: {error}")),
    }
}

/// The file, its warnings, and whether the running host uses it.
fn configuration(loaded: Option<&Loaded>, running: Option<&Running>) -> Vec<Value> {
    let path = loaded.map(|loaded| loaded.path().to_owned());
    let shown = path.as_ref().map(|path| path.display().to_string());
    let mut text = shown.unwrap_or_else(|| "none, the defaults are used".to_owned());
    let mut is_used = true;
    if let Some(running) = running {
        let here = path.and_then(|path| std::path::absolute(path).ok());
        is_used = here == running.config;
        text += &match (&running.config, is_used) {
            (Some(_), true) => "; the running host uses it".to_owned(),
            (None, true) => "; the running host has none either".to_owned(),
            (Some(other), false) => format!("; the running host uses `{}`", other.display()),
            (None, false) => "; the running host uses none".to_owned(),
        };
    }
    let warnings = loaded.map(warnings::all).unwrap_or_default();
    let warnings = warnings.iter().map(|warning| {
        let line = warning.line.map_or(String::new(), |line| format!("line {line}: "));
        let mut found = finding("configuration", false, &format!("{line}{}", warning.message));
        if warning.message.contains(warnings::NETWORK_ADVICE) {
            // Works as before until a later version.
            found["ok"] = true.into();
            found["state"] = "note".into();
        }
        found
    });
    std::iter::once(finding("configuration", is_used, &text)).chain(warnings).collect()
}

/// Whether the database, models and surfaces are reachable, and the commands of runners exist.
async fn without_host(config: &Config, probed: &ProbeResult) -> Vec<Value> {
    let runner = |(name, runner): (&String, &config::Runner)| {
        let what = format!("runner {name}");
        let Launch::Process(process) = &runner.launch else {
            return finding(&what, true, "connects to the host; checked while a host runs");
        };
        let problem = match process.dir.is_dir() {
            true => warnings::missing(process),
            false => Some(format!("folder `{}` does not exist", process.dir.display())),
        };
        let reach = process.network_access();
        let well = format!("its command exists and reaches {reach}; checked while a host runs");
        finding(&what, problem.is_none(), problem.as_deref().unwrap_or(&well))
    };
    let runners = config.runners.iter().map(runner);
    // An invalid model is reported as a mistake in the configuration.
    let models = wiring::models(config).into_iter().filter_map(|model| Model::new(model).ok());
    let models: Vec<Arc<Model>> = models.map(Arc::new).collect();
    let surfaces = wiring::surfaces(config);
    let (models, surfaces) = join(checks::models(&models), checks::surfaces(&surfaces)).await;
    let outside = models.iter().chain(&surfaces).map(checked);
    std::iter::once(store(probed)).chain(runners).chain(outside).collect()
}

fn checked(check: &Check) -> Value {
    finding(&format!("{} {}", check.kind, check.name), check.ok, &check.message)
}

/// The database; `None` if it does not exist yet.
type ProbeResult = Result<Option<Probed>, (String, StoreError)>;

fn probe_store(config: &Config, data: &Path) -> ProbeResult {
    let options = wiring::store(config, data);
    match &options.location {
        Location::Sqlite(path) if !path.exists() => Ok(None),
        location => {
            let probed = Store::probe(&options).map(Some);
            probed.map_err(|error| (location.name(), error))
        }
    }
}

fn store(probed: &ProbeResult) -> Value {
    match probed {
        Ok(Some(probed)) => finding("database", true, &probed.description),
        Ok(None) => finding("database", true, "none yet, created at the first start"),
        Err((name, error)) => finding("database", false, &format!("{name}: {error}")),
    }
}

/// The limits that differ from their defaults.
fn changed(limits: &Limits) -> String {
    let values = limits.values().into_iter().zip(Limits::ALL);
    let changed = values.filter(|((_, value), limit)| *value != limit.default);
    let changed: Vec<String> =
        changed.map(|((name, value), _)| format!("{name} = {value}")).collect();
    match changed.is_empty() {
        true => "defaults".to_owned(),
        false => changed.join(", "),
    }
}
