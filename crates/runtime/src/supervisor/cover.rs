//! Covers paths with empty ones, in a mount namespace of the runner's own.
//!
//! Invariant: all or nothing. Where the system does not allow it, nothing changes, and the folders around
//! what is hidden have to be allowed entry by entry.

use super::reach::Lift;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};
use rustix::thread::UnshareFlags;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Covers `hidden`; what is in `kept` beneath it stays visible.
pub(super) fn cover(hidden: &[PathBuf], kept: &[&Path], changes_user: bool) -> io::Result<()> {
    let is_outermost =
        |path: &&PathBuf| !hidden.iter().any(|other| *path != other && path.starts_with(other));
    let covers: Vec<&PathBuf> = hidden.iter().filter(is_outermost).collect();
    enter_namespace(changes_user)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let mut open: Vec<(&Path, OwnedFd)> = Vec::new();
    for path in kept.iter().filter(|path| covers.iter().any(|cover| path.starts_with(cover))) {
        open.push((path, opened(path)?));
    }
    mount_open(&covers, &open, &BTreeMap::new()).inspect_err(|_| {
        for path in &covers {
            // What is not covered yet needs no uncovering.
            let _ = unmount(path.as_path(), UnmountFlags::DETACH);
        }
    })
}

/// Whether this process may cover these folders: tries it in a namespace of its own.
pub(super) fn is_allowed(folders: &[PathBuf]) -> io::Result<()> {
    enter_namespace(true)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    for path in folders {
        mount("none", path.as_path(), "tmpfs", SAFE, c"mode=0755,size=1m")?;
        unmount(path.as_path(), UnmountFlags::DETACH)?;
    }
    Ok(())
}

/// Covers folders that the runner's user cannot enter with ones that it can; they contain what is in `kept`
/// and the links, at their paths, and nothing else.
pub(super) fn lift(lift: &Lift, kept: &[&Path]) -> io::Result<()> {
    enter_namespace(true)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let mut open: Vec<(&Path, OwnedFd)> = Vec::new();
    for path in kept.iter().filter(|path| lift.closed.iter().any(|closed| path.starts_with(closed)))
    {
        let is_within = |other: &&Path| other != path && path.starts_with(other);
        if !kept.iter().any(is_within) && path.exists() {
            open.push((path, opened(path)?));
        }
    }
    mount_open(&lift.closed.iter().collect::<Vec<_>>(), &open, &lift.links)
}

fn opened(path: &Path) -> io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Mounts all of it with open permissions, whatever umask the host has.
fn mount_open(
    covers: &[&PathBuf],
    open: &[(&Path, OwnedFd)],
    links: &BTreeMap<PathBuf, PathBuf>,
) -> io::Result<()> {
    let mask = rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let mounted = mount_all(covers, open, links);
    rustix::process::umask(mask);
    mounted
}

fn mount_all(
    covers: &[&PathBuf],
    open: &[(&Path, OwnedFd)],
    links: &BTreeMap<PathBuf, PathBuf>,
) -> io::Result<()> {
    let folder = |path: &Path| std::fs::create_dir_all(path).map_err(|_| io::Errno::IO);
    let around = |path: &Path| path.parent().map_or(Ok(()), folder);
    for path in covers {
        if path.is_dir() {
            mount("none", path.as_path(), "tmpfs", SAFE, c"mode=0755,size=1m")?;
        } else {
            mount_bind("/dev/null", path.as_path())?;
        }
    }
    for (path, descriptor) in open {
        if FileType::from_raw_mode(rustix::fs::fstat(descriptor)?.st_mode).is_dir() {
            folder(path)?;
        } else {
            around(path)?;
            std::fs::File::create(path).map_err(|_| io::Errno::IO)?;
        }
        mount_bind_recursive(format!("/proc/self/fd/{}", descriptor.as_raw_fd()), *path)?;
    }
    for (path, target) in links.iter().filter(|(path, _)| path.symlink_metadata().is_err()) {
        around(path)?;
        std::os::unix::fs::symlink(target, path).map_err(|_| io::Errno::IO)?;
    }
    for path in covers.iter().filter(|path| path.is_dir()) {
        mount_remount(path.as_path(), SAFE | MountFlags::RDONLY, c"")?;
    }
    Ok(())
}

/// Root can do it directly; other users need a user namespace, which contains no other user to become.
fn enter_namespace(changes_user: bool) -> io::Result<()> {
    match unshare(UnshareFlags::NEWNS) {
        Ok(()) => return Ok(()),
        Err(error) if changes_user => return Err(error),
        Err(_) => {}
    }
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(|_| io::Errno::PERM)?;
    }
    Ok(())
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the call is unsafe for the sake of descriptor tables only")]
    // SAFETY: this process has one thread, and the descriptor table is not unshared.
    unsafe {
        rustix::thread::unshare_unsafe(what)
    }
}
