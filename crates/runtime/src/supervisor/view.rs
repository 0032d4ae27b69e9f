//! Decides what exists in the file system view of a process.
//!
//! Invariant: what is not listed does not exist there. A hidden path is covered wherever a listed folder
//! contains it; read-only paths are read-only mounts, so that their metadata cannot be changed either.

use super::claim::Writable;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Symbolic links to follow at most.
const LINKS_MAX: usize = 1024;

pub(super) const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// What is at one path of the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// The file or folder of the system.
    Bound(Bound),
    /// A symbolic link to this target.
    Link(PathBuf),
    /// An empty folder, which a path leaves again by `..`.
    Folder,
    /// Something empty in place of what is hidden.
    Covered,
    /// A `/proc` without the processes that this one may not look into.
    Processes { writable: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bound {
    pub(super) source: PathBuf,
    pub(super) access: Access,
    /// The descriptor of the user namespace that maps its owner to the user of the process.
    pub(super) map: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Access {
    Device,
    Read,
    Write,
}

/// The file system of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct View {
    /// A folder of its own, where the view is built.
    pub(super) base: PathBuf,
    /// Parents come before what they contain.
    pub(super) entries: BTreeMap<PathBuf, Entry>,
}

impl View {
    /// `open` and `hidden` are resolved; `named` are the paths as they were written, which may be links. Links that
    /// the process can replace lead nowhere.
    pub(super) fn new(
        base: PathBuf,
        open: &BTreeMap<PathBuf, (Access, Option<i32>)>,
        hidden: &[PathBuf],
        named: &BTreeSet<PathBuf>,
        writable: &Writable,
    ) -> Self {
        let mut view = Self { base, entries: BTreeMap::new() };
        let paths: BTreeSet<&PathBuf> = open.keys().chain(hidden).collect();
        for path in paths {
            match open.get(path) {
                Some((access, map)) => view.bind(path, *access, *map),
                None => view.cover(path),
            }
        }
        view.bind(Path::new("/proc"), Access::Read, None);
        for device in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
            view.bind(device, Access::Device, None);
        }
        for device in DEVICES.iter().map(Path::new) {
            if let Some(Entry::Bound(bound)) = view.entries.get_mut(device) {
                bound.source = std::fs::canonicalize(device).unwrap_or_else(|_| device.to_owned());
            }
        }
        let links = DEVICE_LINKS.map(|(at, target)| (at.into(), Entry::Link(target.into())));
        for (at, entry) in steps_of(named, writable).into_iter().chain(links) {
            if !matches!(view.around(&at), Some(Entry::Bound(_))) {
                view.entries.entry(at).or_insert(entry);
            }
        }
        view
    }

    /// Shows a folder also as `/tmp`, unless something else of that is open: its parents would be created in
    /// the folder.
    pub(super) fn temporary(&mut self, folder: &Path) {
        let path = Path::new("/tmp");
        if !self.entries.keys().any(|entry| entry.starts_with(path)) {
            let bound = Bound { source: folder.to_owned(), access: Access::Write, map: None };
            self.entries.insert(path.to_owned(), Entry::Bound(bound));
        }
    }

    fn bind(&mut self, path: &Path, access: Access, map: Option<i32>) {
        let is_known = match self.around(path) {
            // An owner matters only to what is written.
            Some(Entry::Bound(around)) if access == Access::Read => around.access >= access,
            Some(Entry::Bound(around)) => around.access >= access && around.map == map,
            _ => false,
        };
        if !is_known {
            let bound = Bound { source: path.to_owned(), access, map };
            self.entries.insert(path.to_owned(), Entry::Bound(bound));
        }
    }

    /// A folder on the way to it becomes a mount of its own: that cannot be renamed, and the hidden path with it.
    fn cover(&mut self, path: &Path) {
        let Some(Entry::Bound(around)) = self.around(path).cloned() else { return };
        let between = path.ancestors().skip(1).take_while(|folder| *folder != around.source);
        for folder in between.filter(|_| around.access == Access::Write) {
            let bound = Bound { source: folder.to_owned(), ..around.clone() };
            self.entries.insert(folder.to_owned(), Entry::Bound(bound));
        }
        self.entries.insert(path.to_owned(), Entry::Covered);
    }

    /// The entry that contains a path.
    fn around(&self, path: &Path) -> Option<&Entry> {
        path.ancestors().skip(1).find_map(|folder| self.entries.get(folder))
    }
}

