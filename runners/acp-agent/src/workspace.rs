//! The folders of a conversation: its workspace, and the home of its harness.
//!
//! Invariant: a conversation has folders of its own, named by a hash, so that no id is a path; files that the host
//! adds are in `.greenroom`, which hides itself from version control.

use crate::config::{Config, Workspace};
use crate::git;
use greenroom_sdk::RunCtx;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// The folder in a workspace with what the host adds.
pub(crate) const OWN: &str = ".greenroom";
/// The folder that contains the folders of all conversations.
pub const WORKSPACES: &str = "workspaces";
/// What is known of a workspace, beside it.
pub const RECORD: &str = "workspace.json";
/// The changes of a `git` workspace since its base.
pub const CHANGES: &str = "changes.diff";

/// The conversation that a session belongs to, for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    pub agent: String,
    pub workspace_id: Option<String>,
    /// Without a conversation, a run has a workspace of its own.
    pub conversation_id: String,
    pub bot_id: Option<String>,
    pub thread_id: Option<String>,
}

impl Owner {
    pub(crate) fn of(ctx: &RunCtx) -> Self {
        let conversation = ctx.conversation.clone().unwrap_or_default();
        let agent = ctx.metadata.get("agent").and_then(|agent| agent.as_str());
        Self {
            agent: agent.unwrap_or_default().to_owned(),
            workspace_id: conversation.workspace_id,
            conversation_id: conversation.conversation_id.unwrap_or_else(|| ctx.run_id.clone()),
            bot_id: conversation.bot_id,
            thread_id: conversation.thread_id,
        }
    }

    /// The name of its folder.
    pub fn id(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(json).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What is stored beside a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub owner: Owner,
    /// `conversation`, `folder` or `git`.
    pub kind: String,
    pub path: PathBuf,
    #[serde(default)]
    pub branch: Option<String>,
    #[serde(default)]
    pub base: Option<String>,
}

/// The folders of one session.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) id: String,
    /// Contains everything else but a `folder` workspace.
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) record: Record,
    /// Whether its session is apart from the others of the runner.
    pub(crate) is_apart: bool,
}

impl Place {
    /// Creates what does not exist yet.
    pub(crate) async fn prepare(
        own: &Path,
        owner: &Owner,
        config: &Config,
    ) -> Result<Self, String> {
        let id = owner.id();
        let root = own.join(WORKSPACES).join(&id);
        let home = root.join("home");
        create(&home).map_err(|error| format!("cannot create `{}`: {error}", home.display()))?;
        let (mut branch, mut base) = (None, None);
        let (kind, work) = match config.workspace {
            Workspace::Conversation => ("conversation", root.join("work")),
            Workspace::Folder => ("folder", config.folder.clone().unwrap_or_default()),
            Workspace::Git => ("git", root.join("work")),
        };
        match config.workspace {
            Workspace::Conversation => create(&work).map_err(|error| error.to_string())?,
            Workspace::Folder if work.is_dir() => {}
            Workspace::Folder => {
                return Err(format!(
                    "the folder `{}` does not exist for this runner: name it in its `paths`",
                    work.display()
                ));
            }
            Workspace::Git => {
                let repository = config.repository.clone().unwrap_or_default();
                let tree = git::Tree { own, repository: &repository, work: &work, id: &id };
                let made = git::prepare(&tree, config.base.as_deref()).await?;
                (branch, base) = (Some(made.branch), Some(made.base));
            }
        }
        let record = Record {
            owner: owner.clone(),
            kind: kind.to_owned(),
            path: work.clone(),
            branch,
            base,
        };
        let place = Self { id, root, home, work, record, is_apart: false };
        let json = serde_json::to_vec_pretty(&place.record).unwrap_or_default();
        let recorded = write_atomically(&place.root.join(RECORD), &json);
        recorded.map_err(|error| format!("cannot write `{RECORD}`: {error}"))?;
        Ok(place)
    }

    /// The folder for what the host adds to the workspace.
    pub(crate) fn own_folder(&self) -> io::Result<PathBuf> {
        let folder = self.work.join(OWN);
        create(&folder)?;
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            write_atomically(&ignore, b"*\n")?;
        }
        Ok(folder)
    }

    /// Stores a file of the event; a name that exists gets a number.
    pub(crate) fn write_incoming(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let folder = self.own_folder()?.join("files");
        create(&folder)?;
        let name = plain_name(name);
        let numbered = |number: usize| match number {
            0 => name.clone(),
            number => format!("{number}-{name}"),
        };
        let taken = |path: &PathBuf| path.symlink_metadata().is_ok();
        let paths = (0..10_000).map(|number| folder.join(numbered(number)));
        let same = |path: &PathBuf| std::fs::read(path).is_ok_and(|there| there == bytes);
        let path = paths.into_iter().find(|path| !taken(path) || same(path));
        let path = path.ok_or_else(|| io::Error::other("too many files of this name"))?;
        write_atomically(&path, bytes)?;
        Ok(path)
    }
}

/// A file name without anything that leads elsewhere.
fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(120).collect();
    match name.trim_matches(['.', ' ']) {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}

pub(crate) fn create(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// A reader sees the old content or the new one, never a part. A link at the path is replaced, not followed.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let _ = std::fs::remove_file(&part);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(&part)?;
    io::Write::write_all(&mut file, bytes)?;
    std::fs::rename(&part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(conversation: &str, thread: Option<&str>) -> Owner {
        Owner {
            agent: "a".to_owned(),
            workspace_id: None,
            conversation_id: conversation.to_owned(),
            bot_id: None,
            thread_id: thread.map(str::to_owned),
        }
    }

    #[tokio::test]
    async fn every_conversation_and_thread_has_a_folder_of_its_own() {
        let own = tempfile::tempdir().unwrap();
        let config = Config::default();
        let mut works = Vec::new();
        for owner in [owner("../../etc", None), owner("c", None), owner("c", Some("t"))] {
            let place = Place::prepare(own.path(), &owner, &config).await.unwrap();
            assert!(place.work.starts_with(own.path().join(WORKSPACES)) && place.work.is_dir());
            let record = std::fs::read(place.root.join(RECORD)).unwrap();
            assert_eq!(serde_json::from_slice::<Record>(&record).unwrap(), place.record);
            works.push(place.work);
        }
        works.dedup();
        assert_eq!(works.len(), 3);
    }

    #[tokio::test]
    async fn files_of_an_event_stay_in_their_folder_and_keep_what_exists() {
        let own = tempfile::tempdir().unwrap();
        let place =
            Place::prepare(own.path(), &owner("c", None), &Config::default()).await.unwrap();
        let folder = place.work.join(".greenroom/files");
        let write = |name: &str, bytes: &[u8]| place.write_incoming(name, bytes).unwrap();
        assert_eq!(write("../../a.txt", b"1"), folder.join("_.._a.txt"));
        assert_eq!(write("b", b"1"), folder.join("b"));
        assert_eq!(write("b", b"1"), folder.join("b"));
        assert_eq!(write("b", b"2"), folder.join("1-b"));
        assert_eq!(write("..", b"2"), folder.join("file"));
        // The harness puts a link where a file would be written.
        std::os::unix::fs::symlink("/nonexistent/x", folder.join("c")).unwrap();
        assert_eq!(write("c", b"3"), folder.join("1-c"));
        let ignored = std::fs::read_to_string(place.work.join(".greenroom/.gitignore")).unwrap();
        assert_eq!(ignored, "*\n");
    }
}
