//! Gives a child of a host that runs as root another user, and a private folder that this user can reach.
//!
//! Invariant: the user of the child is decided and tried before anything is prepared; where it cannot be
//! another one, it stays the same, with a warning.

use super::job::Job;
use super::reach::{self, Lift, Needed};
use rustix::fs::{Access, AtFlags, CWD, Gid, Uid, accessat};
use rustix::io;
use rustix::process::getuid;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// `nobody`, the user that should own no file.
pub(super) const NOBODY: u32 = 65_534;

/// The user of a child, and what is needed for it.
pub(super) struct Chosen {
    /// Absent if it stays the user of this process.
    pub(super) user: Option<u32>,
    pub(super) lift: Lift,
}

/// The wanted user of a program.
pub(super) fn wanted(job: &Job) -> u32 {
    match getuid() {
        root if root.is_root() && job.confine.is_some() && job.sandbox => NOBODY,
        user => user.as_raw(),
    }
}

/// Decides on the user of a child.
pub(super) fn choose(job: &Job, needed: &Needed, warnings: &mut Vec<String>) -> Chosen {
    let stays_the_same = Chosen { user: None, lift: Lift::default() };
    if wanted(job) == getuid().as_raw() {
        return stays_the_same;
    }
    let unreachable = as_nobody(|| {
        let closed = |(path, access): &&(PathBuf, Access)| !Needed::is_open(path, *access);
        needed.paths.iter().filter(closed).cloned().collect::<Vec<_>>()
    });
    let lift = match unreachable {
        Err(error) => Err(format!("this process cannot become another user: {error}")),
        Ok(unreachable) if unreachable.is_empty() => Ok(Lift::default()),
        Ok(unreachable) => needed.lift(&unreachable),
    };
    match lift {
        Ok(lift) => {
            warnings.extend(unwritable(job, &lift));
            Chosen { user: Some(NOBODY), lift }
        }
        Err(why) => {
            warnings.push(format!("the program runs as root without capabilities: {why}"));
            stays_the_same
        }
    }
}

/// Environment that is of no use to the other user.
fn unwritable(job: &Job, lift: &Lift) -> Vec<String> {
    let own = Some(&job.dir).filter(|dir| job.owns_dir && !dir.as_os_str().is_empty());
    let both = Access::READ_OK | Access::WRITE_OK;
    let closed = |path: &&PathBuf| match lift.closed.iter().any(|closed| path.starts_with(closed)) {
        true => !reach::is_open_within(path, path, both),
        false => !as_nobody(|| Needed::is_open(path, both)).unwrap_or(false),
    };
    let wanted = job.paths.iter().chain(own).filter(closed);
    wanted
        .map(|path| {
            let path = path.display();
            format!("`{path}` is not readable and writable for user {NOBODY}, who runs the program")
        })
        .collect()
}

/// Creates the folder that contains `home` and `tmp`. A user who cannot enter the run folder gets one in the
/// system's temporary folder, and a link beside the lock points to it.
pub(super) fn private_folder(job: &Job, user: Option<u32>) -> std::io::Result<PathBuf> {
    let Some(user) = user else {
        std::fs::create_dir_all(&job.private)?;
        return Ok(job.private.clone());
    };
    let make = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
    let parent = job.private.parent().unwrap_or(Path::new("/"));
    let reachable = as_nobody(|| accessat(CWD, parent, Access::EXEC_OK, AtFlags::EACCESS).is_ok());
    let folder = match reachable {
        Ok(true) => job.private.clone(),
        _ => {
            let folder = elsewhere(&job.private);
            std::os::unix::fs::symlink(&folder, &job.private)?;
            folder
        }
    };
    make(&folder)?;
    for path in [folder.join("home"), folder.join("tmp"), folder.clone()] {
        if path != folder {
            make(&path)?;
        }
        rustix::fs::chown(&path, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)))?;
    }
    Ok(folder)
}

/// Removes what `private_folder` has created, even if its link is gone. Leftovers cost space, not safety.
pub(crate) fn remove_private(private: &Path) {
    let folder = std::fs::read_link(private).unwrap_or_else(|_| elsewhere(private));
    // Of a link this removes only the link.
    let _ = std::fs::remove_dir_all(private);
    let _ = std::fs::remove_dir_all(folder);
}

/// The folder outside the run folder; its name is as random as that of the lock.
fn elsewhere(private: &Path) -> PathBuf {
    let name = private.file_stem().unwrap_or_default().to_string_lossy();
    std::env::temp_dir().join(format!("greenroom-{name}"))
}

/// Makes this process that user's for good.
pub(super) fn become_user(user: u32) -> Result<(), String> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    // Programs reopen their standard streams by name; one that cannot be given away stays as it is.
    let _ = rustix::fs::fchown(std::io::stdin(), Some(uid), Some(gid));
    let _ = rustix::fs::fchown(std::io::stdout(), Some(uid), Some(gid));
    let _ = rustix::fs::fchown(std::io::stderr(), Some(uid), Some(gid));
    set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(gid, gid, gid))
        .and_then(|()| set_thread_res_uid(uid, uid, uid))
        .map_err(|error| format!("cannot become user {user}: {error}"))
}

/// Reads the file system with the other user's rights, then switches back. This process has one thread.
pub(super) fn as_nobody<T>(look: impl FnOnce() -> T) -> io::Result<T> {
    let (nobody, no_group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[])?;
    set_thread_res_gid(None, no_group, None)?;
    let seen = set_thread_res_uid(None, nobody, None).map(|()| look());
    set_thread_res_uid(None, Uid::ROOT, None)?;
    set_thread_res_gid(None, Gid::ROOT, None)?;
    seen
}
