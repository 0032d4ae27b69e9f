//! Files that a running host watches: its configuration and the files it refers to.
//!
//! Invariant: compares modification times only; does not read contents.

use crate::output;
use greenroom_config::{self as config, Config, ToolSource};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file of a skill in its folder.
const SKILL: &str = "SKILL.md";

/// The files at the last check; without a configuration file, checks for a new `greenroom.toml`.
#[derive(Debug)]
pub(crate) struct Watched {
    path: Option<PathBuf>,
    seen: Option<SystemTime>,
    /// Scripts of models, manifests of modules, skills and certificates.
    parts: Vec<(PathBuf, Option<SystemTime>)>,
}

impl Watched {
    pub(crate) fn new(path: Option<PathBuf>, config: &Config) -> Self {
        let seen = changed_at(path.as_deref());
        Self { path, seen, parts: parts(config) }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether a file changed since the last check.
    pub(crate) fn has_changed(&mut self, config: &Config) -> bool {
        if self.path.is_none() {
            self.path = config::find_file(None);
            if let Some(path) = &self.path {
                output::note(&format!("found `{}`, loading it", path.display()));
            }
        }
        let now = changed_at(self.path.as_deref());
        let parts = parts(config);
        let is_new = std::mem::replace(&mut self.seen, now) != now;
        let has_new = std::mem::replace(&mut self.parts, parts) != self.parts;
        is_new || has_new
    }

    /// Marks the files of a configuration that was just loaded as read.
    pub(crate) fn refers_to(&mut self, config: &Config) {
        self.parts = parts(config);
    }
}

fn parts(config: &Config) -> Vec<(PathBuf, Option<SystemTime>)> {
    let stamped = |path: PathBuf| {
        let at = changed_at(Some(&path));
        (path, at)
    };
    named_files(config).map(stamped).collect()
}

/// Scripts of models, manifests of modules, folders of skills and the skills in them.
pub(crate) fn named_files(config: &Config) -> impl Iterator<Item = PathBuf> {
    let scripts = config.models.iter().filter_map(|model| model.script.clone());
    let tools = config.tools.values().flat_map(|source| match source {
        ToolSource::Module { manifest, .. } => vec![manifest.clone()],
        ToolSource::Skills { dir } => skills(dir),
        ToolSource::Mcp(_) => Vec::new(),
    });
    let tls = config.server.tls.iter().flat_map(|tls| [tls.cert.clone(), tls.key.clone()]);
    scripts.chain(tools).chain(tls)
}

/// The folder, which changes with every added or removed skill, and the file of each skill.
fn skills(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path().join(SKILL)).collect();
    files.sort();
    files.insert(0, dir.to_owned());
    files
}

/// When the file last changed; `None` if it does not exist.
fn changed_at(file: Option<&Path>) -> Option<SystemTime> {
    std::fs::metadata(file?).and_then(|file| file.modified()).ok()
}
