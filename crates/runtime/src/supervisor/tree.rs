//! The process tree below this process, as `/proc` shows it.
//!
//! Invariant: this process is the subreaper, so everything that the runner starts stays below it, detached or
//! not.

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

/// Every process below this one, parents before children.
pub(super) fn descendants() -> Vec<Pid> {
    walk(usize::MAX, |_| {})
}

/// The same, if there are not more than `max`: the exact number of many more does not matter.
pub(super) fn descendants_within(max: usize) -> Option<Vec<Pid>> {
    let found = walk(max, |_| {});
    (found.len() <= max).then_some(found)
}

/// The same, each visited before its children are read, until there are more than `max`.
fn walk(max: usize, mut visit: impl FnMut(Pid)) -> Vec<Pid> {
    let own = rustix::process::getpid();
    let by_scan = children_of(own).is_none().then(children_by_scan);
    let mut found = vec![own];
    let mut next = 0;
    while next < found.len() && found.len() - 1 <= max {
        if next > 0 {
            visit(found[next]);
        }
        let children = match &by_scan {
            Some(scan) => scan.get(&found[next]).cloned(),
            None => children_of(found[next]),
        };
        found.extend(children.unwrap_or_default());
        next += 1;
    }
    found.remove(0);
    found
}

/// The flag of a process that is ending, in field 9 of `proc_pid_stat(5)`.
const PF_EXITING: u64 = 0x4;

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) pid: Pid,
    /// A zombie or a process that becomes one: it has no memory and shows no descriptors.
    pub(super) has_ended: bool,
    pub(super) threads: u64,
    pub(super) resident_bytes: u64,
    /// Of the process and of its children that were awaited.
    pub(super) cpu_ticks: u64,
}

/// `None` when it has just ended.
pub(super) fn stat(pid: Pid) -> Option<ProcessStat> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parse_stat(pid, &text)
}

/// The process, or one of its threads if the first one has ended: that one shows neither memory nor descriptors.
pub(super) fn living(pid: Pid) -> Pid {
    let has_ended = |pid| stat(pid).is_none_or(|stat| stat.has_ended);
    if stat(pid).is_none_or(|stat| !stat.has_ended || stat.threads < 2) {
        return pid;
    }
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid()));
    let threads = threads.into_iter().flatten().flatten();
    let mut threads = threads.filter_map(|thread| thread.file_name().to_str().and_then(parse_pid));
    threads.find(|thread| !has_ended(*thread)).unwrap_or(pid)
}

/// What the kernel needs to map the memory of a process. It can be much more than that memory.
pub(super) fn page_table_bytes(pid: Pid) -> u64 {
    let status = fs::read(format!("/proc/{}/status", pid.as_raw_pid())).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let tables = status.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    let kib = tables.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn parse_stat(pid: Pid, text: &[u8]) -> Option<ProcessStat> {
    // The name in parentheses may contain anything; what follows does not.
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first of these is field 3 of `proc_pid_stat(5)`.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let cpu_ticks = (14..=17).filter_map(number).sum();
    Some(ProcessStat {
        pid,
        has_ended: matches!(*fields.first()?, "Z" | "X") || number(9)? & PF_EXITING != 0,
        threads: number(20)?,
        resident_bytes: number(24)? * rustix::param::page_size() as u64,
        cpu_ticks,
    })
}

pub(super) fn signal_all(signal: Signal) {
    for pid in descendants() {
        // A process that is gone already is fine.
        let _ = kill_process(pid, signal);
    }
}

/// Kills until nothing is left. Children that were being started become ours once their parent is dead, so
/// the next round sees them; while there are new ones, there is no pause.
pub(super) fn kill() {
    let mut seen = HashSet::new();
    let mut pause = Duration::from_micros(200);
    loop {
        halt();
        reap(None);
        let tree = descendants();
        if tree.is_empty() {
            return;
        }
        let mut fresh = false;
        for pid in tree {
            let _ = kill_process(pid, Signal::KILL);
            fresh |= seen.insert(pid);
        }
        if !fresh {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Stops everything first: in a fork bomb, the living would replace each process that is killed. Each process
/// is stopped before its children are read, so that it cannot fork more.
fn halt() {
    let mut seen = HashSet::new();
    loop {
        let before = seen.len();
        walk(usize::MAX, |pid| {
            if seen.insert(pid) {
                let _ = kill_process(pid, Signal::STOP);
            }
        });
        if seen.len() == before {
            return;
        }
    }
}

/// Reaps every child that has ended; returns how `wanted` ended, if it was among them.
pub(super) fn reap(wanted: Option<Pid>) -> Option<WaitStatus> {
    let mut found = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if Some(pid) == wanted {
            found = Some(status);
        }
    }
    found
}

fn children_of(pid: Pid) -> Option<Vec<Pid>> {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())).ok()?;
    let mut children = Vec::new();
    for task in tasks.flatten() {
        let text = fs::read_to_string(task.path().join("children")).ok()?;
        children.extend(text.split_whitespace().filter_map(parse_pid));
    }
    Some(children)
}

/// For kernels built without `children` files; slower.
fn children_by_scan() -> HashMap<Pid, Vec<Pid>> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(parse_pid) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in parentheses may contain anything; the parent is the second field after it.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        if let Some(parent) = parent.and_then(parse_pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_move_the_fields() {
        let pid = Pid::from_raw(42).unwrap();
        let text =
            b"42 (a ) R \xff) S 1 42 42 0 -1 4194560 100 0 0 0 7 3 2 1 20 0 5 0 900 1000 3 1844";
        let page = rustix::param::page_size() as u64;
        let expected = ProcessStat {
            pid,
            has_ended: false,
            threads: 5,
            resident_bytes: 3 * page,
            cpu_ticks: 7 + 3 + 2 + 1,
        };
        assert_eq!(parse_stat(pid, text), Some(expected));
        let exiting = b"42 (x) R 1 42 42 0 -1 4194564 100 0 0 0 7 3 2 1 20 0 1 0 900 1000 0 1844";
        assert!(parse_stat(pid, exiting).unwrap().has_ended);
        assert_eq!(parse_stat(pid, b"42 (x) Z 1"), None);
        let own = stat(rustix::process::getpid()).unwrap();
        assert!(own.threads >= 1 && own.resident_bytes > 0 && !own.has_ended);
    }
}
