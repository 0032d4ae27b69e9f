//! Archives: what is in them, and which are refused.

use crate::scene::{back_up, config, create, event, prepare, restore, run, upload};
use greenroom_testkit::host::TestHost;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A host with a little of everything, stopped, and its backup.
async fn backed_up() -> (TestHost, PathBuf) {
    let mut host = prepare(&config("", "http://127.0.0.1:9/hook"));
    host.start_again().await;
    let api = host.api();
    for n in 0..20 {
        let sent = event("echo", "c", &format!("text {n}"));
        api.ended_run(&api.send_event(&sent).await.run_id.unwrap()).await;
    }
    api.json(upload(b"some bytes".repeat(1_000))).await.unwrap();
    assert!(host.stop().await.success());
    let runner = host.data().join("runners/echo");
    std::fs::write(runner.join("notes.txt"), "kept by a runner").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", runner.join("link")).unwrap();
    let file = back_up(&host, "backup.tar").await;
    (host, file)
}

fn members(file: &Path) -> Vec<String> {
    let mut archive = tar::Archive::new(File::open(file).unwrap());
    let entries = archive.entries().unwrap();
    entries.map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_holds_the_host_and_is_restored_with_its_keys_and_configuration() {
    let (host, file) = backed_up().await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    let names = members(&file);
    for name in [
        "database/events.jsonl.gz",
        "database/outbox.jsonl.gz",
        "data/admin-token",
        "data/runners/echo/notes.txt",
        "config/greenroom.toml",
        "config/secrets/ci",
        "manifest.json",
    ] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
    assert!(
        !names.iter().any(|name| name.ends_with("/link") || name.contains("lock")),
        "{names:?}"
    );
    let new = prepare("");
    let told = restore(&file, &new, &[]).await;
    assert_eq!(told.json()["artifacts"], 1, "{told:?}");
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let (old, data) = (host.data(), new.data());
    assert_eq!(read(data.join("admin-token")), read(old.join("admin-token")));
    assert_eq!(read(data.join("config/secrets/ci")), "ci-token-0123456789abcdef");
    assert_eq!(
        read(data.join("config/greenroom.toml")),
        read(host.folder().join("greenroom.toml"))
    );
    for path in ["admin-token", "greenroom.db", "config/secrets/ci"] {
        assert_eq!(mode(&data.join(path)), 0o600, "{path}");
    }
    assert_eq!((mode(&data), mode(&data.join("config"))), (0o700, 0o700));
    assert!(!data.join("restore-incomplete").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_archive_is_refused_before_anything_is_written() {
    let (host, file) = backed_up().await;
    let whole = std::fs::read(&file).unwrap();
    let places: Vec<(String, u64, u64)> = {
        let mut archive = tar::Archive::new(File::open(&file).unwrap());
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.path().unwrap().display().to_string(), entry.raw_file_position(), entry.size())
        });
        entries.filter(|(_, _, size)| *size > 0).collect()
    };
    let damaged = host.folder().join("damaged.tar");
    let mut broken: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, at, size) in &places {
        let mut bytes = whole.clone();
        bytes[usize::try_from(at + size / 2).unwrap()] ^= 1;
        broken.push((name.clone(), bytes));
    }
    let end = places.last().map(|(_, at, size)| at + size).unwrap();
    for cut in [0, 100, 512, whole.len() / 3, whole.len() / 2, usize::try_from(end).unwrap() - 1] {
        broken.push((format!("cut at {cut}"), whole[..cut].to_vec()));
    }
    assert!(broken.len() > 30, "{}", broken.len());
    // Every member for the list, and some for the slower restore.
    for (n, (what, bytes)) in broken.iter().enumerate() {
        std::fs::write(&damaged, bytes).unwrap();
        let path = damaged.to_str().unwrap();
        let listed = run(["backup", "list", "--verify", "--json", path]).await;
        assert_eq!(listed.code, 1, "{what}: {listed:?}");
        assert!(!listed.out.contains(r#""problem":null"#), "{what}: {listed:?}");
        if n % 5 == 0 || n + 7 > broken.len() {
            let new = prepare("");
            restore(&damaged, &new, &[]).await.refused(path);
            assert!(!new.data().exists(), "{what}");
        }
    }
    let folder = run(["backup", "list", host.folder().to_str().unwrap()]).await;
    assert_eq!(folder.code, 1, "{folder:?}");
    assert!(folder.out.contains("backup.tar") && folder.out.contains("complete"), "{folder:?}");
}

/// Writes a member whose name no well-behaved program would write.
fn add(builder: &mut tar::Builder<File>, name: &str, kind: tar::EntryType, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    if kind == tar::EntryType::Symlink {
        header.set_link_name("/etc").unwrap();
    }
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_would_leave_the_folder_are_refused() {
    let (host, file) = backed_up().await;
    let evil = host.folder().join("evil.tar");
    for (name, kind) in [
        ("../evil", tar::EntryType::Regular),
        ("data/../../evil", tar::EntryType::Regular),
        ("/tmp/greenroom-evil", tar::EntryType::Regular),
        ("data/runners/link", tar::EntryType::Symlink),
        ("data/runners/hard", tar::EntryType::Link),
        ("data/runners/more", tar::EntryType::Regular),
    ] {
        let mut builder = tar::Builder::new(File::create(&evil).unwrap());
        let bytes: &[u8] = if kind == tar::EntryType::Regular { b"evil" } else { b"" };
        add(&mut builder, name, kind, bytes);
        let mut archive = tar::Archive::new(File::open(&file).unwrap());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let (header, mut bytes) = (entry.header().clone(), Vec::new());
            entry.read_to_end(&mut bytes).unwrap();
            builder.append(&header, bytes.as_slice()).unwrap();
        }
        builder.finish().unwrap();
        let new = prepare("");
        restore(&evil, &new, &[]).await.refused("is damaged");
        assert!(!new.data().exists() && !new.folder().join("evil").exists(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_there_is_replaced() {
    let (host, file) = backed_up().await;
    restore(&file, &host, &[]).await.refused("is not empty");
    let new = prepare("");
    std::fs::create_dir(new.data()).unwrap();
    std::fs::write(new.data().join("mine"), "mine").unwrap();
    restore(&file, &new, &[]).await.refused("is not empty");
    assert_eq!(std::fs::read_dir(new.data()).unwrap().count(), 1);
    let again = run(create(&host, &file)).await;
    again.refused("already exists");
    let nothing = prepare("");
    let none = run(create(&nothing, &nothing.folder().join("x.tar"))).await;
    assert_eq!(none.code, 3, "{none:?}");
    let other = host.folder().join("other.tar");
    std::fs::write(&other, "not a tar").unwrap();
    restore(&other, &nothing, &[]).await.refused("is not a backup");
}
