//! Recovery: supervisors that an earlier host left behind.
//!
//! Invariant: a lock file that can be locked has no supervisor, and hence no runner process.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until the supervisors of earlier hosts are gone, and removes their files. Returns how many are left
/// after `wait`.
pub async fn wait_for_orphans(run_dir: &Path, wait: Duration) -> usize {
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let held = lock_files(run_dir).into_iter().filter(|file| !removed(file)).count();
        if held == 0 || tokio::time::Instant::now() >= deadline {
            return held;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn lock_files(run_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run_dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")).collect()
}

/// Removes the file and its private folder, unless a supervisor holds it.
fn removed(lock: &Path) -> bool {
    let Ok(file) = File::open(lock) else { return true };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    // Leftovers cost space, not safety.
    crate::supervisor::remove_private(&lock.with_extension("private"));
    let _ = std::fs::remove_file(lock);
    true
}
