//! `greenroom doctor`: says what the host finds on this machine.

use crate::client::DEFAULT_DATA;
use crate::failure::{Exit, Outcome};
use crate::{env, output, wiring};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Check this machine, the data folder and the runners, and say what is in force
#[derive(Debug, clap::Args)]
#[command(after_help = "\
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

/// Looks at everything that a host depends on and changes nothing.
pub async fn run(args: &Args) -> Outcome {
    let named = args.data.clone().or_else(|| env::get(env::DATA).map(PathBuf::from));
    let data = named.unwrap_or_else(|| DEFAULT_DATA.into());
    let mut findings = vec![isolation(), data_folder(&data), host(&data)];
    match wiring::load(args.config.as_deref()) {
        Ok((config, loaded)) => {
            let file = loaded.map(|loaded| loaded.path().display().to_string());
            let text = file.unwrap_or_else(|| "none, the defaults are used".to_owned());
            findings.push(finding("configuration", true, &text));
            for (name, value) in config.limits.values() {
                findings.push(finding(&format!("limits.{name}"), true, &value.to_string()));
            }
        }
        Err(failure) => findings.push(finding("configuration", false, &failure.to_string())),
    }
    let well = findings.iter().all(|finding| finding["ok"] == true);
    if args.json {
        output::print_json(&json!({"ok": well, "findings": findings}))?;
    } else {
        let row = |finding: &Value| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            let mark = if finding["ok"] == true { "ok" } else { "problem" };
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

fn isolation() -> Value {
    let found = greenroom_runtime::isolation_available();
    finding("sandbox", found.starts_with("landlock"), &found)
}

fn data_folder(data: &Path) -> Value {
    let shown = data.display();
    match std::fs::metadata(data) {
        Ok(folder) if folder.is_dir() => {
            let bytes: u64 = ["greenroom.db", "greenroom.db-wal"]
                .iter()
                .filter_map(|file| std::fs::metadata(data.join(file)).ok())
                .map(|file| file.len())
                .sum();
            finding("data folder", true, &format!("{shown}, {} KiB of facts", bytes / 1024))
        }
        Ok(_) => finding("data folder", false, &format!("{shown} is not a folder")),
        Err(_) => finding("data folder", true, &format!("{shown}, made at the first start")),
    }
}

/// Whether a host answers for that folder.
fn host(data: &Path) -> Value {
    let text = std::fs::read_to_string(data.join("host.json")).unwrap_or_default();
    let file: Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(address) = file["address"].as_str() else {
        return finding("host", true, "not running");
    };
    match std::net::TcpStream::connect(address) {
        Ok(_) => finding("host", true, &format!("listens on {address}, pid {}", file["pid"])),
        Err(error) => finding("host", false, &format!("{address} does not answer: {error}")),
    }
}
