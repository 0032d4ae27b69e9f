//! The runners of a plugin, read from its manifests with its own Python.
//!
//! Invariant: runs no code of the plugin.

use super::install::run;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;

const SCRIPT: &str = include_str!("inspect.py");

#[derive(Debug, Deserialize)]
pub(super) struct Plugin {
    pub(super) author: String,
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) sdk_version: Option<String>,
    pub(super) runners: Vec<Offered>,
}

/// One runner of a plugin.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offered {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) permissions: Value,
}

impl Plugin {
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.author, self.name)
    }

    /// Its name as a key of `[runners]`.
    pub(super) fn runner_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        self.name.chars().map(plain).take(64).collect()
    }
}

pub(super) fn inspect(folder: &Path, interpreter: &Path) -> Result<Plugin, Failure> {
    let words = [OsStr::new("-I"), OsStr::new("-c"), OsStr::new(SCRIPT), folder.as_os_str()];
    let output = run(&interpreter.to_string_lossy(), words)?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let context = format!("cannot read the manifest in `{}`", folder.display());
        anyhow::Error::new(error).context(context).into()
    })
}
