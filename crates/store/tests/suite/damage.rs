//! Files of SQLite that are damaged, copied or removed: the store notices, or nothing is harmed.
//!
//! `GREENROOM_CORRUPTIONS` says how many random corruptions are tried, `GREENROOM_SEED` repeats their choices.

use super::support::*;
use greenroom_store::copy::{Snapshot, Sum};
use greenroom_store::{Location, Options, Store, StoreError, Sync};
use greenroom_testkit::random::Random;
use greenroom_testkit::wait::wait_for;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CORRUPTIONS: u64 = 60;
/// Events that a host acknowledges before it is killed.
const ACKNOWLEDGED: usize = 200;
const SUFFIXES: [&str; 4] = ["", "-wal", "-mark", "-sums"];

type Files = BTreeMap<&'static str, Vec<u8>>;
type Facts = Vec<(String, Sum)>;

/// A database that was used, stopped and used again by a host that was then killed.
struct Killed {
    _folder: tempfile::TempDir,
    path: PathBuf,
    files: Files,
    facts: Facts,
}

impl Killed {
    fn new(sync: Sync) -> Killed {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("greenroom.db");
        super::crash::kill_a_writer(&path, sync, ACKNOWLEDGED);
        Store::open(&sqlite_options(&path, sync)).unwrap().close();
        super::crash::kill_a_writer(&path, sync, ACKNOWLEDGED);
        let files = read_files(&path);
        assert!(files["-wal"].len() > 100_000 && files[""].len() > 50_000);
        let killed = Killed { facts: read_facts(&path), _folder: folder, path, files };
        killed.restore();
        killed
    }

    /// Puts every byte back, in the same files.
    fn restore(&self) {
        let _ = std::fs::remove_file(beside(&self.path, "-shm"));
        for (suffix, bytes) in &self.files {
            let mut file = File::create(beside(&self.path, suffix)).unwrap();
            file.write_all(bytes).unwrap();
        }
    }

    fn options(&self) -> Options {
        sqlite_options(&self.path, Sync::Full)
    }

    fn file(&self, suffix: &str) -> File {
        OpenOptions::new().write(true).open(beside(&self.path, suffix)).unwrap()
    }

