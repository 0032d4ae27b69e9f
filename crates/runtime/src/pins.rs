//! Which plugin each configured name was last, kept on disk.
//!
//! Invariant: a plugin is kept for one name at most, and the file is replaced as a whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(crate) struct Pins {
    file: PathBuf,
    by_name: BTreeMap<String, String>,
}

impl Pins {
    /// Loads what an earlier host kept next to its `run_dir`.
    pub(crate) fn load(run_dir: &Path) -> Self {
        let file = run_dir.with_file_name("runner-pins.json");
        let by_name = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        };
        let by_name = by_name.unwrap_or_else(|error| {
            tracing::warn!(file = %file.display(), %error, "cannot read which plugin each runner was");
            BTreeMap::new()
        });
        Self { file, by_name }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    pub(crate) fn remember(&mut self, name: &str, plugin: &str) {
        if self.get(name) == Some(plugin) {
            return;
        }
        self.by_name.retain(|_, other| other != plugin);
        self.by_name.insert(name.to_owned(), plugin.to_owned());
        self.store();
    }

    pub(crate) fn forget(&mut self, name: &str) {
        if self.by_name.remove(name).is_some() {
            self.store();
        }
    }

    fn store(&self) {
        if let Err(error) = self.write() {
            tracing::warn!(file = %self.file.display(), %error, "cannot save which plugin a runner is");
        }
    }

    fn write(&self) -> io::Result<()> {
        let part = self.file.with_extension("part");
        let mut options = File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(&serde_json::to_vec_pretty(&self.by_name)?)?;
        file.sync_all()?;
        fs::rename(&part, &self.file)
    }
}
