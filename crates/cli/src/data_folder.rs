//! The data folder: its lock, the admin token and the address of the running host.
//!
//! Invariant: one host per folder; the lock is taken before anything in it is read or written.

use crate::doors::Doors;
use crate::failure::Failure;
use anyhow::{Context, anyhow};
use rustix::fs::{FlockOperation, Mode, flock};
use serde_json::{Value, json};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_AGAIN: Duration = Duration::from_millis(20);
/// Exists in a folder while a restore fills it.
const INCOMPLETE: &str = "restore-incomplete";

pub(crate) struct DataFolder {
    path: PathBuf,
    _lock: File,
}

/// The mark of a folder that is being filled.
pub(crate) struct Incomplete {
    folder: PathBuf,
}

impl Incomplete {
    pub(crate) fn remove(self) -> std::io::Result<()> {
        std::fs::remove_file(self.folder.join(INCOMPLETE))?;
        File::open(&self.folder)?.sync_all()
    }
}

impl DataFolder {
    /// Creates the folder if needed and takes its lock, which the end of the process releases.
    pub(crate) fn take(path: &Path) -> Result<Self, Failure> {
        // Whatever the mode of the folder, only the owner may read what the host writes.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.with_context(|| format!("cannot create the data folder `{}`", path.display()))?;
        let path = path.canonicalize()?;
        let file = path.join("lock");
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).mode(0o600).open(&file);
        let lock = lock.with_context(|| format!("cannot open `{}`", file.display()))?;
        if !is_locked(&lock) {
            return Err(taken(&path));
        }
        refuse_incomplete(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Refuses a folder that is not empty.
    pub(crate) fn refuse_filled(path: &Path) -> Result<(), Failure> {
        refuse_incomplete(path)?;
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let context = format!("cannot read `{}`", path.display());
                return Err(anyhow::Error::new(error).context(context).into());
            }
        };
        let known = ["lock", "greenroom.db.lock", "greenroom.db.part"];
        for entry in entries {
            let name = entry?.file_name();
            if !known.iter().any(|known| name == *known) {
                let message = format!("`{}` is not empty", path.display());
                return Err(Failure::new(message).hint("choose a new folder with `--data`"));
            }
        }
        Ok(())
    }

    /// Keeps hosts from starting with this folder until the mark is removed.
    pub(crate) fn mark_incomplete(&self) -> anyhow::Result<Incomplete> {
        self.write(INCOMPLETE, "a restore into this folder has not finished\n")?;
        File::open(&self.path)?.sync_all()?;
        Ok(Incomplete { folder: self.path.clone() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The admin token; written at the first start.
    pub(crate) fn admin_token(&self) -> anyhow::Result<String> {
        let path = self.path.join("admin-token");
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        }
        let token = random("gr_admin_")?;
        self.write("admin-token", &format!("{token}\n"))?;
        Ok(token)
    }

    /// Announces the address and configuration of this host to other commands.
    pub(crate) fn announce(&self, doors: &Doors, config: Option<&Path>) -> anyhow::Result<()> {
        let config = config.and_then(|path| std::path::absolute(path).ok());
        let mut file = json!({"url": doors.listening(), "address": doors.address().to_string(),
            "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION"), "config": config});
        if let Some(sha256) = doors.certificate_sha256() {
            file["certificate_sha256"] = sha256.into();
        }
        self.write("host.json", &format!("{file}\n"))
    }

    /// Removes the announcement after an orderly stop.
    pub(crate) fn withdraw(&self) {
        let _ = std::fs::remove_file(self.path.join("host.json"));
    }

    /// Writes a file atomically, readable by the owner only.
    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let (path, fresh) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let write = || -> std::io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file =
                options.create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&fresh, &path)
        };
        write().with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// Refuses a folder with an unfinished restore.
pub(crate) fn refuse_incomplete(path: &Path) -> Result<(), Failure> {
    if !path.join(INCOMPLETE).exists() {
        return Ok(());
    }
    let message = format!("a restore into `{}` did not finish", path.display());
    Err(Failure::new(message).hint("remove the folder, then restore the backup again"))
}

/// Takes the lock; after a host was killed, a process that it was starting may hold it for a moment.
fn is_locked(lock: &File) -> bool {
    let until = Instant::now() + LOCK_WAIT;
    while flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(LOCK_AGAIN);
    }
    true
}

/// The error if another host holds the lock.
fn taken(path: &Path) -> Failure {
    let message = format!("another host uses the data folder `{}`", path.display());
    let text = std::fs::read_to_string(path.join("host.json")).unwrap_or_default();
    let host: Value = serde_json::from_str(&text).unwrap_or_default();
    match (host["url"].as_str(), host["pid"].as_u64()) {
        (Some(url), Some(pid)) => Failure::new(message)
            .hint(format!("it listens on {url} (pid {pid}); stop it first, or select another folder with `--data DIR`")),
        _ => Failure::new(message).hint("stop it first, or select another folder with `--data DIR`"),
    }
}

/// A random token with a prefix for its kind.
pub(crate) fn random(prefix: &str) -> anyhow::Result<String> {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no randomness: {error}"))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{prefix}{text}"))
}
