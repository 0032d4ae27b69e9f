//! What only a folder can suffer.

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

/// A file that nobody may read through the store.
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
async fn a_link_in_the_place_of_bytes_is_not_followed() {
    let ground = Ground::new().await;
    let id = put_small(&ground.objects, "public").await;
    fs::remove_file(ground.path(id)).unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(secret(outside.path()), ground.path(id)).unwrap();
    refused(&ground.objects, id).await;
    // Keeping the bytes again replaces the link and leaves what it pointed to alone.
    put_small(&ground.objects, "public").await;
    assert_eq!(ground.objects.read(id, 0..6).await.unwrap(), "public");
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn a_link_in_the_place_of_a_shard_is_not_followed() {
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
async fn a_link_in_the_place_of_the_incoming_folder_is_refused() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), folder.path().join("incoming")).unwrap();
    assert!(Objects::open(&super::kit::folder(folder.path()), OWNER).await.is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_pipe_or_a_folder_in_the_place_of_bytes_holds_nobody_up() {
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
async fn bytes_that_were_exchanged_are_not_given_out_whole() {
    let ground = Ground::new().await;
    let id = put_small(&ground.objects, "public").await;
    fs::write(ground.path(id), "hidden").unwrap();
    let error = whole(&ground.objects, id, 6).await.unwrap_err();
    assert!(matches!(error, ObjectsError::Tampered(_)), "{error}");
    fs::write(ground.path(id), "pub").unwrap();
    refused(&ground.objects, id).await;
    // Bytes of another length are known to be wrong, and replaced by those that come.
    put_small(&ground.objects, "public").await;
    assert_eq!(whole(&ground.objects, id, 6).await.unwrap(), "public");
}

#[tokio::test]
async fn what_an_earlier_start_left_on_its_way_is_swept() {
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
        // The second was taken, so the first is on disk by now.
        sender.send(Ok(bytes(3, 400_000))).await.unwrap();
        assert_eq!(ground.waiting(), 1);
        // This start's own upload goes on; one of an earlier start is gone.
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
    // Not by permissions, which do not hold everyone.
    fs::remove_dir_all(ground.folder.path().join("incoming")).unwrap();
    let error = ground.objects.keep(Staged::from_bytes("x".into())).await.unwrap_err();
    assert!(matches!(error, ObjectsError::Io(_)) && error.is_passing(), "{error}");
    assert_eq!(all(&ground.objects).await, []);
}
