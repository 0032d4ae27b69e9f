//! Gives a process of a host that runs as root another user, and a private folder that this user can reach.
//!
//! Invariant: the user is decided and tried before anything is prepared. Files keep their owners: in the
//! process's view of the file system the owner of each folder that it was given is exchanged with its user.

use super::job::{Job, NOBODY};
use super::{mounts, remove};
use rustix::fs::{Access, AtFlags, CWD, Gid, Uid, accessat};
use rustix::io;
use rustix::process::getuid;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Ids that no user database, container or service manager hands out.
const FIRST_ID: u32 = 0x7100_0000;
const IDS: u32 = 0x00ff_ffff;

/// A path that a process needs, and how.
pub(super) type Needed = (PathBuf, Access);

/// The user of a process, and what is needed for it.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Absent if it stays the user of this process.
    pub(super) user: Option<u32>,
    /// User namespaces that exchange owners, by the path that they are for.
    pub(super) maps: BTreeMap<PathBuf, i32>,
    /// Open until the second stage has inherited them.
    held: Vec<OwnedFd>,
    /// Why it is not another user, though it should be.
    pub(super) missing: Option<String>,
}

/// Hands out a user id for each process by its name; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct UserIds(Arc<Mutex<BTreeMap<u32, String>>>);

impl UserIds {
    /// The same id for the same name, and different ones for different names.
    pub(crate) fn id_of(&self, name: &str) -> u32 {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut place = hash(name) % IDS;
        while taken.get(&place).is_some_and(|other| other != name) {
            place = (place + 1) % IDS;
        }
        taken.insert(place, name.to_owned());
        FIRST_ID + place
    }
}

/// FNV-1a: the same in every version of the program.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Decides on the user of a process that has a view of its own.
pub(super) fn choose_in_view(job: &Job, needed: &[Needed]) -> Chosen {
    let mut chosen = Chosen { user: wanted(job), ..Chosen::default() };
    let Some(user) = chosen.user else { return chosen };
    if let Err(error) = as_user(user, || ()) {
        let missing = stays(&format!("this process cannot become another user: {error}"));
        return Chosen { missing: Some(missing), ..Chosen::default() };
    }
    let mut maps: BTreeMap<(u32, u32), OwnedFd> = BTreeMap::new();
    for (path, access) in needed {
        if let Err(why) = chosen.map(path, user, &mut maps)
            && !permits(path, *access, user)
        {
            let why =
                format!("files of `{}` cannot be shown as another user's: {why}", path.display());
            return Chosen { missing: Some(stays(&why)), ..Chosen::default() };
        }
    }
    chosen.held.extend(maps.into_values());
    chosen
}

/// Decides on the user of a process that sees the file system as it is.
pub(super) fn choose(job: &Job, needed: &[Needed]) -> Chosen {
    let Some(user) = wanted(job) else { return Chosen::default() };
    let closed = as_user(user, || {
        needed.iter().find(|(path, access)| accessat(CWD, path, *access, AtFlags::EACCESS).is_err())
    });
    let missing = match closed {
        Ok(None) => return Chosen { user: Some(user), ..Chosen::default() },
        Ok(Some((path, _))) => stays(&format!("user {user} cannot use `{}`", path.display())),
        Err(error) => stays(&format!("this process cannot become another user: {error}")),
    };
    Chosen { missing: Some(missing), ..Chosen::default() }
}

/// The user that a process should have, if it is another one.
pub(super) fn wanted(job: &Job) -> Option<u32> {
    let map = || std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let user = getuid().is_root().then_some(job.user).flatten()?;
    Some(if contains(&map(), user) { user } else { NOBODY })
}

/// Whether a user namespace with this map has that user; in a container it may have few.
fn contains(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let range = first.zip(count).map(|(first, count)| first..first + count);
        range.is_some_and(|range| range.contains(&u64::from(user)))
    })
}

fn stays(why: &str) -> String {
    format!("no user of its own: it runs as root without capabilities, since {why}")
}

impl Chosen {
    fn map(
        &mut self,
        path: &Path,
        user: u32,
        maps: &mut BTreeMap<(u32, u32), OwnedFd>,
    ) -> Result<(), String> {
        let failed = |error: io::Errno| error.to_string();
        let place = greenroom_config::open_plain(path).map_err(|error| error.to_string())?;
        let found = rustix::fs::fstat(&place).map_err(failed)?;
        let (owner, group) = (found.st_uid, found.st_gid);
        if owner == user && group == user {
            return Ok(());
        }
        let map = match maps.entry((owner, group)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                place.insert(mounts::exchange(owner, group, user).map_err(failed)?)
            }
        };
        mounts::can_map(path, map.as_fd()).map_err(failed)?;
        self.maps.insert(path.to_owned(), map.as_raw_fd());
        Ok(())
    }
}

/// Whether the permissions of this path alone, without its parents, let that user use it.
fn permits(path: &Path, access: Access, user: u32) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let digit = match (found.uid() == user, found.gid() == user) {
        (true, _) => found.mode() >> 6,
        (_, true) => found.mode() >> 3,
        _ => found.mode(),
    };
    digit & access.bits() == access.bits()
}

/// Creates the folder that contains `home` and `tmp`.
pub(super) fn private_folder(
    job: &Job,
    chosen: &Chosen,
    in_view: InView,
) -> std::io::Result<PathBuf> {
    let Some(user) = chosen.user else {
        std::fs::create_dir_all(&job.private)?;
        return Ok(job.private.clone());
    };
    let make = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
    let parent = job.private.parent().unwrap_or(Path::new("/"));
    let is_reachable = || {
        let look = || accessat(CWD, parent, Access::EXEC_OK, AtFlags::EACCESS).is_ok();
        as_user(user, look).unwrap_or(false)
    };
    let folder = match in_view {
        InView::Yes => job.private.clone(),
        InView::No if is_reachable() => job.private.clone(),
        // In the system's temporary folder; a link beside the lock points to it.
        InView::No => {
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

/// Whether a process has a view of the file system of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InView {
    Yes,
    No,
}

/// Removes what `private_folder` has created, even if its link is gone. Leftovers cost space, not safety.
pub(crate) fn remove_private(private: &Path) {
    let folder = std::fs::read_link(private).unwrap_or_else(|_| elsewhere(private));
    // Of a link this removes only the link.
    let _ = remove::remove_all(private);
    let _ = remove::remove_all(&folder);
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
pub(super) fn as_user<T>(user: u32, look: impl FnOnce() -> T) -> io::Result<T> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    set_thread_groups(&[])?;
    set_thread_res_gid(None, gid, None)?;
    let seen = set_thread_res_uid(None, uid, None).map(|()| look());
    set_thread_res_uid(None, Uid::ROOT, None)?;
    set_thread_res_gid(None, Gid::ROOT, None)?;
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_own_id_and_keeps_it() {
        let ids = UserIds::default();
        let first = ids.id_of("runner:a");
        assert_ne!(first, ids.id_of("runner:b"));
        assert_eq!(first, ids.clone().id_of("runner:a"));
        assert_eq!(first, UserIds::default().id_of("runner:a"));
        // Another name at the same place gets the next one.
        let taken = UserIds(Arc::new(Mutex::new([(first - FIRST_ID, "other".into())].into())));
        assert_eq!(taken.id_of("runner:a"), first + 1);
    }

    #[test]
    fn a_container_may_have_few_users() {
        assert!(contains("         0          0 4294967295\n", FIRST_ID));
        let few = "0 1000 1\n1 100000 65536\n";
        assert_eq!((contains(few, NOBODY), contains(few, FIRST_ID)), (true, false));
    }
}
