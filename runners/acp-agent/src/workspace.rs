//! The folders of a conversation: its workspace, and the home of its harness.
//!
//! Invariant: a conversation has folders of its own, named by a hash, so that no id is a path; files that the host
//! adds are in `.greenroom`, which hides itself from version control. A folder is not removed while a run uses it.

use crate::beneath::Folder;
use crate::config::{Config, Workspace};
use crate::git;
use greenroom_sdk::RunCtx;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder in a workspace with what the host adds.
pub(crate) const OWN: &str = ".greenroom";
/// In it: files of events.
const INCOMING: &str = "files";
/// The folder that contains the folders of all conversations.
pub const WORKSPACES: &str = "workspaces";
/// What is known of a workspace, beside it.
pub const RECORD: &str = "workspace.json";
/// The changes of a `git` workspace since its base.
pub const CHANGES: &str = "changes.diff";
/// A run that uses the workspace has locked this file, beside it.
pub const LEASE: &str = "lease";
/// What hides files of the host from version control.
pub(crate) const IGNORE_ALL: &[u8] = b"*\n";
/// Largest record.
const RECORD_BYTES_MAX: u64 = 1 << 20;

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
    /// The repository of a `git` workspace.
    #[serde(default)]
    pub repository: Option<PathBuf>,
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
    /// The home itself: another one if the workspace was removed meanwhile.
    pub(crate) identity: (u64, u64),
    /// The home did not exist: nothing of an earlier session is there.
    pub(crate) is_new: bool,
}

impl Place {
    /// Creates what does not exist yet.
    pub(crate) async fn prepare(
        own: &Path,
        owner: &Owner,
        config: &Config,
    ) -> Result<(Self, Lease), String> {
        let id = owner.id();
        let root = own.join(WORKSPACES).join(&id);
        let lease = Lease::take(&root).await;
        let lease = lease.map_err(|error| format!("cannot lock `{}`: {error}", root.display()))?;
        let home = root.join("home");
        let trusted = Folder::trusted(&root).map_err(|error| error.to_string())?;
        let is_new = trusted.open("home").is_err();
        let identity = trusted.make("home").and_then(|home| home.identity());
        let identity =
            identity.map_err(|error| format!("cannot create `{}`: {error}", home.display()))?;
        let (mut branch, mut base, mut repository) = (None, None, None);
        let (kind, work) = match config.workspace {
            Workspace::Conversation => ("conversation", root.join("work")),
            Workspace::Folder => ("folder", config.folder.clone().unwrap_or_default()),
            Workspace::Git => ("git", root.join("work")),
        };
        match config.workspace {
            Workspace::Conversation => {
                trusted.make("work").map_err(|error| error.to_string())?;
            }
            Workspace::Folder if work.is_dir() => {}
            Workspace::Folder => {
                return Err(format!(
                    "the folder `{}` does not exist for this runner: name it in its `paths`",
                    work.display()
                ));
            }
            Workspace::Git => {
                let source = config.repository.clone().unwrap_or_default();
                let before = read_record(&trusted);
                if before.as_ref().is_some_and(|it| it.kind == "conversation") {
                    return Err(format!(
                        "the workspace has files that are not of `{}`: remove it with `greenroom workspace remove {id}`",
                        source.display()
                    ));
                }
                let before = before.filter(|record| record.kind == kind);
                let tree = git::Tree { own, repository: &source, work: &work, id: &id };
                let made = git::prepare(&tree, config.base.as_deref(), before.as_ref()).await?;
                (branch, base, repository) = (Some(made.branch), Some(made.base), Some(source));
            }
        }
        let record = Record {
            owner: owner.clone(),
            kind: kind.to_owned(),
            path: work.clone(),
            branch,
            base,
            repository,
        };
        let json = serde_json::to_vec_pretty(&record).unwrap_or_default();
        // Written before every run: its time says when the workspace was used last.
        let recorded = trusted.write(RECORD, &json);
        recorded.map_err(|error| format!("cannot write `{RECORD}`: {error}"))?;
        Ok((Self { id, root, home, work, record, identity, is_new }, lease))
    }

    /// The path of the folder with what the host adds, below the workspace. Conversations that share a folder have
    /// one each.
    pub(crate) fn own_path(&self) -> PathBuf {
        match self.record.kind.as_str() {
            "folder" => Path::new(OWN).join(&self.id),
            _ => PathBuf::from(OWN),
        }
    }

    /// The folder for what the host adds to the workspace.
    pub(crate) fn own_folder(&self) -> io::Result<Folder> {
        let folder = self.work_folder()?.make(self.own_path())?;
        folder.write(".gitignore", IGNORE_ALL)?;
        Ok(folder)
    }

