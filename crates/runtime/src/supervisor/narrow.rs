//! Narrows the view of a runner to one of its sessions.
//!
//! Invariant: everything happens in a mount namespace of this process's own, and only takes away: what the session
//! keeps is opened before the folders around it are covered.

use super::mounts::{self, Depth};
use super::session::Wanted;
use super::view::Access;
use rustix::fs::{FileType, Mode};
use rustix::io;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, mount, mount_change, move_mount,
};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where programs put temporary files without asking.
pub(super) const TEMPORARY: &str = "/tmp";
const SMALL: &std::ffi::CStr = c"mode=0755,size=1m";

/// Leaves of the runner's folders what the session wants.
pub(super) fn enter(wanted: &Wanted) -> Result<(), String> {
    let failed = |what: &'static str| move |error: io::Errno| format!("cannot {what}: {error}");
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Errno| format!("cannot show `{path}` to the session alone: {error}")
    };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(failed("keep mounts private"))?;
    own_processes().map_err(failed("mount a `/proc` of the session's own"))?;
    let kept = kept(wanted).map_err(failed("open what the session keeps"))?;
    let temporary = mounts::copy(&wanted.temporary).map_err(at(&wanted.temporary))?;
    let own = mounts::copy(&wanted.own).map_err(at(&wanted.own))?;
    mounts::restrict(own.as_fd(), Access::Read, None).map_err(at(&wanted.own))?;
    attach(&own, &wanted.own).map_err(at(&wanted.own))?;
    let covered: Vec<&PathBuf> = wanted.covered.iter().filter(|path| path.is_dir()).collect();
    for path in &covered {
        let place = plain(path).map_err(at(path))?;
        let place = format!("/proc/self/fd/{}", place.as_raw_fd());
        let safe = MountFlags::NOSUID | MountFlags::NODEV;
        mount("none", place, "tmpfs", safe, SMALL).map_err(at(path))?;
    }
    for (path, tree) in &kept {
        make(path, tree).and_then(|()| attach(tree, path)).map_err(at(path))?;
    }
    for path in &covered {
        let cover = plain(path).map_err(at(path))?;
        let read_only = libc::MOUNT_ATTR_RDONLY;
        mounts::set_attributes(cover.as_fd(), read_only, None, Depth::One).map_err(at(path))?;
    }
    match has_temporary() {
        true => attach(&temporary, Path::new(TEMPORARY)).map_err(at(&wanted.temporary)),
        false => Ok(()),
    }
}

/// What lies in a folder that is covered or only readable.
fn kept(wanted: &Wanted) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let around: Vec<&PathBuf> = wanted.covered.iter().chain([&wanted.own]).collect();
    let is_around = |path: &Path| around.iter().any(|folder| path.starts_with(folder));
    let write = wanted.write.iter().chain([&wanted.temporary]).map(|path| (path, Access::Write));
    let is_covered = |path: &Path| wanted.covered.iter().any(|folder| path.starts_with(folder));
    let read = wanted.read.iter().filter(|path| is_covered(path)).map(|path| (path, Access::Read));
    let wanted = write.chain(read).filter(|(path, _)| path.exists() && is_around(path));
    let trees = wanted.map(|(path, access)| {
        let tree = mounts::copy(path)?;
        mounts::restrict(tree.as_fd(), access, None)?;
        Ok((path.clone(), tree))
    });
    trees.collect()
}

/// A `/proc` with the processes of this namespace.
pub(super) fn own_processes() -> io::Result<()> {
    let processes = mounts::processes(libc::MOUNT_ATTR_RDONLY)?;
    attach(&processes, Path::new("/proc"))
}

/// Whether programs find something writable there.
pub(super) fn has_temporary() -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(4) == Some(TEMPORARY))
}

fn attach(tree: &OwnedFd, at: &Path) -> io::Result<()> {
    let place = plain(at)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", place, "", flags)
}

/// The place itself: no link on the way is followed.
fn plain(path: &Path) -> io::Result<OwnedFd> {
    greenroom_config::open_plain(path)
        .map_err(|error| io::Errno::from_io_error(&error).unwrap_or(io::Errno::IO))
}

/// A place for it in the cover. What exists already stays.
fn make(path: &Path, tree: &OwnedFd) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let number = |error: std::io::Error| io::Errno::from_io_error(&error).unwrap_or(io::Errno::IO);
    let mode = rustix::fs::fstat(tree)?.st_mode;
    if FileType::from_raw_mode(mode).is_dir() {
        return std::fs::create_dir_all(path).map_err(number);
    }
    std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(number)?;
    rustix::fs::open(path, rustix::fs::OFlags::CREATE, Mode::from_raw_mode(0o644)).map(drop)
}
