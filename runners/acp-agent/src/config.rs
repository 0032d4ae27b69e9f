//! The config of an agent on an external harness: `ctx.config`.
//!
//! Invariant: everything is checked before a process starts; an unknown key is an error.

use crate::texts::Texts;
use greenroom_sdk::{Object, RunCtx, RunFailure, Value};
use serde::Deserialize;
use std::path::PathBuf;

/// The code of a run with a config that cannot be used.
const CODE: &str = "config.invalid";

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) workspace: Workspace,
    /// For `workspace = "folder"`.
    pub(crate) folder: Option<PathBuf>,
    /// For `workspace = "git"`.
    pub(crate) repository: Option<PathBuf>,
    /// The branch or commit that a `git` workspace starts from; none: what the repository has checked out.
    pub(crate) base: Option<String>,
    pub(crate) keys: Keys,
    /// The model's name for the harness.
    pub(crate) model: Option<String>,
    /// The server of its model requests, for `keys = "own"`.
    pub(crate) base_url: Option<String>,
    /// A mode of the harness; none: that of the profile.
    pub(crate) mode: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Workspace {
    /// A folder for each conversation.
    #[default]
    Conversation,
    /// One given folder.
    Folder,
    /// A worktree and branch for each conversation.
    Git,
}

/// Whose models and keys the harness uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keys {
    /// Those of the host, through its model gateway.
    #[default]
    Gateway,
    /// Its own.
    Own,
}

impl Config {
    pub(crate) fn load(ctx: &RunCtx, texts: Texts) -> Result<Self, RunFailure> {
        Self::parse(&ctx.config).map_err(|problem| {
            RunFailure::new(CODE, format!("{}: {problem}", texts.config_invalid()))
        })
    }

    pub(crate) fn parse(config: &Object) -> Result<Self, String> {
        let config: Self = serde_json::from_value(Value::Object(config.clone()))
            .map_err(|error| error.to_string())?;
        let absolute = |key: &str, path: &Option<PathBuf>| match path.as_deref() {
            Some(path) if path.is_absolute() => Ok(()),
            Some(path) => {
                Err(format!("`{key}` must be an absolute path, not `{}`", path.display()))
            }
            None => Err(format!("`{key}` is missing")),
        };
        match config.workspace {
            Workspace::Conversation => {}
            Workspace::Folder => absolute("folder", &config.folder)?,
            Workspace::Git => absolute("repository", &config.repository)?,
        }
        if config.base.as_deref().is_some_and(|base| base.is_empty() || base.starts_with('-')) {
            return Err("`base` must be a branch or a commit".to_owned());
        }
        if config.base_url.is_some() && config.keys == Keys::Gateway {
            return Err("`base_url` is for `keys = \"own\"` only".to_owned());
        }
        Ok(config)
    }
}

/// The folders outside the runner's own that an agent needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders {
    pub writes: Option<PathBuf>,
    pub reads: Option<PathBuf>,
}

/// What an agent with this config needs; nothing if the config is not valid.
pub fn folders(config: &Object) -> Folders {
    let Ok(config) = Config::parse(config) else { return Folders::default() };
    match config.workspace {
        Workspace::Conversation => Folders::default(),
        Workspace::Folder => Folders { writes: config.folder, reads: None },
        Workspace::Git => Folders { writes: None, reads: config.repository },
    }
}

/// Checks a config; the error describes the first problem.
pub fn check_config(config: &Object) -> Result<(), String> {
    Config::parse(config).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn parse(config: Value) -> Result<Config, String> {
        Config::parse(config.as_object().unwrap())
    }

    #[test]
    fn a_config_names_what_its_workspace_needs() {
        assert_eq!(parse(json!({})), Ok(Config::default()));
        let folder = json!({"workspace": "folder", "folder": "/srv/a"});
        let needed = Folders { writes: Some("/srv/a".into()), reads: None };
        assert_eq!(folders(folder.as_object().unwrap()), needed);
        for (config, problem) in [
            (json!({"workspace": "folder"}), "`folder` is missing"),
            (json!({"workspace": "git", "repository": "a"}), "must be an absolute path"),
            (
                json!({"workspace": "git", "repository": "/a", "base": "--x"}),
                "a branch or a commit",
            ),
            (json!({"base_url": "http://x"}), "is for `keys = \"own\"` only"),
            (json!({"modell": "x"}), "unknown field `modell`"),
        ] {
            let error = parse(config).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
