//! Resolves paths once, and tells what the operator wrote from what a process could have written itself.
//!
//! Invariant: a path that leads through a folder which the process can write is a claim of the process. What a claim
//! names is judged by its resolved path, and that path is opened later without following any link.

use super::job::Job;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Symbolic links to follow at most in one path, as in the kernel.
const LINKS_MAX: usize = 40;

/// Where a path leads.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    /// Without any link.
    pub(super) path: PathBuf,
    /// Every place that was looked at on the way.
    trail: Vec<PathBuf>,
}

/// Follows an absolute path to what exists there.
pub(super) fn resolve(path: &Path) -> io::Result<Resolved> {
    let mut at = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = words(path);
    let (mut trail, mut links) = (Vec::new(), 0);
    while let Some(word) = rest.pop_front() {
        if word == "/" {
            at = PathBuf::from("/");
            continue;
        }
        if word == ".." {
            at.pop();
            continue;
        }
        let place = at.join(&word);
        trail.push(place.clone());
        match std::fs::read_link(&place) {
            Ok(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                let mut longer = words(&target);
                longer.append(&mut rest);
                rest = longer;
            }
            // It exists and is no link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => at = place,
            Err(error) => return Err(error),
        }
    }
    Ok(Resolved { path: at, trail })
}

fn words(path: &Path) -> VecDeque<OsString> {
    let components = path.components().filter(|component| *component != Component::CurDir);
    components.map(|component| component.as_os_str().to_owned()).collect()
}

/// One of the `paths` of a job.
pub(super) struct Given {
    pub(super) named: PathBuf,
    pub(super) exists: bool,
    /// Where it leads, if that is open.
    pub(super) path: Option<PathBuf>,
}

/// The folders that a process can write, resolved.
#[derive(Debug, Default)]
pub(super) struct Writable(Vec<PathBuf>);

impl Writable {
    /// The folders of a job in this folder, and for each of its `paths` where that leads: nowhere if it does not exist,
    /// or if the process could have put a link there that leads out of its folders. `None` if that is true of `dir`.
    pub(super) fn of(job: &Job, dir: &Resolved) -> Option<(Self, Vec<Given>)> {
        let is_own = job.owns_dir && !job.dir.as_os_str().is_empty();
        let home = job.home.as_ref().and_then(|home| resolve(&absolute(home)).ok());
        let found: Vec<Option<Resolved>> =
            job.paths.iter().map(|path| resolve(&absolute(path)).ok()).collect();
        let own = is_own.then_some(dir).into_iter().chain(&home);
        let folders: Vec<&Resolved> = own.chain(found.iter().flatten()).collect();
        let all = Self(folders.iter().map(|folder| folder.path.clone()).collect());
        let sure = folders.iter().filter(|folder| !all.claims(folder));
        let roots = Self(sure.map(|folder| folder.path.clone()).collect());
        let is_redirected = |found: &Resolved| all.claims(found) && !roots.contains(&found.path);
        if is_redirected(dir) {
            return None;
        }
        let given = job.paths.iter().zip(&found).map(|(named, found)| Given {
            named: named.clone(),
            exists: found.is_some(),
            path: found.clone().filter(|found| !is_redirected(found)).map(|found| found.path),
        });
        let given = given.collect();
        Some((roots, given))
    }

    /// Whether it is one of the folders, or in one.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| path.starts_with(folder))
    }

    /// Whether the process can replace what is at this path.
    pub(super) fn can_replace(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| path.starts_with(folder) && path != folder)
    }

    /// Whether the process could have changed where a path leads.
    pub(super) fn claims(&self, found: &Resolved) -> bool {
        found.trail.iter().any(|place| self.can_replace(place))
    }

    /// Whether a folder is around one of them.
    pub(super) fn is_within(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| folder.starts_with(path))
    }
}

/// Relative paths start at the folder of this process.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
