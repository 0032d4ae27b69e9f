//! Which of LangBot's two dialects a plugin is written for, and the SDK that it needs.
//!
//! Invariant: decided from the plugin's files, before anything is installed.

use crate::failure::{Exit, Failure};
use std::path::{Path, PathBuf};

/// The SDK of the newer dialect, by its name at the registry.
pub(super) const PUBLISHED: &str = "langbot-plugin";
/// The module that only SDKs of the older dialect have.
const OLDER_MODULE: &str = "langbot_plugin/api/definition/components/agent_runner";
const OLDER_IMPORT: &str = "langbot_plugin.api.definition.components.agent_runner";
/// Folders of a plugin that are not its own code.
const FOREIGN: [&str; 4] = [".venv", "venv", "node_modules", ".git"];
const DEPTH_MAX: usize = 8;
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `AgentRunner`, which no published SDK has.
    Older,
    Newer,
}

/// The SDK to install.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sdk {
    /// The published one, unless the requirements bring another.
    Published,
    Given(String),
    /// The environment of the plugin has the right one.
    Installed,
}

/// From the kinds of its components and from what its code imports.
pub(super) fn of(folder: &Path) -> Result<Dialect, Failure> {
    let mut files = Vec::new();
    let folder = &std::fs::canonicalize(folder)?;
    collect(folder, 0, &mut files)?;
    let is_older = files.iter().any(|file| {
        let text = greenroom_config::read_plain(file, FILE_BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        match file.extension().is_some_and(|extension| extension == "py") {
            true => text.contains(OLDER_IMPORT),
            false => text
                .lines()
                .any(|line| ["kind: AgentRunner", "AgentRunner:"].contains(&line.trim())),
        }
    });
    Ok(if is_older { Dialect::Older } else { Dialect::Newer })
}

impl Dialect {
    /// The SDK for it; a failure with the way out if there is none.
    pub(super) fn sdk(self, given: Option<&str>, folder: &Path) -> Result<Sdk, Failure> {
        match (self, given) {
            (_, Some(sdk)) => Ok(Sdk::Given(absolute(sdk))),
            (Dialect::Newer, None) => Ok(Sdk::Published),
            (Dialect::Older, None) if has_older_sdk(folder) => Ok(Sdk::Installed),
            (Dialect::Older, None) => {
                let message = format!(
                    "`{}` is written for the older dialect (`AgentRunner`), which the published SDK cannot run",
                    folder.display()
                );
                Err(Failure::new(message).exit(Exit::Usage).hint(
                    "name an SDK that has it with `--sdk`: a checkout of the branch `dev/4.11.x` of \
                     `langbot-plugin-sdk`, or its wheel",
                ))
            }
        }
    }
}

/// A path as pip understands it from any folder; anything else is a requirement.
fn absolute(sdk: &str) -> String {
    match std::fs::canonicalize(sdk) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => sdk.to_owned(),
    }
}

fn has_older_sdk(folder: &Path) -> bool {
    let libraries = std::fs::read_dir(folder.join(".venv/lib")).into_iter().flatten().flatten();
    libraries
        .map(|library| library.path().join("site-packages").join(OLDER_MODULE))
        .any(|module| module.is_dir())
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        let is_own = !FOREIGN.iter().any(|foreign| name == *foreign);
        if kind.is_dir() && is_own && depth < DEPTH_MAX {
            collect(&path, depth + 1, files)?;
        } else if kind.is_file()
            && path.extension().is_some_and(|extension| {
                ["py", "yaml", "yml"].iter().any(|known| extension == *known)
            })
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_is_read_from_the_manifest_or_from_the_imports() {
        for (name, text, expected) in [
            ("components/a.yaml", "kind: AgentRunner\n", Dialect::Older),
            ("manifest.yaml", "spec:\n  components:\n    AgentRunner:\n", Dialect::Older),
            (
                "a.py",
                "from langbot_plugin.api.definition.components.agent_runner.runner import x",
                Dialect::Older,
            ),
            ("components/a.yaml", "kind: Runner\n", Dialect::Newer),
            (".venv/a.yaml", "kind: AgentRunner\n", Dialect::Newer),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            assert_eq!(of(folder.path()).ok(), Some(expected), "{name}: {text}");
        }
    }

    #[test]
    fn an_older_plugin_needs_an_sdk_that_is_named_or_installed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Dialect::Older.sdk(None, folder.path()).is_err());
        let module = folder.path().join(".venv/lib/python3.11/site-packages").join(OLDER_MODULE);
        std::fs::create_dir_all(module).unwrap();
        assert_eq!(Dialect::Older.sdk(None, folder.path()).ok(), Some(Sdk::Installed));
        assert_eq!(
            Dialect::Older.sdk(Some("x==1"), folder.path()).ok(),
            Some(Sdk::Given("x==1".into()))
        );
        assert_eq!(Dialect::Newer.sdk(None, folder.path()).ok(), Some(Sdk::Published));
    }
}
