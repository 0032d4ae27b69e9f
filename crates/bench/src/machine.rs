//! Where and of what the numbers are.
//!
//! Invariant: what cannot be found out reads `unknown`; nothing here fails a measurement.

use serde::Serialize;
use std::path::Path;
use std::process::Command;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[derive(Debug, Serialize)]
pub(super) struct Machine {
    processor: String,
    cores: usize,
    memory: String,
    kernel: String,
    disk: String,
    version: &'static str,
    commit: String,
    build: &'static str,
    date: String,
}

impl Machine {
    pub(super) fn look(dir: &Path) -> Self {
        let now =
            OffsetDateTime::now_utc().replace_nanosecond(0).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let uname = rustix::system::uname();
        Self {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: field("/proc/meminfo", "MemTotal"),
            kernel: uname.release().to_string_lossy().into_owned(),
            disk: disk(dir),
            version: env!("CARGO_PKG_VERSION"),
            commit: commit().unwrap_or_else(unknown),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            date: now.format(&Rfc3339).unwrap_or_else(|_| unknown()),
        }
    }

    pub(super) fn markdown(&self) -> String {
        let Self { processor, cores, memory, kernel, disk, version, commit, build, date } = self;
        format!(
            "- Machine: {processor}, {cores} cores, {memory}, Linux {kernel}, {disk}\n\
             - Program: greenroom {version}, {build} build; the folder it was measured in is at commit {commit}\n\
             - Date: {date}\n"
        )
    }
}

/// The load average of the last minute and of the last five.
pub(super) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// The file system that holds a folder, as the list of mounts names it.
fn disk(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let rows = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let holds = rows.filter(|row| row.len() > 2 && dir.starts_with(row[1]));
    let found = holds.max_by_key(|row| row[1].len());
    found.map_or_else(unknown, |row| format!("{} on {}", row[2], row[0]))
}

fn field(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().filter_map(|line| line.split_once(':'));
    let value = value.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    value.map(str::to_owned).next().unwrap_or_else(unknown)
}

#[expect(clippy::disallowed_methods, reason = "git alone knows which commit this folder is at")]
fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn unknown() -> String {
    "unknown".to_owned()
}
