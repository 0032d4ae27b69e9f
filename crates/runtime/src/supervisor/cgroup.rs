//! A cgroup (version 2) for one child, where this process may create one.
//!
//! Invariant: either both limits are set on a cgroup of the child's own, or there is none; it is removed with
//! this value, when no process is left in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Threads above the limit until the supervisor has measured them.
const THREADS_SLACK: u64 = 64;

pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// In the cgroup of this process, or beside it: whichever delegates its controllers.
    pub(super) fn create(threads: u64, memory_mb: u64) -> Option<Self> {
        let own = own_group()?;
        let name = format!("greenroom-{:016x}", getrandom::u64().ok()?);
        let places = [Some(own.as_path()), own.parent()];
        places
            .into_iter()
            .flatten()
            .find_map(|place| create_in(place, &name, threads, memory_mb).ok())
    }

    /// The file that a process writes `0` to in order to enter.
    pub(super) fn entrance(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    pub(super) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.0.join("memory.events")).unwrap_or_default();
        let killed = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        killed.is_some_and(|count| count.trim() != "0")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = set(&self.0, "cgroup.kill", "1");
        // The kernel removes killed processes from the cgroup a little later than their parent reaps them.
        for _ in 0..50 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => return,
            }
        }
    }
}

fn create_in(place: &Path, name: &str, threads: u64, memory_mb: u64) -> io::Result<Cgroup> {
    // Refused where it is set already, or where the cgroup has processes.
    let _ = set(place, "cgroup.subtree_control", "+memory +pids");
    let group = place.join(name);
    fs::create_dir(&group)?;
    let group = Cgroup(group);
    set(&group.0, "memory.max", &(memory_mb * 1024 * 1024).to_string())?;
    // Threads count here. A little more, so that the supervisor can name the limit.
    set(&group.0, "pids.max", &threads.saturating_add(THREADS_SLACK).to_string())?;
    // Not every kernel has these two.
    let _ = set(&group.0, "memory.swap.max", "0");
    let _ = set(&group.0, "memory.oom.group", "1");
    Ok(group)
}

/// Writes to an existing file only: outside of a cgroup a write would create one.
fn set(group: &Path, file: &str, value: &str) -> io::Result<()> {
    let mut file = fs::File::options().write(true).open(group.join(file))?;
    io::Write::write_all(&mut file, value.as_bytes())
}

fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    locate(&mounts, &groups)
}

/// From the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn locate(mounts: &str, groups: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| place.split(' ').nth(4))?
    })?;
    Some(Path::new(mount).join(own.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        let found = locate(mounts, "4:memory:/x\n0::/system.slice/greenroom.service\n");
        let expected = "/sys/fs/cgroup/unified/system.slice/greenroom.service";
        assert_eq!(found.as_deref(), Some(Path::new(expected)));
        assert_eq!(locate("24 1 0:22 / /proc rw - proc proc rw\n", "0::/\n"), None);
    }

    #[test]
    fn without_the_controllers_there_is_no_group() {
        let folder = tempfile::tempdir().unwrap();
        assert!(create_in(folder.path(), "greenroom-1", 8, 64).is_err());
        // Undoes what was begun.
        assert!(!folder.path().join("greenroom-1").exists());
    }
}
