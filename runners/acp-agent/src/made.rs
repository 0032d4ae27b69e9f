//! Files that a harness made or changed in its workspace during a run: artifacts of the run.
//!
//! Invariant: no link is followed, and what is hidden, generated or too much is left out.

use crate::beneath::{Folder, Kind, Stamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_sdk::{ArtifactCreated, ArtifactOptions, Object, RunCtx, RunFailure, RunResult};
use std::collections::HashMap;
use std::io;

/// Entries of a workspace that are looked at; in a larger one nothing is reported.
const ENTRIES_MAX: usize = 5_000;
const DEPTH_MAX: usize = 16;
/// Most files of one run, and largest one.
const FILES_MAX: usize = 20;
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Largest file within a result; others are uploaded in parts.
const INLINE_BYTES_MAX: usize = 256 * 1024;
/// Folders of programs, which are full of generated files.
const GENERATED: [&str; 5] = ["node_modules", "target", "__pycache__", "venv", "vendor"];

/// The files of a workspace, by path.
#[derive(Debug, Default)]
pub(crate) struct Files(HashMap<String, Stamp>);

impl Files {
    /// None if there are too many.
    pub(crate) fn list(work: &Folder) -> io::Result<Option<Self>> {
        let mut files = HashMap::new();
        let mut left = ENTRIES_MAX;
        let mut open = vec![(work.make("")?, String::new(), 0)];
        while let Some((folder, path, depth)) = open.pop() {
            for (name, kind) in folder.entries()? {
                left = match left.checked_sub(1) {
                    Some(left) => left,
                    None => return Ok(None),
                };
                let below = format!("{path}{name}");
                match kind {
                    _ if name.starts_with('.') => {}
                    Kind::File(stamp) => drop(files.insert(below, stamp)),
                    Kind::Folder if depth < DEPTH_MAX && !GENERATED.contains(&name.as_str()) => {
                        // It may be gone already.
                        if let Ok(inner) = folder.open(&name) {
                            open.push((inner, below + "/", depth + 1));
                        }
                    }
                    Kind::Folder | Kind::Other => {}
                }
            }
        }
        Ok(Some(Self(files)))
    }

    /// The paths that are new or changed since, in order.
    pub(crate) fn since(&self, before: &Self) -> Vec<&str> {
        let is_new = |(path, stamp): &(&String, &Stamp)| before.0.get(*path) != Some(*stamp);
        let mut paths: Vec<&str> =
            self.0.iter().filter(is_new).map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable();
        paths
    }
}

/// The files of a workspace, if they can be listed.
pub(crate) async fn list(work: &Folder) -> Option<Files> {
    let work = work.make("").ok()?;
    let listed = tokio::task::spawn_blocking(move || Files::list(&work)).await;
    match listed {
        Ok(Ok(files)) => files,
        Ok(Err(error)) => {
            eprintln!("cannot list the files of the workspace: {error}");
            None
        }
        Err(_) => None,
    }
}

/// Reports the files that are new or changed since `before`.
pub(crate) async fn report(
    ctx: &RunCtx,
    work: &Folder,
    before: Option<Files>,
) -> Result<(), RunFailure> {
    let Some(before) = before else { return Ok(()) };
    let Some(now) = list(work).await else { return Ok(()) };
    let paths = now.since(&before);
    if paths.len() > FILES_MAX {
        eprintln!("{} files changed; the first {FILES_MAX} are artifacts", paths.len());
    }
    for path in paths.into_iter().take(FILES_MAX) {
        match work.read(path, FILE_BYTES_MAX) {
            Ok(bytes) => emit(ctx, path, None, &bytes).await?,
            Err(error) => eprintln!("`{path}` is no artifact: {error}"),
        }
    }
    Ok(())
}

/// One file as an artifact of the run.
pub(crate) async fn emit(
    ctx: &RunCtx,
    path: &str,
    mime_type: Option<&str>,
    bytes: &[u8],
) -> Result<(), RunFailure> {
    let name = Some(path.rsplit('/').next().unwrap_or(path).to_owned());
    let metadata = Object::from_iter([("path".to_owned(), path.into())]);
    let mime_type = mime_type.map(str::to_owned);
    let mut artifact = ArtifactCreated {
        artifact_id: None,
        name: name.clone(),
        mime_type: mime_type.clone(),
        size_bytes: Some(bytes.len() as u64),
        sha256: None,
        content_base64: None,
        metadata: Some(metadata.clone()),
    };
    if bytes.len() <= INLINE_BYTES_MAX {
        artifact.content_base64 = Some(STANDARD.encode(bytes));
    } else {
        let options = ArtifactOptions { name, mime_type, metadata, ..ArtifactOptions::default() };
        match ctx.artifacts().create(bytes, options).await {
            Ok(stored) => artifact.artifact_id = Some(stored.artifact_id),
            Err(error) => {
                eprintln!("`{path}` is no artifact: {}", error.message);
                return Ok(());
            }
        }
    }
    ctx.emit(RunResult::artifact_of(artifact)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_and_changed_files_are_found_without_links_and_generated_ones() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("kept", "1");
        write("changed", "1");
        let folder = Folder::trusted(root.path()).unwrap();
        let before = Files::list(&folder).unwrap().unwrap();
        write("changed", "2");
        write("out/report.md", "new");
        write(".greenroom/agent-context.json", "{}");
        write("node_modules/a/index.js", "x");
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
        let now = Files::list(&folder).unwrap().unwrap();
        assert_eq!(now.since(&before), ["changed", "out/report.md"]);
    }
}