    fn flip(&self, suffix: &str, at: usize, count: usize) {
        let bytes = &self.files[suffix][at..at + count];
        let flipped: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        self.file(suffix).write_all_at(&flipped, at as u64).unwrap();
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn read_files(path: &Path) -> Files {
    let read = |suffix| (suffix, std::fs::read(beside(path, suffix)).unwrap_or_default());
    SUFFIXES.into_iter().map(read).collect()
}

/// Everything that the database holds, read beside the store.
fn read_facts(path: &Path) -> Facts {
    let location = Location::Sqlite(path.to_owned());
    std::thread::spawn(move || {
        let mut snapshot = Snapshot::open(&location).unwrap();
        let tables = snapshot.tables().into_iter();
        tables
            .map(|table| {
                let sum = snapshot.read(&table, &mut |_, _| Ok(())).unwrap();
                (table.name, sum)
            })
            .collect()
    })
    .join()
    .unwrap()
}

async fn wait_for_check(store: &Store) -> Result<(), StoreError> {
    wait_for("the check of all pages", Duration::from_secs(30), async || {
        store.last_check().or(store.check().await.err().map(|error| error.to_string()))
    })
    .await;
    store.check().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_flipped_bytes_in_the_log_refuse_the_start_until_the_loss_is_accepted() {
    for sync in [Sync::Full, Sync::Normal] {
        let killed = Killed::new(sync);
        killed.flip("-wal", killed.files["-wal"].len() / 2, 4);
        for _ in 0..2 {
            let Err(error) = Store::open(&killed.options()) else { panic!("it was opened") };
            let text = error.to_string();
            assert!(matches!(error, StoreError::Unsound(_)), "{text}");
            assert!(text.contains("commits are missing: the write-ahead log is damaged"), "{text}");
            let Err(probed) = Store::probe(&killed.options()) else { panic!("nothing was said") };
            assert_eq!(probed.to_string(), text);
        }
        let store = Store::open_accepting_loss(&killed.options()).unwrap();
        let found = store.read(|tx| {
            let sql = "SELECT body FROM events WHERE event_type = 'store.loss_accepted'";
            tx.query(sql, &[])?.into_iter().map(|mut row| row.text()).collect()
        });
        let found: Vec<String> = found.await.unwrap();
        assert!(found.len() == 1 && found[0].contains("commits are missing"), "{found:?}");
        wait_for_check(&store).await.unwrap();
        store.close();
        let again = Store::open(&killed.options()).unwrap();
        wait_for_check(&again).await.unwrap();
        again.close();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_kill_leaves_unfinished_in_the_log_is_no_damage() {
    let killed = Killed::new(Sync::Full);
    // The frames of a transaction that was not committed: those of the first one, shifted behind the end.
    let log = &killed.files["-wal"];
    let end = log.len() as u64 / 4120 * 4120 + 32;
    killed.file("-wal").write_all_at(&log[32..32 + 4120], end).unwrap();
    let store = Store::open(&killed.options()).unwrap();
    wait_for_check(&store).await.unwrap();
    store.close();
    assert_eq!(killed.facts, read_facts(&killed.path));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_byte_in_a_stored_text_is_noticed_by_the_check_beside_the_start() {
    let killed = Killed::new(Sync::Full);
    let store = Store::open(&killed.options()).unwrap();
    wait_for_check(&store).await.unwrap();
    store.close();
    let bytes = std::fs::read(&killed.path).unwrap();
    let text = b"\"input\":{\"text\":\"";
    let at = bytes.windows(text.len()).rposition(|window| window == text).unwrap() + text.len();
    killed.file("").write_all_at(b"X", at as u64).unwrap();
    let store = Store::open(&killed.options()).unwrap();
    let error = wait_for_check(&store).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    assert!(
        error.to_string().contains("of the database file differs from its checksum"),
        "{error}"
    );
    store.close();
}

/// Copies files of a database to another folder.
fn copy(from: &Path, to: &Path, suffixes: &[&str]) {
    for suffix in suffixes {
        std::fs::copy(beside(from, suffix), beside(to, suffix)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_stopped_or_killed_host_is_complete_and_checked_before_it_is_ready() {
    let killed = Killed::new(Sync::Full);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("greenroom.db");
    copy(&killed.path, &path, &SUFFIXES);
    assert_eq!(read_facts(&path), killed.facts);
    Store::open(&sqlite_options(&path, Sync::Full)).unwrap().close();
    let other = folder.path().join("other.db");
    copy(&path, &other, &SUFFIXES);
    // One page, damaged on the way.
    let at = std::fs::metadata(&other).unwrap().len() - 2000;
    OpenOptions::new().write(true).open(&other).unwrap().write_all_at(b"damaged", at).unwrap();
    let Err(error) = Store::open(&sqlite_options(&other, Sync::Full)) else { panic!("opened") };
    let text = error.to_string();
    assert!(text.contains("its files were copied or moved, and are not complete"), "{text}");
    assert!(text.contains("differs from its checksum"), "{text}");
}

/// Whichever file is copied first: the others are of a later time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_running_host_is_refused_unless_its_files_are_of_one_time() {
    let (ground, folder) = (Ground::sqlite(), tempfile::tempdir().unwrap());
    for (number, first) in SUFFIXES.into_iter().enumerate() {
        let path = folder.path().join(format!("copy-{number}.db"));
        let store = ground.open();
        for n in 0..20 {
            accept(&store, event(&format!("{number}-{n}"), &format!("{number}-{n}"))).await;
        }
        copy(ground.path(), &path, &[first]);
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
        let store = ground.open();
        accept(&store, event("d", &format!("{number}-more"))).await;
        let others: Vec<&str> = SUFFIXES.into_iter().filter(|suffix| *suffix != first).collect();
        copy(ground.path(), &path, &others);
        match Store::open(&sqlite_options(&path, Sync::Full)) {
            Err(error) => assert!(matches!(error, StoreError::Unsound(_)), "`{first}`: {error}"),
            // The facts are in the other files.
            Ok(copy) => {
                assert_eq!(first, "-mark", "`{first}` was copied first");
                assert_eq!(read_facts(&path), read_facts(ground.path()));
                copy.close();
            }
        }
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_after_the_files_were_removed_moved_or_replaced() {
    let attacks: [fn(&Path); 4] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::remove_file(beside(path, "-wal")).unwrap(),
        |path| {
            let folder = path.parent().unwrap();
            std::fs::rename(folder, folder.with_extension("moved")).unwrap();
        },
        |path| {
            std::fs::copy(path, beside(path, ".copy")).unwrap();
            std::fs::rename(beside(path, ".copy"), path).unwrap();
        },
    ];
    for (number, attack) in attacks.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let path = folder.path().join("data/greenroom.db");
        let store = Store::open(&sqlite_options(&path, Sync::Full)).unwrap();
        accept(&store, event("c", "before")).await;
        store.check().await.unwrap();
        attack(&path);
        if number % 2 == 0 {
            let error = store.commit(event("c", "after")).await.unwrap_err();
            assert!(matches!(error, StoreError::Gone(_)), "attack {number}: {error}");
        }
        // Also without a commit.
        let gone = async || store.check().await.err();
        let error = wait_for("the notice", Duration::from_secs(5), gone).await;
        assert!(matches!(error, StoreError::Gone(_)), "attack {number}: {error}");
        let exists = path.exists();
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
        assert_eq!(path.exists(), exists, "attack {number}: no new file is made");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_after_the_log_was_cut() {
    for share in [0, 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("greenroom.db");
        let store = Store::open(&sqlite_options(&path, Sync::Full)).unwrap();
        for number in 0..20 {
            accept(&store, event("c", &format!("before {number}"))).await;
        }
        let log = OpenOptions::new().write(true).open(beside(&path, "-wal")).unwrap();
        let bytes = log.metadata().unwrap().len();
        log.set_len(bytes.checked_div(share).unwrap_or_default()).unwrap();
        for number in 0..3 {
            let error = store.commit(event("c", &format!("after {number}"))).await.unwrap_err();
            assert!(matches!(error, StoreError::Gone(_)), "{share}: {error}");
        }
        assert!(matches!(store.check().await, Err(StoreError::Gone(_))), "{share}");
        store.close();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_and_mark_that_are_both_gone_are_noticed() {
    let killed = Killed::new(Sync::Full);
    let store = Store::open(&killed.options()).unwrap();
    wait_for_check(&store).await.unwrap();
    accept(&store, event("c", "one more")).await;
    store.close();
    std::fs::remove_file(beside(&killed.path, "-mark")).unwrap();
    let _ = std::fs::remove_file(beside(&killed.path, "-wal"));
    let Err(error) = Store::open(&killed.options()) else { panic!("it was opened") };
    assert!(error.to_string().contains("the commit mark is missing"), "{error}");
    Store::open_accepting_loss(&killed.options()).unwrap().close();
    Store::open(&killed.options()).unwrap().close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_file_that_is_missing_at_a_start_is_not_created_anew() {
    let killed = Killed::new(Sync::Full);
    std::fs::remove_file(&killed.path).unwrap();
    let Err(error) = Store::open(&killed.options()) else { panic!("it was opened") };
    assert!(error.to_string().contains("the database file is missing"), "{error}");
    assert!(!killed.path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_corruptions_are_noticed_or_harm_nothing() {
    let rounds = setting("GREENROOM_CORRUPTIONS").unwrap_or(CORRUPTIONS);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    let seed = setting("GREENROOM_SEED").unwrap_or(now.as_secs());
    let mut random = Random::from_seed(seed);
    let (mut refused, mut reported, mut unharmed) = (0, 0, 0);
    let mut killed = Killed::new(Sync::Full);
    for round in 0..rounds {
        if round % 50 == 49 {
            killed = Killed::new(Sync::Full);
        }
        killed.restore();
        let what = corrupt(&killed, &mut random);
        let context = format!("GREENROOM_SEED={seed}, round {round}: {what}");
        let store = match Store::open(&killed.options()) {
            Ok(store) => store,
            Err(error) => {
                let is_noticed = matches!(error, StoreError::Unsound(_) | StoreError::Damaged(_));
                assert!(is_noticed, "{context}: {error}");
                refused += 1;
                continue;
            }
        };
        if wait_for_check(&store).await.is_err() {
            reported += 1;
        } else {
            assert_eq!(read_facts(&killed.path), killed.facts, "silent: {context}");
            unharmed += 1;
        }
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    }
    let counts = format!("{refused} refused, {reported} reported, {unharmed} unharmed");
    assert!(refused > 0 && reported > 0 && unharmed > 0, "GREENROOM_SEED={seed}: {counts}");
    #[expect(clippy::print_stderr, reason = "the longer run shows what it did")]
    {
        eprintln!("GREENROOM_SEED={seed}, {rounds} corruptions: {counts}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the test's settings are read here")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Damages one file: some flipped bytes, a sector of zeros, or an end that is missing.
fn corrupt(killed: &Killed, random: &mut Random) -> String {
    let suffix = match random.below(10) {
        0..=4 => "-wal",
        5..=7 => "",
        8 => "-mark",
        _ => "-sums",
    };
    let length = killed.files[suffix].len();
    let at = random.below(length as u64) as usize;
    let count = (1 + random.below(8) as usize).min(length - at);
    match random.below(8) {
        0 => {
            killed.file(suffix).set_len(at as u64).unwrap();
            format!("`{suffix}` cut to {at} bytes")
        }
        1 => {
            let count = 512.min(length - at);
            killed.file(suffix).write_all_at(&vec![0; count], at as u64).unwrap();
            format!("{count} bytes of `{suffix}` zeroed at {at}")
        }
        _ => {
            killed.flip(suffix, at, count);
            format!("{count} bytes of `{suffix}` flipped at {at}")
        }
    }
}
