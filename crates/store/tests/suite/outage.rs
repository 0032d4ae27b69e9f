//! PostgreSQL goes down and comes back; another host wants to write.

use super::support::*;
use futures_util::future::join_all;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{Accepted, Displaced};
use greenroom_store::types::Queue;
use greenroom_store::{Store, StoreError, reads};
use greenroom_testkit::postgres::{Server, Stop};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SENDERS: usize = 8;
const EVENTS_EACH: usize = 60;

fn start_server() -> (Server, String) {
    let start = || {
        let server = Server::start();
        let url = server.fresh_database();
        (server, url)
    };
    std::thread::spawn(start).join().unwrap()
}

async fn restart_under_load(stop: Stop) {
    let (server, url) = start_server();
    let store = Store::open(&postgres_options(&url)).unwrap();
    let kept = Arc::new(AtomicUsize::new(0));
    let senders = (0..SENDERS).map(|sender| send_all(store.clone(), sender, kept.clone()));
    let restarts = async {
        for part in 1..=3 {
            wait_until(&kept, part * SENDERS * EVENTS_EACH / 4).await;
            let server = &server;
            std::thread::scope(|scope| scope.spawn(|| server.restart(stop)).join().unwrap());
        }
    };
    tokio::join!(join_all(senders), restarts);
    let counted = rows(&store).await;
    let total = i64::try_from(SENDERS * EVENTS_EACH).unwrap();
    // Each event: itself, its item, its run, one chunk, and an answer's item. None lost, none twice.
    for (table, expected) in
        [("events", total), ("runs", total), ("results", total), ("transcript", 2 * total)]
    {
        assert!(counted.contains(&(table.to_owned(), expected)), "{table}: {counted:?}");
    }
    for sender in 0..SENDERS {
        let expected: Vec<_> = (0..EVENTS_EACH)
            .flat_map(|n| [format!("user {sender}-{n}"), format!("assistant {sender}-{n}")])
            .zip(1..)
            .map(|(line, seq)| format!("{seq} {line}"))
            .collect();
        assert_eq!(transcript(&store, &format!("c{sender}")).await, expected);
    }
    let open = store.read(reads::runs::open).await.unwrap();
    assert_eq!(open, [], "every run has its terminal");
}

async fn send_all(store: Store, sender: usize, kept: Arc<AtomicUsize>) {
    for n in 0..EVENTS_EACH {
        let name = format!("{sender}-{n}");
        let run = accept(&store, event(&format!("c{sender}"), &name)).await;
        assert_eq!(run.status, RunStatus::Running);
        let mut end = completed(&run, 1);
        end.items = vec![item(&format!("answer-{name}"), "assistant", &name)];
        apply(&store, end).await;
        kept.fetch_add(1, Ordering::SeqCst);
    }
}

async fn wait_until(kept: &AtomicUsize, enough: usize) {
    let reached = async {
        while kept.load(Ordering::SeqCst) < enough {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect("the senders go on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_restarted_server_loses_nothing_and_does_nothing_twice() {
    restart_under_load(Stop::Fast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_crashed_server_loses_nothing_and_does_nothing_twice() {
    restart_under_load(Stop::Immediate).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_writer_is_refused_while_the_first_lives() {
    let ground = Ground::postgres();
    let first = ground.open();
    let Err(error) = ground.try_open() else { panic!("it was opened") };
    assert!(matches!(&error, StoreError::Lost(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "the store is lost to this host: another host writes to this database"
    );
    accept(&first, event("c", "a")).await;
    let closing = first.clone();
    tokio::task::spawn_blocking(move || closing.close()).await.unwrap();
    assert_eq!(ground.open().epoch(), 2, "the refused start was no start");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_whose_place_was_taken_is_lost() {
    let ground = Ground::postgres();
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    // Another host was there for a moment: the epoch moved on while the session was gone.
    ground.execute(
        "UPDATE meta SET value = '7' WHERE name = 'epoch';
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid();",
    );
    let error = store.commit(event("c", "b")).await.unwrap_err();
    assert!(matches!(error, StoreError::Lost(_)), "{error}");
    let lost = tokio::time::timeout(Duration::from_secs(10), store.lost()).await.unwrap();
    assert!(matches!(lost, StoreError::Lost(_)), "{lost}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminated_sessions_come_back_by_themselves() {
    let ground = Ground::postgres();
    let store = ground.open();
    for round in 0..5 {
        accept(&store, event("c", &format!("e{round}"))).await;
        ground.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid();",
        );
        assert_eq!(transcript(&store, "c").await.len(), round + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_finds_no_server_says_so() {
    let (server, url) = start_server();
    let store = Store::open(&postgres_options(&url)).unwrap();
    std::thread::scope(|scope| scope.spawn(|| server.stop(Stop::Fast)).join().unwrap());
    let error = store.read(reads::runs::open).await.unwrap_err();
    let (_, database) = url.rsplit_once('/').unwrap();
    let expected = format!("the PostgreSQL database `{database}` does not answer");
    assert_eq!(error.to_string(), expected);
}

/// The reply to a commit is lost: the caller gets the outcome all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_told_once_and_in_full() {
    let (server, url) = start_server();
    let proxy = super::proxy::Proxy::start(server.port());
    let near = url.replace(&server.port().to_string(), &proxy.port().to_string());
    let store = Store::open(&postgres_options(&near)).unwrap();
    accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    proxy.lose_the_next_answer_to("COMMIT");
    let newest = with_queue(event("c", "z"), Queue::Replace);
    let answer = store.commit(newest).await.unwrap();
    let Accepted::New { run: Some(newest), displaced: Displaced { cancelled, replaced, .. } } =
        answer
    else {
        panic!("not told as new: {answer:?}")
    };
    assert_eq!(proxy.lost(), 1, "the answer was lost");
    assert_eq!(newest.run_id, "run-z");
    assert_eq!(cancelled.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["run-b"]);
    assert_eq!(replaced, ["run-a"]);
    proxy.lose_the_next_answer_to("BEGIN");
    accept(&store, event("d", "d")).await;
    assert_eq!(proxy.lost(), 2);
    let counted = rows(&store).await;
    assert!(counted.contains(&("runs".to_owned(), 4)), "{counted:?}");
    assert!(counted.contains(&("results".to_owned(), 1)), "{counted:?}");
}
