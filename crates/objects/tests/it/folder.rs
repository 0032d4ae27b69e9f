//! Failures that only a folder has.

use super::kit::*;
use greenroom_objects::{ObjectId, Objects, ObjectsError, Staged};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

struct Ground {
    folder: tempfile::TempDir,
    objects: Objects,
}

impl Ground {
    async fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&super::kit::folder(folder.path()), OWNER).await.unwrap();
        Ground { folder, objects }
    }

    fn path(&self, id: ObjectId) -> PathBuf {
        self.folder.path().join(id.shard().to_string()).join(id.to_string())
    }

    fn waiting(&self) -> usize {
        fs::read_dir(self.folder.path().join("incoming")).unwrap().count()
    }
}

/// A file that must not be read through the store.
fn secret(folder: &Path) -> PathBuf {
    let path = folder.join("secret");
    fs::write(&path, "secret").unwrap();
    path
}

async fn refused(objects: &Objects, id: ObjectId) {
    for error in [
        objects.read(id, 0..6).await.unwrap_err(),
        match objects.stream(id, 0..6).await {
            Err(error) => error,
            Ok(_) => panic!("it was read"),
        },
    ] {
        assert!(matches!(error, ObjectsError::Tampered(_)), "{error}");
    }
}

#[tokio::test]
async fn a_link_instead_of_an_object_is_not_followed() {
    let ground = Ground::new().await;
    let id = put_small(&ground.objects, "public").await;
    fs::remove_file(ground.path(id)).unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(secret(outside.path()), ground.path(id)).unwrap();
    refused(&ground.objects, id).await;
    // Keeping the object again replaces the link, not its target.
    put_small(&ground.objects, "public").await;
    assert_eq!(ground.objects.read(id, 0..6).await.unwrap(), "public");
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn a_link_instead_of_a_shard_is_not_followed() {
    let ground = Ground::new().await;
    let id = put_small(&ground.objects, "public").await;
    let outside = tempfile::tempdir().unwrap();
    fs::rename(secret(outside.path()), outside.path().join(id.to_string())).unwrap();
    let shard = ground.path(id).parent().unwrap().to_owned();
    fs::remove_dir_all(&shard).unwrap();
    symlink(outside.path(), &shard).unwrap();
    refused(&ground.objects, id).await;
    let staged = Staged::from_bytes("public".into());
    let error = ground.objects.keep(staged).await.unwrap_err();
    assert!(matches!(error, ObjectsError::Tampered(_)), "{error}");
    assert!(ground.objects.list(id.shard()).await.is_err());
    assert!(ground.objects.delete(id).await.is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_link_instead_of_the_incoming_folder_is_refused() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), folder.path().join("incoming")).unwrap();
    assert!(Objects::open(&super::kit::folder(folder.path()), OWNER).await.is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_pipe_or_a_folder_instead_of_an_object_does_not_block() {
    let ground = Ground::new().await;
    let id = put_small(&ground.objects, "public").await;
    fs::remove_file(ground.path(id)).unwrap();
    fs::create_dir(ground.path(id)).unwrap();
    refused(&ground.objects, id).await;
    fs::remove_dir(ground.path(id)).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, ground.path(id), mode).unwrap();
    refused(&ground.objects, id).await;
}

#[tokio::test]
async fn replaced_bytes_are_not_returned_whole() {
    let ground = Ground::new().await;
    let id = put_small(&ground.objects, "public").await;
    fs::write(ground.path(id), "hidden").unwrap();
    let error = whole(&ground.objects, id, 6).await.unwrap_err();
    assert!(matches!(error, ObjectsError::Tampered(_)), "{error}");
    fs::write(ground.path(id), "pub").unwrap();
    refused(&ground.objects, id).await;
    // Bytes of another length are detected and replaced by the right ones.
    put_small(&ground.objects, "public").await;
    assert_eq!(whole(&ground.objects, id, 6).await.unwrap(), "public");
}

#[tokio::test]
async fn incoming_files_of_an_earlier_start_are_swept() {
    let ground = Ground::new().await;
    let (sender, pieces) = tokio::sync::mpsc::channel::<Result<bytes::Bytes, std::io::Error>>(1);
    let pieces = futures_util::stream::unfold(pieces, async |mut pieces| {
        pieces.recv().await.map(|piece| (piece, pieces))
    });
    let objects = ground.objects.clone();
    let staging = async { objects.stage(pieces, u64::MAX).await };
    let sweeping = async {
        sender.send(Ok(bytes(1, 400_000))).await.unwrap();
        sender.send(Ok(bytes(2, 400_000))).await.unwrap();
        // The second piece was accepted, so the first is on disk.
        sender.send(Ok(bytes(3, 400_000))).await.unwrap();
        assert_eq!(ground.waiting(), 1);
        // The upload of this start continues; one of an earlier start is removed.
        fs::write(ground.folder.path().join("incoming/earlier-0.part"), "half").unwrap();
        assert_eq!(ground.objects.sweep().await.unwrap(), 1);
        assert_eq!(ground.waiting(), 1);
        drop(sender);
    };
    let (staged, ()) = tokio::join!(staging, sweeping);
    let staged = staged.unwrap();
    assert_eq!(staged.size(), 1_200_000);
    drop(staged);
    assert_eq!(ground.waiting(), 0);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_fails_and_keeps_nothing() {
    let ground = Ground::new().await;
    // Not by permissions: they do not bind root.
    fs::remove_dir_all(ground.folder.path().join("incoming")).unwrap();
    let error = ground.objects.keep(Staged::from_bytes("x".into())).await.unwrap_err();
    assert!(matches!(error, ObjectsError::Io(_)) && error.is_passing(), "{error}");
    assert_eq!(all(&ground.objects).await, []);
}
