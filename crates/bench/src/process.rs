//! What the system says about processes: CPU time, memory, family.
//!
//! Invariant: read from /proc alone; what cannot be read is an error or nothing, never zero.

use anyhow::Context;
use std::path::Path;
use std::time::{Duration, Instant};

/// Processor time of a process so far, user and system, its ended threads included.
pub(super) fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = after_name(&text).context("`stat` of a process cannot be read")?;
    let ticks: u64 =
        fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    let coarse =
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
    // Ticks are hundredths of a second; the scheduler counts nanoseconds, of threads that still live.
    Ok(scheduled(pid).unwrap_or_default().max(coarse))
}

/// Resident memory of a process in bytes.
pub(super) fn resident(pid: u32) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("a process has no memory")? * 1024)
}

/// The processes below one, and theirs.
pub(super) fn family(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child));
        next += 1;
    }
    found
}

/// Waits until no process works with a folder any more: supervisors outlive a killed host for a moment.
pub(super) fn wait_until_gone(folder: &Path, patience: Duration) {
    let needle = folder.as_os_str().as_encoded_bytes();
    let uses = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let here = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        memchr::memmem::find(&line, needle).is_some() || here.starts_with(folder)
    };
    let until = Instant::now() + patience;
    while all().any(uses) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn scheduled(pid: u32) -> Option<Duration> {
    let mut total = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        total += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(total))
}

fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    after_name(&text)?.get(1)?.parse().ok()
}

/// The fields of `stat` behind the name, which may hold anything.
fn after_name(stat: &str) -> Option<Vec<&str>> {
    Some(stat.rsplit_once(") ")?.1.split(' ').collect())
}
