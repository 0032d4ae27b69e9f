//! Files of this machine that runs may read: `files` of a grant.
//!
//! Invariant: a run sees a file as it was when the run was given to its runner, also if it is changed or removed later.
//! No link is followed, secrets of this host are removed from the bytes, and what the host itself stores is never read.

use crate::artifacts::{Artifacts, Draft, Kept};
use crate::grant::{Grant, GrantFile};
use crate::host::Shared;
use crate::ids::{hex, now_ms};
use crate::redaction::Redactor;
use bytes::Bytes;
use greenroom_objects::Staged;
use greenroom_protocol::FileResource;
use greenroom_store::types::{ArtifactRow, Diagnostic};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Largest file that can be granted.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Files that are kept ready, over all agents.
const READY_MAX: usize = 256;
/// The kind of the diagnostic of a run that lacks a granted file.
const KIND: &str = "file.unavailable";

/// Contents of granted files, by path. They are read again when the file has changed.
#[derive(Default)]
pub(crate) struct GrantedFiles(Mutex<HashMap<PathBuf, (Stamp, Arc<Kept>)>>);

/// What changes with a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

/// A granted file as one run sees it.
#[derive(Debug, Clone)]
pub(crate) struct RunFile {
    pub(crate) granted: GrantFile,
    kept: Arc<Kept>,
}

impl RunFile {
    pub(crate) fn resource(&self) -> FileResource {
        let row = &self.kept.row;
        let mut resource = self.granted.resource();
        resource.mime_type = Some(row.mime_type.clone());
        resource.size_bytes = u64::try_from(row.size).ok();
        resource.metadata.insert("sha256".to_owned(), row.sha256.clone().into());
        resource
    }

    /// The file in the form of an artifact of the run.
    pub(crate) fn as_artifact(&self, workspace_id: &str, run_id: &str) -> ArtifactRow {
        let row = &self.kept.row;
        ArtifactRow {
            workspace_id: workspace_id.to_owned(),
            artifact_id: self.granted.file_id.clone(),
            sha256: row.sha256.clone(),
            size: row.size,
            name: row.name.clone(),
            mime_type: row.mime_type.clone(),
            conversation_id: None,
            session: String::new(),
            run_id: Some(run_id.to_owned()),
            agent: None,
            metadata: json!({"source": "config"}).to_string(),
            created_at: now_ms(),
            expires_at: None,
        }
    }
}

impl GrantFile {
    /// The same id in every run; it says nothing about where the file is.
    pub(crate) fn new(name: &str, path: &Path) -> Self {
        let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let file_id = format!("file_{}", &hex(&hash)[..32]);
        Self { file_id, name: name.to_owned(), path: path.to_owned() }
    }

    /// The name that runners see.
    fn file_name(&self) -> Option<String> {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    pub(crate) fn resource(&self) -> FileResource {
        FileResource {
            file_id: self.file_id.clone(),
            name: self.file_name(),
            metadata: [("source".to_owned(), "config".into())].into_iter().collect(),
            ..FileResource::default()
        }
    }
}

impl Shared {
    /// The granted files as they are now. One that cannot be read is left out, which a diagnostic of the run says.
    pub(crate) async fn files_of(&self, grant: &Grant, run_id: &str) -> Vec<RunFile> {
        let (mut files, mut lacking) = (Vec::new(), Vec::new());
        for granted in &grant.files {
            match self.load_file(granted).await {
                Ok(kept) => files.push(RunFile { granted: granted.clone(), kept }),
                Err(reason) => {
                    let message = format!("the granted file `{}` {reason}", granted.name);
                    tracing::warn!(run.id = run_id, agent = grant.agent, "{message}");
                    lacking.push(Diagnostic {
                        kind: KIND.to_owned(),
                        message,
                        created_at: now_ms(),
                    });
                }
            }
        }
        if !lacking.is_empty() {
            self.record(run_id, lacking).await;
        }
        files
    }

    async fn load_file(&self, granted: &GrantFile) -> Result<Arc<Kept>, String> {
        let settings = self.settings.load_full();
        let bytes_max = settings.limits.artifact_bytes.min(FILE_BYTES_MAX);
        let mut ready = self.granted_files.0.lock().await;
        let known = ready.get(&granted.path).cloned();
        let path = granted.path.clone();
        let work = move || {
            if is_private(&path, &settings.private) {
                return Err("belongs to the host itself".to_owned());
            }
            read_unless(&path, known.as_ref().map(|(stamp, _)| stamp), bytes_max)
                .map(|read| (read, known))
        };
        let done = tokio::task::spawn_blocking(work).await;
        let (read, known) = done.map_err(|error| format!("cannot be read: {error}"))??;
        let (stamp, bytes) = match (read, known) {
            (Some(read), _) => read,
            (None, Some((_, kept))) => return Ok(kept),
            (None, None) => return Err("cannot be read".to_owned()),
        };
        let kept = keep(&self.artifacts, &self.redactor, granted, &bytes).await?;
        if ready.len() >= READY_MAX {
            ready.clear();
        }
        ready.insert(granted.path.clone(), (stamp, Arc::clone(&kept)));
        Ok(kept)
    }
}

async fn keep(
    artifacts: &Artifacts,
    redactor: &Redactor,
    granted: &GrantFile,
    bytes: &[u8],
) -> Result<Arc<Kept>, String> {
    let bytes = redactor.exact().bytes(bytes).into_owned();
    let draft = Draft { name: granted.file_name(), ..Draft::default() };
    let kept = artifacts.keep(Staged::from_bytes(Bytes::from(bytes)), draft, redactor).await;
    kept.map(Arc::new).map_err(|error| format!("cannot be stored: {error}"))
}

/// Whether a path is in a place that only the host uses.
fn is_private(path: &Path, private: &[PathBuf]) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    private.iter().any(|own| {
        let own = own.canonicalize().unwrap_or_else(|_| own.clone());
        real.starts_with(&own)
    })
}

/// The content of a file, unless it has this stamp.
fn read_unless(
    path: &Path,
    known: Option<&Stamp>,
    bytes_max: u64,
) -> Result<Option<(Stamp, Vec<u8>)>, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let file = greenroom_config::open_file(path).map_err(failed)?;
    let stamp = Stamp::of(&file.metadata().map_err(failed)?);
    if known == Some(&stamp) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    (&file).take(bytes_max + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("has more than {bytes_max} bytes"));
    }
    Ok(Some((stamp, bytes)))
}

/// Why a granted file cannot be read, for an operator; none if it can.
pub fn problem(path: &Path) -> Option<String> {
    match greenroom_config::open_file(path).and_then(|file| file.metadata()) {
        Ok(file) if file.len() > FILE_BYTES_MAX => {
            Some(format!("has more than {FILE_BYTES_MAX} bytes"))
        }
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("does not exist".to_owned())
        }
        Err(_) if path.is_dir() => Some("is a folder".to_owned()),
        Err(error) => {
            let is_link = path.canonicalize().is_ok_and(|real| real != path);
            Some(match is_link {
                true => "is behind a symbolic link".to_owned(),
                false => format!("cannot be read: {error}"),
            })
        }
    }
}
