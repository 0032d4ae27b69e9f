//! The host is killed while it writes to SQLite; what it had acknowledged was stored.

use super::support::*;
use greenroom_store::{Store, Sync, reads};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells this test binary that it is the process to be killed, and where to write.
const ROLE: &str = "GREENROOM_STORE_WRITES_TO";
/// Set when that process syncs every commit.
const SYNCS: &str = "GREENROOM_STORE_SYNCS";
/// Acknowledgements after which the process is killed.
const ACKNOWLEDGED_MIN: usize = 40;

#[test]
fn what_a_killed_host_had_acknowledged_is_there() {
    if let Some(path) = std::env::var_os(ROLE) {
        write_until_killed(Path::new(&path));
    }
    for sync in [Sync::Full, Sync::Normal] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("greenroom.db");
        Store::open(&sqlite_options(&path, sync)).unwrap().close();
        for round in 2..=4 {
            let acknowledged = kill_a_writer(&path, sync, ACKNOWLEDGED_MIN);
            let store = Store::open(&sqlite_options(&path, sync)).unwrap();
            assert!(store.epoch() >= round);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            for run_id in acknowledged {
                let id = run_id.clone();
                let get = store.read(move |tx| reads::runs::get(tx, W, &id));
                let found = runtime.block_on(get).unwrap();
                assert!(found.is_some(), "`{run_id}` was acknowledged and is gone");
            }
            store.close();
        }
    }
}

#[test]
fn a_log_that_grew_until_the_host_was_killed_is_moved_before_the_next_one_serves() {
    const LARGE: u64 = 64 * 1024 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("greenroom.db");
    Store::open(&sqlite_options(&path, Sync::Normal)).unwrap().close();
    // While it is open the log cannot restart.
    let reader = rusqlite::Connection::open(&path).unwrap();
    let keep_log = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    reader.set_db_config(keep_log, true).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_master").unwrap();
    let acknowledged = kill_a_writer(&path, Sync::Normal, 6000);
    drop(reader);
    let log = folder.path().join("greenroom.db-wal");
    let left = log.metadata().unwrap().len();
    assert!(left > LARGE, "the writer left only {left} bytes");

    let store = Store::open(&sqlite_options(&path, Sync::Normal)).unwrap();
    let now = log.metadata().unwrap().len();
    assert!(now < LARGE / 16, "the log still has {now} of {left} bytes");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for run_id in acknowledged {
        let get = store.read(move |tx| reads::runs::get(tx, W, &run_id));
        assert!(runtime.block_on(get).unwrap().is_some());
    }
    store.close();
}

/// The runs that a process said it had kept before it was killed, after `after` of them.
#[expect(clippy::disallowed_methods, reason = "the process that is killed is this test's own")]
pub(crate) fn kill_a_writer(path: &Path, sync: Sync, after: usize) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if sync == Sync::Full {
        command.env(SYNCS, "yes");
    }
    let mut child = command
        .args(["--exact", "crash::what_a_killed_host_had_acknowledged_is_there", "--nocapture"])
        .env(ROLE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    for line in lines.map_while(Result::ok) {
        acknowledged.extend(line.strip_prefix("kept ").map(str::to_owned));
        if acknowledged.len() == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= after, "only {acknowledged:?}");
    acknowledged
}

#[expect(clippy::print_stdout, reason = "its parent reads what was acknowledged")]
fn write_until_killed(path: &Path) -> ! {
    let sync = if std::env::var_os(SYNCS).is_some() { Sync::Full } else { Sync::Normal };
    let store = Store::open(&sqlite_options(path, sync)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for batch in 0.. {
        let names = (0..8).map(|n| format!("{}-{batch}-{n}", store.epoch()));
        let sent = names.map(|name| accept(&store, event(&name, &name)));
        for run in runtime.block_on(futures_util::future::join_all(sent.collect::<Vec<_>>())) {
            println!("kept {}", run.run_id);
        }
    }
    unreachable!("it is killed")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_host_on_the_same_file_is_refused() {
    let ground = Ground::sqlite();
    let first = ground.open();
    let error = ground.try_open().err().unwrap();
    assert!(matches!(error, greenroom_store::StoreError::Lost(_)), "{error}");
    first.close();
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_locked_by_another_program_is_busy_and_works_again_later() {
    let ground = Ground::sqlite();
    let store = ground.open();
    let other = rusqlite::Connection::open(ground.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.commit(event("c", "a")).await.unwrap_err();
    assert!(refused.is_passing(), "{refused}");
    other.execute_batch("ROLLBACK").unwrap();
    accept(&store, event("c", "a")).await;
}
