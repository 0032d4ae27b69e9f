//! Mounts: enters a file system view, and maps owners of files to other users.
//!
//! Invariant: everything happens in a mount namespace of this process's own; the machine's mounts, files and
//! owners stay as they are. After an error this process must not become the program.

use super::view::{Access, Bound, Entry, View};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{self, Errno};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::thread::UnshareFlags;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A mount that has folders and links only.
const SMALL: &std::ffi::CStr = c"mode=0755,size=1m";
/// How `/proc` treats processes that one may not trace.
const HIDDEN: &str = "invisible";
const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);
/// Opens what is there and not where it leads.
const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Users of the initial user namespace.
const USERS: u64 = u32::MAX as u64;

/// Why a view cannot be entered.
pub(super) enum Failure {
    /// This machine does not allow it.
    Refused(String),
    /// What it should show was changed meanwhile: no reason to do without a view.
    Changed(String),
}

impl Failure {
    fn of(what: &str, path: &Path, error: Errno) -> Self {
        let why = format!("cannot {what} `{}`: {error}", path.display());
        match error {
            Errno::LOOP | Errno::NOENT | Errno::NOTDIR => Self::Changed(why),
            _ => Self::Refused(why),
        }
    }
}

/// Makes the view the root of this process.
pub(super) fn enter(view: &View, user: Option<u32>) -> Result<(), Failure> {
    let failed = |what: &'static str| {
        move |error: Errno| Failure::Refused(format!("cannot {what}: {error}"))
    };
    enter_namespace(user).map_err(failed("create a mount namespace"))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(failed("keep mounts private"))?;
    let mut trees = Vec::new();
    for (at, entry) in &view.entries {
        trees.push((at.as_path(), entry, prepare(at, entry)?));
    }
    mount("none", &view.base, "tmpfs", SAFE, SMALL).map_err(failed("mount a root"))?;
    // Open to every user, whatever umask the host has.
    let mask = rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let base = open(&view.base).map_err(failed("open the root"))?;
    let placed = trees.into_iter().try_for_each(|(at, entry, tree)| {
        place(&base, at, entry, tree).map_err(|error| Failure::of("show", at, error))
    });
    rustix::process::umask(mask);
    placed?;
    seal(view).map_err(failed("make the root read-only"))?;
    rustix::process::chdir(&view.base)
        .and_then(|()| rustix::process::pivot_root(".", "."))
        .and_then(|()| unmount(".", UnmountFlags::DETACH))
        .and_then(|()| rustix::process::chdir("/"))
        .map_err(failed("enter the root"))
}

/// A copy of what an entry shows, restricted and not attached yet. What cannot be read anyway is left out.
fn prepare(at: &Path, entry: &Entry) -> Result<Option<OwnedFd>, Failure> {
    let bound = match entry {
        Entry::Bound(bound) => bound.clone(),
        Entry::Covered if !at.is_dir() => {
            Bound { source: "/dev/null".into(), access: Access::Device, map: None }
        }
        Entry::Covered | Entry::Link(_) | Entry::Folder => return Ok(None),
        Entry::Processes { writable } => {
            match processes(if *writable { 0 } else { libc::MOUNT_ATTR_RDONLY }) {
                Ok(tree) => return Ok(Some(tree)),
                // Only root may mount one.
                Err(_) => {
                    let access = if *writable { Access::Write } else { Access::Read };
                    Bound { source: at.to_owned(), access, map: None }
                }
            }
        }
    };
    let map = bound.map.map(borrowed);
    let copied = copy(&bound.source).and_then(|tree| {
        restrict(tree.as_fd(), bound.access, map)?;
        Ok(tree)
    });
    match copied {
        Ok(tree) => Ok(Some(tree)),
        Err(Errno::ACCESS | Errno::NOENT) if bound.access == Access::Read => Ok(None),
        Err(error) => Err(Failure::of("bind", &bound.source, error)),
    }
}

/// A `/proc` in which a process exists only for those that may trace it.
pub(super) fn processes(read_only: u64) -> io::Result<OwnedFd> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "hidepid", HIDDEN)?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let tree = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    set_attributes(tree.as_fd(), read_only, None, Depth::One)?;
    Ok(tree)
}