/// Every symbolic link that these paths lead through, and every folder that they leave by `..`.
fn steps_of(named: &BTreeSet<PathBuf>, writable: &Writable) -> BTreeMap<PathBuf, Entry> {
    let mut steps = BTreeMap::new();
    let mut open: Vec<PathBuf> = named.iter().filter(|path| path.is_absolute()).cloned().collect();
    for _ in 0..LINKS_MAX {
        let Some(path) = open.pop() else { break };
        let mut at = PathBuf::new();
        let mut rest = path.components();
        while let Some(component) = rest.next() {
            match component {
                // No link comes before it, so it means the parent folder.
                Component::ParentDir => {
                    steps.entry(at.clone()).or_insert(Entry::Folder);
                    at.pop();
                }
                component => at.push(component),
            }
            if writable.can_replace(&at) {
                break;
            }
            let Ok(target) = std::fs::read_link(&at) else { continue };
            let folder = at.parent().unwrap_or(Path::new("/"));
            open.push(folder.join(&target).join(rest.as_path()));
            steps.insert(at, Entry::Link(target));
            break;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(path: &str, access: Access) -> (PathBuf, Entry) {
        (path.into(), Entry::Bound(Bound { source: path.into(), access, map: None }))
    }

    #[test]
    fn hidden_paths_are_covered_where_an_open_folder_contains_them() {
        let open = |path: &str, access| (PathBuf::from(path), (access, None));
        let open = BTreeMap::from([
            open("/srv/app", Access::Read),
            open("/srv/app/data/runners/own", Access::Write),
            open("/srv/app/lib", Access::Read),
            open("/srv/app/out", Access::Write),
            open("/srv/app/out/deep", Access::Write),
        ]);
        let hidden = ["/srv/app/data", "/srv/app/data/run", "/elsewhere"].map(PathBuf::from);
        let mut view =
            View::new("/base".into(), &open, &hidden, &BTreeSet::new(), &Writable::default());
        view.entries.retain(|path, _| path.starts_with("/srv") || path.starts_with("/elsewhere"));
        let expected = BTreeMap::from([
            bound("/srv/app", Access::Read),
            ("/srv/app/data".into(), Entry::Covered),
            bound("/srv/app/data/runners/own", Access::Write),
            bound("/srv/app/out", Access::Write),
        ]);
        assert_eq!(view.entries, expected);
    }

    #[test]
    fn links_on_the_way_to_an_open_path_exist_in_the_view() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/own")).unwrap();
        std::os::unix::fs::symlink("real", root.join("near")).unwrap();
        std::os::unix::fs::symlink(root.join("near/own"), root.join("far")).unwrap();
        let named = BTreeSet::from([root.join("far")]);
        let open = BTreeMap::from([(root.join("real/own"), (Access::Write, None))]);
        let view = View::new("/base".into(), &open, &[], &named, &Writable::default());
        assert_eq!(view.entries[&root.join("far")], Entry::Link(root.join("near/own")));
        assert_eq!(view.entries[&root.join("near")], Entry::Link("real".into()));
    }

    #[test]
    fn folders_that_a_path_leaves_again_exist_in_the_view() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("script.py"), "").unwrap();
        let named = BTreeSet::from([root.join("a/b/../../script.py")]);
        let open = BTreeMap::from([(root.join("script.py"), (Access::Read, None))]);
        let view = View::new("/base".into(), &open, &[], &named, &Writable::default());
        assert_eq!(view.entries[&root.join("a/b")], Entry::Folder);
    }
}
