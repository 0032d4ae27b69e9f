//! Makes a program reachable for a user who cannot enter its folder, such as root's own.
//!
//! Invariant: the closed folder is covered, never opened: the user sees what the program needs of it, at the
//! same path, and nothing else. Decided and tried before anything is prepared.

use super::{cover, user};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Symbolic links to follow at most between a program and its parts.
const LINKS_MAX: usize = 256;

/// What to do about closed folders, if there are any.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Lift {
    /// Folders that the other user cannot enter, none inside another.
    pub(super) closed: Vec<PathBuf>,
    /// Links beneath them, with their targets.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
}

/// What a program needs, and how.
#[derive(Clone)]
pub(super) struct Needed {
    pub(super) paths: Vec<(PathBuf, Access)>,
    /// What will be open to it as a whole.
    pub(super) kept: BTreeSet<PathBuf>,
}

impl Needed {
    /// Whether the other user can use a path as it is.
    pub(super) fn is_open(path: &Path, access: Access) -> bool {
        accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
    }

    /// How to let that user reach these paths, or which of them stays unreachable.
    pub(super) fn lift(&self, unreachable: &[(PathBuf, Access)]) -> Result<Lift, String> {
        let mut closed = BTreeSet::new();
        for (path, access) in unreachable {
            let beyond = || format!("user {} cannot reach `{}`", user::NOBODY, path.display());
            let real = std::fs::canonicalize(path).map_err(|_| beyond())?;
            let folder = self.closed_before(&real).ok_or_else(beyond)?;
            let kept = self.kept_around(&real, &folder).ok_or_else(beyond)?;
            if !is_open_within(&kept, &real, *access) {
                return Err(beyond());
            }
            closed.insert(folder);
        }
        let closed: Vec<PathBuf> = closed.into_iter().collect();
        cover::is_allowed(&closed).map_err(|error| {
            let names: Vec<String> =
                closed.iter().map(|path| format!("`{}`", path.display())).collect();
            let user = user::NOBODY;
            format!(
                "user {user} cannot enter {}, which cannot be covered: {error}",
                names.join(", ")
            )
        })?;
        let links = self.links(&closed);
        Ok(Lift { closed, links })
    }

    /// The outermost folder of a path that the other user cannot enter.
    fn closed_before(&self, real: &Path) -> Option<PathBuf> {
        let mut folders: Vec<&Path> = real.ancestors().skip(1).collect();
        folders.reverse();
        let closed = user::as_nobody(|| {
            folders.into_iter().find(|folder| !Self::is_open(folder, Access::EXEC_OK))
        });
        closed.ok().flatten().map(Path::to_owned)
    }

    /// The outermost kept path beneath a closed folder that contains the path.
    fn kept_around(&self, real: &Path, folder: &Path) -> Option<PathBuf> {
        let kept = self.kept.iter().filter_map(|path| std::fs::canonicalize(path).ok());
        kept.filter(|kept| kept.starts_with(folder) && kept != folder && real.starts_with(kept))
            .min_by_key(|kept| kept.as_os_str().len())
    }

    /// Every link beneath the closed folders that the paths resolve through.
    fn links(&self, closed: &[PathBuf]) -> BTreeMap<PathBuf, PathBuf> {
        let mut links = BTreeMap::new();
        let mut open: Vec<PathBuf> = self.paths.iter().map(|(path, _)| path.clone()).collect();
        for _ in 0..LINKS_MAX {
            let Some(path) = open.pop() else { break };
            let mut at = PathBuf::new();
            let mut rest = path.components();
            while let Some(component) = rest.next() {
                match component {
                    // No link comes before it, so it means the parent folder.
                    Component::ParentDir => drop(at.pop()),
                    component => at.push(component),
                }
                let Ok(target) = std::fs::read_link(&at) else { continue };
                let folder = at.parent().unwrap_or(Path::new("/"));
                open.push(folder.join(&target).join(rest.as_path()));
                if closed.iter().any(|closed| at.starts_with(closed)) {
                    links.insert(at, target);
                }
                break;
            }
        }
        links
    }
}

/// Whether the other user can use a path beneath `kept` once `kept` is reachable.
pub(super) fn is_open_within(kept: &Path, real: &Path, access: Access) -> bool {
    let mut steps: Vec<&Path> =
        real.ancestors().take_while(|path| path.starts_with(kept)).collect();
    steps.reverse();
    steps.into_iter().all(|path| permits(path, if path == real { access } else { Access::EXEC_OK }))
}

/// The permissions of this path alone, without its parents.
fn permits(path: &Path, access: Access) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let digit = match (found.uid(), found.gid()) {
        (user::NOBODY, _) => found.mode() >> 6,
        (_, user::NOBODY) => found.mode() >> 3,
        _ => found.mode(),
    };
    digit & access.bits() == access.bits()
}