    pub(crate) fn work_folder(&self) -> io::Result<Folder> {
        match self.record.kind.as_str() {
            "folder" => Folder::trusted(&self.work),
            _ => Folder::trusted(&self.root)?.open("work"),
        }
    }

    pub(crate) fn home_folder(&self) -> io::Result<Folder> {
        Folder::trusted(&self.root)?.open("home")
    }

    /// Stores a file of the event; a name that exists gets a number.
    pub(crate) fn write_incoming(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let folder = self.own_folder()?.make(INCOMING)?;
        let name = plain_name(name);
        let taken: HashSet<String> = folder.entries()?.into_iter().map(|entry| entry.0).collect();
        let same = |name: &str| folder.read(name, bytes.len() as u64).is_ok_and(|it| it == bytes);
        let free = numbered(&name).find(|name| !taken.contains(name) || same(name));
        let name = free.ok_or_else(|| io::Error::other("too many files of this name"))?;
        folder.write(&name, bytes)?;
        Ok(self.work.join(self.own_path()).join(INCOMING).join(name))
    }
}

/// The name, then the name with numbers.
pub(crate) fn numbered(name: &str) -> impl Iterator<Item = String> {
    let with = move |number: usize| match number {
        0 => name.to_owned(),
        number => format!("{number}-{name}"),
    };
    (0..10_000).map(with)
}

fn read_record(root: &Folder) -> Option<Record> {
    serde_json::from_slice(&root.read(RECORD, RECORD_BYTES_MAX).ok()?).ok()
}

/// Keeps a workspace from being removed.
#[derive(Debug)]
pub(crate) struct Lease(#[expect(dead_code, reason = "the lock ends with the file")] File);

impl Lease {
    /// Creates the folder of the workspace and locks it, once nobody removes it.
    async fn take(root: &Path) -> io::Result<Self> {
        let root = root.to_owned();
        let take = move || loop {
            create(&root)?;
            let path = root.join(LEASE);
            let file = File::options().create(true).truncate(false).write(true).open(&path);
            let file = match file {
                // Removed in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            flock(&file, FlockOperation::LockShared)?;
            let own = file.metadata()?;
            let is_same =
                |there: std::fs::Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
            if std::fs::symlink_metadata(&path).is_ok_and(is_same) {
                return Ok(Self(file));
            }
        };
        tokio::task::spawn_blocking(take).await.map_err(io::Error::other)?
    }
}

/// What removes a workspace that no run uses: the folder gets another name first, so that a run that starts now gets a
/// new one. None if a run uses it.
pub fn take_away(root: &Path) -> io::Result<Option<PathBuf>> {
    let lock = File::options().create(true).truncate(false).write(true).open(root.join(LEASE))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let away = root.with_file_name(format!(".{name}.{}.removed", std::process::id()));
    std::fs::rename(root, &away)?;
    Ok(Some(away))
}

/// A file name without anything that leads elsewhere.
pub(crate) fn plain_name(name: &str) -> String {
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
            let (place, _lease) = Place::prepare(own.path(), &owner, &config).await.unwrap();
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
        let (place, _lease) =
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

    #[tokio::test]
    async fn a_workspace_is_removed_only_when_no_run_uses_it() {
        let own = tempfile::tempdir().unwrap();
        let (owner, config) = (owner("c", None), Config::default());
        let (place, lease) = Place::prepare(own.path(), &owner, &config).await.unwrap();
        std::fs::write(place.work.join("a"), "a").unwrap();
        assert_eq!(take_away(&place.root).unwrap(), None);
        drop(lease);
        let away = take_away(&place.root).unwrap().unwrap();
        assert!(away.join("work/a").exists() && !place.root.exists());
        let (again, _lease) = Place::prepare(own.path(), &owner, &config).await.unwrap();
        assert!(again.root == place.root && again.identity != place.identity);
    }

    #[tokio::test]
    async fn conversations_that_share_a_folder_have_their_own_files() {
        let root = tempfile::tempdir().unwrap();
        let (own, shared) = (root.path().join("own"), root.path().join("shared"));
        std::fs::create_dir_all(&shared).unwrap();
        let config = Config {
            workspace: Workspace::Folder,
            folder: Some(shared.clone()),
            ..Config::default()
        };
        let mut paths = Vec::new();
        for name in ["c", "d"] {
            let prepared = Place::prepare(&own, &owner(name, None), &config).await;
            paths.push(prepared.unwrap().0.write_incoming("a", name.as_bytes()).unwrap());
        }
        assert!(paths.iter().all(|path| path.starts_with(shared.join(OWN))));
        assert_eq!(std::fs::read_to_string(&paths[0]).unwrap(), "c");
        assert_eq!(std::fs::read_to_string(&paths[1]).unwrap(), "d");
    }
}
