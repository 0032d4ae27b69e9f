//! Information about processes from `/proc`.
//!
//! Invariant: reads only. A process that cannot be inspected is found by the lock it holds, if any.

use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub resident_bytes: u64,
    pub peak_bytes: u64,
}

pub fn memory(pid: u32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .unwrap_or_else(|error| panic!("process {pid} cannot be measured: {error}"));
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kilobytes.unwrap_or_else(|| panic!("process {pid} has no {name}")) * 1024
    };
    Memory { resident_bytes: field("VmRSS:"), peak_bytes: field("VmHWM:") }
}

/// Describes processes that use a data folder but do not belong to the running host.
pub fn leftovers(data: &Path, host: Option<u32>) -> Vec<String> {
    let mut leftovers = Vec::new();
    for pid in all() {
        let is_own = pid == std::process::id() || host.is_some_and(|host| descends(pid, host));
        if let Some(usage) = usage(pid, data).filter(|_| !is_own) {
            leftovers.push(format!("process {pid} ({}) {usage}", name(pid)));
        }
    }
    if host.is_none() {
        let held = locks(data).into_iter().filter(|lock| is_held(lock));
        leftovers.extend(held.map(|lock| format!("{} is held", lock.display())));
    }
    leftovers
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("processes can be listed").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// How a process uses a folder: by its environment, its working directory or an open file.
fn usage(pid: u32, folder: &Path) -> Option<String> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let environment = fs::read(process.join("environ")).unwrap_or_default();
    let wanted = folder.as_os_str().as_bytes();
    if environment.windows(wanted.len()).any(|part| part == wanted) {
        return Some("has the folder in its environment".to_owned());
    }
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let links = descriptors.map(|entry| entry.path()).chain([process.join("cwd")]);
    let mut targets = links.filter_map(|link| fs::read_link(link).ok());
    let target = targets.find(|target| target.starts_with(folder))?;
    Some(format!("has {} open", target.display()))
}

fn descends(pid: u32, ancestor: u32) -> bool {
    let mut current = pid;
    while current > 1 {
        if current == ancestor {
            return true;
        }
        let Some(parent) = parent(current) else { return false };
        current = parent;
    }
    false
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything; the parent is the second field after it.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn name(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned()
}

fn locks(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("run")).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")).collect()
}

fn is_held(lock: &Path) -> bool {
    let Ok(file) = fs::File::open(lock) else { return false };
    flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
}
