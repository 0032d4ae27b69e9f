//! The bytes of artifacts: to and from an archive.

use super::archive::{Archive, ArchiveWriter, Section};
use super::manifest::Artifacts;
use super::progress::{Progress, count, size};
use super::tables::Referred;
use crate::failure::Failure;
use anyhow::{Context, anyhow};
use bytes::Bytes;
use futures_util::StreamExt;
use greenroom_objects::{Backend, ByteStream, ObjectId, Objects, ObjectsError};
use greenroom_store::Location;
use greenroom_store::copy::refers_to;
use std::io::{self, Read, Write};
use tokio::runtime::Handle;

const FOLDER: &str = "artifacts/";
const PIECE_BYTES: usize = 256 * 1024;

/// Where bytes are read from, and the store that knows whether they are still used.
pub(crate) struct Source<'a> {
    pub(crate) backend: &'a Backend,
    pub(crate) location: &'a Location,
    pub(crate) owner: String,
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Copies the bytes of all artifacts in the snapshot.
pub(crate) fn collect(
    source: &Source<'_>,
    referred: &Referred,
    archive: &mut ArchiveWriter,
    (progress, runtime): (&mut Progress, &Handle),
) -> Result<Artifacts, Failure> {
    let mut artifacts =
        Artifacts { owner: source.owner.clone(), count: 0, bytes: 0, collected: Vec::new() };
    if referred.is_empty() {
        return Ok(artifacts);
    }
    let objects = open(source.backend, &source.owner, runtime)?;
    for (hash, length) in referred {
        let id = ObjectId::parse(hash).ok_or_else(|| anyhow!("`{hash}` is not a SHA-256"))?;
        match runtime.block_on(objects.stream(id, 0..*length)) {
            Ok(pieces) => {
                archive
                    .add(&format!("{FOLDER}{hash}"), 0o600, |out| drain(pieces, out, runtime))
                    .with_context(|| format!("cannot copy the bytes of artifact {hash}"))?;
                artifacts.count += 1;
                artifacts.bytes += length;
            }
            Err(error) => {
                refuse_unless_collected(source, hash, error)?;
                artifacts.collected.push(hash.clone());
            }
        }
        progress.update(|| {
            let all = count(referred.len() as u64, "artifact");
            format!("{} of {all}, {}", artifacts.count, size(artifacts.bytes))
        });
    }
    progress.done(&format!(
        "artifacts: {} ({}) from {}",
        count(artifacts.count, "object"),
        size(artifacts.bytes),
        source.backend
    ));
    Ok(artifacts)
}

fn drain(mut pieces: ByteStream, out: &mut dyn Write, runtime: &Handle) -> Result<(), ReadError> {
    while let Some(piece) = runtime.block_on(pieces.next()) {
        out.write_all(&piece?)?;
    }
    Ok(())
}

/// Whether the host deleted the artifact after the snapshot, which explains missing bytes.
fn refuse_unless_collected(
    source: &Source<'_>,
    hash: &str,
    error: ObjectsError,
) -> Result<(), Failure> {
    let is_missing = matches!(error, ObjectsError::Missing(_));
    if is_missing && !refers_to(source.location, hash).map_err(anyhow::Error::new)? {
        return Ok(());
    }
    let context = format!("cannot read the bytes of artifact {hash} in {}", source.backend);
    Err(anyhow::Error::new(error).context(context).into())
}

/// Puts all bytes of a verified archive into a backend, reads them back and compares.
pub(crate) fn restore(
    archive: &Archive,
    backend: &Backend,
    (progress, runtime): (&mut Progress, &Handle),
) -> Result<(), Failure> {
    let artifacts = &archive.manifest.artifacts;
    let members = archive.below(FOLDER);
    if members.is_empty() {
        return Ok(());
    }
    let objects = open(backend, &artifacts.owner, runtime)?;
    let mut done = 0;
    for (at, (name, hash, _)) in members.iter().enumerate() {
        let mut section = archive.section(name).map_err(anyhow::Error::new)?;
        let pieces = std::iter::from_fn(|| next_piece(&mut section).transpose());
        let staged = runtime
            .block_on(objects.stage(futures_util::stream::iter(pieces), u64::MAX))
            .with_context(|| format!("cannot restore the bytes of artifact {hash}"))?;
        let (id, length) = (staged.id(), staged.size());
        if id.to_string() != *hash {
            let what = format!("the bytes of `{name}` do not match its name");
            return Err(anyhow::Error::new(archive.damaged(what)).into());
        }
        runtime
            .block_on(objects.keep(staged))
            .and_then(|()| runtime.block_on(objects.stream(id, 0..length)))
            .map_err(ReadError::from)
            .and_then(|pieces| drain(pieces, &mut io::sink(), runtime))
            .with_context(|| format!("cannot restore the bytes of artifact {hash}"))?;
        done += length;
        progress.update(|| format!("{at} of {} artifacts, {}", members.len(), size(done)));
    }
    progress.done(&format!(
        "artifacts: {} ({}) in {backend}, read back and verified",
        count(members.len() as u64, "object"),
        size(done)
    ));
    Ok(())
}

fn next_piece(section: &mut Section<'_>) -> io::Result<Option<Bytes>> {
    let mut piece = vec![0; PIECE_BYTES];
    let length = section.read(&mut piece)?;
    piece.truncate(length);
    Ok((length > 0).then(|| piece.into()))
}

fn open(backend: &Backend, owner: &str, runtime: &Handle) -> Result<Objects, Failure> {
    let objects = runtime.block_on(Objects::open(backend, owner));
    let context = || format!("cannot use `{backend}` for artifacts");
    Ok(objects.with_context(context)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_store::{Options, Store, Sync};
    use std::time::SystemTime;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn bytes_that_the_host_has_collected_since_the_snapshot_are_noted_and_needed_ones_missed() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("greenroom.db"));
        let store =
            Store::open(&Options { location: location.clone(), sync: Sync::Normal }).unwrap();
        let backend = Backend::Folder(folder.path().join("artifacts"));
        let source = Source { backend: &backend, location: &location, owner: "me".to_owned() };
        let referred = Referred::from([(HASH.to_owned(), 3)]);
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let collect = || {
            let target = folder.path().join("backup.tar");
            let mut archive = ArchiveWriter::create(&target, SystemTime::now()).unwrap();
            let mut progress = Progress::new();
            super::collect(&source, &referred, &mut archive, (&mut progress, runtime.handle()))
        };
        let artifacts = collect().unwrap();
        assert_eq!((artifacts.count, artifacts.collected), (0, vec![HASH.to_owned()]));
        let database = rusqlite::Connection::open(folder.path().join("greenroom.db")).unwrap();
        let row = format!(
            "INSERT INTO artifacts (workspace_id, artifact_id, sha256, size, mime_type, metadata, created_at)
             VALUES ('default', 'a', '{HASH}', 3, 'text/plain', '{{}}', 1)"
        );
        database.execute_batch(&row).unwrap();
        let refused = collect().unwrap_err().to_string();
        assert!(refused.contains(HASH) && refused.contains("does not exist"), "{refused}");
        store.close();
    }
}