/// Whether `/proc` is such a one, inside the view.
pub(super) fn hides_processes() -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_proc = |line: &str| {
        line.split(' ').nth(4) == Some("/proc") && line.contains(&format!("hidepid={HIDDEN}"))
    };
    mounts.lines().any(is_proc)
}

fn place(base: &OwnedFd, at: &Path, entry: &Entry, tree: Option<OwnedFd>) -> io::Result<()> {
    let is_folder = |tree: &OwnedFd| {
        let found = rustix::fs::fstat(tree)?;
        io::Result::Ok(FileType::from_raw_mode(found.st_mode).is_dir())
    };
    match (entry, tree) {
        (Entry::Link(link), _) => {
            let (parent, name) = (at.parent().unwrap_or(at), at.file_name().unwrap_or_default());
            let made = rustix::fs::symlinkat(link, make(base, parent, Kind::Folder)?, name);
            if made == Err(Errno::EXIST) { Ok(()) } else { made }
        }
        (Entry::Folder, _) => make(base, at, Kind::Folder).map(drop),
        (_, Some(tree)) => {
            let kind = if is_folder(&tree)? { Kind::Folder } else { Kind::File };
            let flags =
                MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
            move_mount(tree, "", make(base, at, kind)?, "", flags)
        }
        (Entry::Covered, None) => {
            let target = make(base, at, Kind::Folder)?;
            mount("none", format!("/proc/self/fd/{}", target.as_raw_fd()), "tmpfs", SAFE, SMALL)
        }
        (Entry::Bound(_) | Entry::Processes { .. }, None) => Ok(()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
}

/// What is at a path of the view, created if it is missing. A link on the way is not followed: it would lead out.
fn make(base: &OwnedFd, at: &Path, kind: Kind) -> io::Result<OwnedFd> {
    let mut place = rustix::fs::openat(base, ".", PLACE, Mode::empty())?;
    let mut names = at.components().skip(1).peekable();
    while let Some(name) = names.next() {
        let name = name.as_os_str();
        let found = match rustix::fs::openat(&place, name, PLACE, Mode::empty()) {
            Err(Errno::NOENT) if kind == Kind::File && names.peek().is_none() => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                rustix::fs::openat(&place, name, flags, Mode::from_raw_mode(0o644))?;
                rustix::fs::openat(&place, name, PLACE, Mode::empty())
            }
            Err(Errno::NOENT) => {
                rustix::fs::mkdirat(&place, name, Mode::from_raw_mode(0o755))?;
                rustix::fs::openat(&place, name, PLACE, Mode::empty())
            }
            found => found,
        }?;
        let mode = rustix::fs::fstat(&found)?.st_mode;
        if FileType::from_raw_mode(mode) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        place = found;
    }
    Ok(place)
}

/// Makes the folders of the view's own read-only.
fn seal(view: &View) -> io::Result<()> {
    let covered =
        view.entries.iter().filter(|(at, entry)| **entry == Entry::Covered && at.is_dir());
    let covered = covered.map(|(at, _)| view.base.join(at.strip_prefix("/").unwrap_or(at)));
    for path in covered.chain([view.base.clone()]) {
        let root = open(&path)?;
        set_attributes(root.as_fd(), libc::MOUNT_ATTR_RDONLY, None, Depth::One)?;
    }
    Ok(())
}

/// Whether the owner of this path can be mapped by that user namespace.
pub(super) fn can_map(path: &Path, map: BorrowedFd<'_>) -> io::Result<()> {
    let tree = copy(path)?;
    set_attributes(tree.as_fd(), 0, Some(map), Depth::All)
}

/// Of a resolved path: a link that has taken its place is not followed.
pub(super) fn copy(path: &Path) -> io::Result<OwnedFd> {
    let place = greenroom_config::open_plain(path).map_err(|error| number(&error))?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(place, "", flags)
}

pub(super) fn restrict(
    tree: BorrowedFd<'_>,
    access: Access,
    map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    use libc::{MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
    let attributes = match access {
        // A read-only mount of a device still takes what is written to the device.
        Access::Device => MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
        Access::Read => MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        Access::Write => MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
    };
    set_attributes(tree, attributes, map, Depth::All)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    One,
    All,
}

pub(super) fn set_attributes(
    tree: BorrowedFd<'_>,
    attributes: u64,
    map: Option<BorrowedFd<'_>>,
    depth: Depth,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes | map.map_or(0, |_| libc::MOUNT_ATTR_IDMAP),
        attr_clr: 0,
        propagation: 0,
        userns_fd: map.map_or(0, |map| u64::from(map.as_raw_fd().unsigned_abs())),
    };
    let recursive = if depth == Depth::All { libc::AT_RECURSIVE } else { 0 };
    #[expect(unsafe_code, reason = "rustix has no `mount_setattr`")]
    // SAFETY: the path is an empty C string, and the structure lives during the call and has this size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(number(&std::io::Error::last_os_error())) }
}

/// Root can do it directly; other users need a user namespace, which contains no other user to become.
fn enter_namespace(user: Option<u32>) -> io::Result<()> {
    match unshare(UnshareFlags::NEWNS) {
        Ok(()) => return Ok(()),
        Err(error) if user.is_some() => return Err(error),
        Err(_) => {}
    }
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(|error| number(&error))?;
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

/// A user namespace that exchanges an owner and a group with those of a process, and leaves all others. It
/// is inherited by the second stage.
pub(super) fn exchange(owner: u32, group: u32, user: u32) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "only a process of its own can hold a new user namespace")]
    // SAFETY: this process has one thread, and the child calls nothing but `prctl` and `pause`.
    let child = unsafe {
        let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
        let child = libc::syscall(libc::SYS_clone, i64::from(flags), 0, 0, 0, 0);
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            loop {
                libc::pause();
            }
        }
        child
    };
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    let child = child.filter(|child| child.as_raw_pid() > 0);
    let child = child.ok_or_else(|| number(&std::io::Error::last_os_error()))?;
    let folder = PathBuf::from(format!("/proc/{}", child.as_raw_pid()));
    let write = |file: &str, id| {
        let written = std::fs::write(folder.join(file), exchanged(id, user));
        written.map_err(|error| number(&error))
    };
    let made = write("uid_map", owner)
        .and_then(|()| write("gid_map", group))
        .and_then(|()| rustix::fs::open(folder.join("ns/user"), OFlags::RDONLY, Mode::empty()));
    let _ = kill_process(child, Signal::KILL);
    let _ = waitpid(Some(child), WaitOptions::empty());
    made
}

/// The lines of a map in which two ids are exchanged.
fn exchanged(one: u32, other: u32) -> String {
    let (low, high) = (u64::from(one.min(other)), u64::from(one.max(other)));
    let ranges = [
        (0, 0, low),
        (low, high, 1),
        (low + 1, low + 1, high.saturating_sub(low + 1)),
        (high, low, 1),
        (high + 1, high + 1, USERS - high - 1),
    ];
    let lines = ranges.iter().filter(|(.., count)| *count > 0);
    lines.map(|(inside, outside, count)| format!("{inside} {outside} {count}\n")).collect()
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// A descriptor that the supervisor left open for this process.
fn borrowed(descriptor: i32) -> BorrowedFd<'static> {
    #[expect(unsafe_code, reason = "the supervisor passes descriptors by number")]
    // SAFETY: nothing in this process closes it before `exec`.
    unsafe {
        BorrowedFd::borrow_raw(descriptor)
    }
}

fn number(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::exchanged;

    #[test]
    fn a_map_exchanges_two_ids_and_leaves_all_others() {
        let expected = "0 7 1\n1 1 6\n7 0 1\n8 8 4294967287\n";
        assert_eq!(exchanged(0, 7), expected);
        assert_eq!(exchanged(7, 0), expected);
        assert_eq!(exchanged(5, 6), "0 0 5\n5 6 1\n6 5 1\n7 7 4294967288\n");
    }
}
