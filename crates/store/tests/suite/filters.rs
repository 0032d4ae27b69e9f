//! What a search must not show: other workspaces, what filters leave out, what was removed, and nothing
//! less after a crash.

use super::search::*;
use super::support::*;
use greenroom_store::Store;
use greenroom_store::commands::{AcceptEvent, ApplyResults, RemoveItems};
use greenroom_store::reads::search::SearchQuery;

const DAY_MS: i64 = 86_400_000;

pub(crate) async fn filters_leave_out_what_they_say(ground: Ground) {
    let store = ground.open();
    let by =
        |actor: &'static str, thread: Option<&'static str>, kind: &'static str, now_ms: i64| {
            move |sent: &mut AcceptEvent| {
                let item = sent.item.as_mut().unwrap();
                item.actor_id = Some(actor.to_owned());
                item.thread_id = thread.map(str::to_owned);
                item.session = greenroom_store::session_key(None, thread);
                sent.event_type = kind.to_owned();
                sent.now_ms = now_ms;
            }
        };
    let day = DAY_MS;
    say_as(&store, "c", "apple one", by("u1", Some("t1"), "message.received", day)).await;
    say_as(&store, "c", "apple two", by("u2", None, "order.created", 400 * day)).await;
    say_as(&store, "d", "apple three", by("u1", Some("t1"), "message.received", 800 * day)).await;
    let first = run(&store, "run-event-0").await;
    let answer = ApplyResults {
        items: vec![item("answer", "assistant", "apple four")],
        chunk: Some(delta_chunk(1, &["x"])),
        now_ms: 900 * day,
        ..results(&first)
    };
    apply(&store, answer).await;
    let cases = cases();
    for indexed in [false, true] {
        for (query, expected) in &cases {
            let mut found = whole(&store, query.clone()).await;
            found.sort();
            let mut expected: Vec<String> = expected.iter().map(|n| format!("apple {n}")).collect();
            expected.sort();
            assert_eq!(found, expected, "{query:?}, indexed: {indexed}");
        }
        index_all(&store).await;
    }
}

/// Filters, and the items that they leave.
fn cases() -> Vec<(SearchQuery, &'static [&'static str])> {
    let day = DAY_MS;
    let own = |text: &str| Some(text.to_owned());
    let base = || ask("apple");
    vec![
        (base(), &["one", "two", "four", "three"]),
        (SearchQuery { conversation: own("c"), ..base() }, &["one", "two", "four"]),
        (SearchQuery { conversation: own("x"), ..base() }, &[]),
        (SearchQuery { thread: own("t1"), ..base() }, &["one", "three"]),
        (SearchQuery { session: own("\u{1f}t1"), ..base() }, &["one", "three"]),
        (SearchQuery { session: own(""), ..base() }, &["two", "four"]),
        (SearchQuery { thread: own("t1"), conversation: own("d"), ..base() }, &["three"]),
        (SearchQuery { actor_id: own("u2"), ..base() }, &["two"]),
        (SearchQuery { roles: vec!["assistant".to_owned()], ..base() }, &["four"]),
        (
            SearchQuery { roles: vec!["user".to_owned(), "tool".to_owned()], ..base() },
            &["one", "two", "three"],
        ),
        (SearchQuery { event_types: vec!["order.created".to_owned()], ..base() }, &["two"]),
        (
            SearchQuery {
                event_types: vec!["message.received".to_owned(), "x".to_owned()],
                ..base()
            },
            &["one", "three"],
        ),
        (SearchQuery { after_ms: Some(400 * day), ..base() }, &["two", "four", "three"]),
        (SearchQuery { before_ms: Some(400 * day), ..base() }, &["one"]),
        (
            SearchQuery { after_ms: Some(2 * day), before_ms: Some(900 * day), ..base() },
            &["two", "three"],
        ),
        (SearchQuery { after_ms: Some(9), before_ms: Some(9), ..base() }, &[]),
        (SearchQuery { event_seq_before: Some(("c".to_owned(), 1)), ..base() }, &["three"]),
        (
            SearchQuery { event_seq_before: Some(("c".to_owned(), 2)), ..base() },
            &["one", "four", "three"],
        ),
        (SearchQuery { top_k: 0, ..base() }, &[]),
    ]
}

pub(crate) async fn another_workspace_is_never_seen(ground: Ground) {
    let store = ground.open();
    say(&store, "c", "ours is a secret plan").await;
    say_as(&store, "c", "theirs is a secret plan", |sent| sent.workspace_id = "other".to_owned())
        .await;
    for _ in 0..2 {
        let hits = find(&store, ask("secret plan nowhere")).await;
        let found: Vec<_> = hits.iter().map(|hit| hit.item.text.as_deref().unwrap()).collect();
        assert_eq!(found, ["ours is a secret plan"]);
        let theirs = SearchQuery { workspace: "other".to_owned(), ..ask("secret plan") };
        assert_eq!(whole(&store, theirs).await, ["theirs is a secret plan"]);
        let nobody = SearchQuery { workspace: "third".to_owned(), ..ask("secret") };
        assert!(find(&store, nobody).await.is_empty());
        index_all(&store).await;
    }
}

pub(crate) async fn removed_items_are_gone_from_the_index(ground: Ground) {
    let store = ground.open();
    for n in 0..6 {
        say(&store, "c", &format!("thing {n} of many")).await;
    }
    for _ in 0..4 {
        store.index_some(1).await.unwrap();
    }
    let hits = find(&store, ask("thing")).await;
    let id = |n: usize| {
        let text = format!("thing {n} of many");
        hits.iter().find(|hit| hit.item.text.as_ref() == Some(&text)).unwrap().item.id
    };
    let gone = vec![id(1), id(5)];
    assert!(store.commit(RemoveItems { ids: gone.clone() }).await.unwrap());
    assert!(!store.commit(RemoveItems { ids: gone }).await.unwrap());
    let left = ["thing 4 of many", "thing 3 of many", "thing 2 of many", "thing 0 of many"];
    assert_eq!(whole(&store, ask("thing")).await, left);
    index_all(&store).await;
    assert_eq!(whole(&store, ask("thing")).await, left);
    // All gone: the next item may get a number that was used before, and is found all the same.
    let all = [0, 2, 3, 4].map(id).to_vec();
    assert!(store.commit(RemoveItems { ids: all }).await.unwrap());
    assert!(find(&store, ask("thing")).await.is_empty());
    say(&store, "c", "another thing").await;
    assert_eq!(whole(&store, ask("thing")).await, ["another thing"]);
    index_all(&store).await;
    assert_eq!(whole(&store, ask("thing")).await, ["another thing"]);
    let entries = store.read(|tx| {
        let row = tx.query_opt("SELECT COUNT(*) FROM search", &[])?;
        row.unwrap().int()
    });
    assert_eq!(entries.await.unwrap(), 1, "nothing else is left in the index");
}

/// Set for the process that is killed: the database's file.
const ROLE: &str = "GREENROOM_SEARCH_CRASH";

/// A host that is killed while it writes and indexes at once leaves every kept item findable.
#[test]
fn what_a_killed_host_had_kept_is_found() {
    if let Some(path) = std::env::var_os(ROLE) {
        write_and_index(std::path::Path::new(&path));
    }
    let ground = Ground::sqlite();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    for round in 0..4 {
        let kept = kill_a_writer(ground.path());
        let store = ground.open();
        runtime.block_on(async {
            for scanned in [true, false] {
                for name in &kept {
                    let found = whole(&store, ask(name)).await;
                    assert_eq!(&found, &[name.as_str()], "round {round}, scanned: {scanned}");
                }
                index_all(&store).await;
            }
        });
        store.close();
    }
}

#[expect(clippy::disallowed_methods, reason = "the process that is killed is this test's own")]
fn kill_a_writer(path: &std::path::Path) -> Vec<String> {
    use std::io::BufRead;
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "filters::what_a_killed_host_had_kept_is_found", "--nocapture"])
        .env(ROLE, path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut kept = Vec::new();
    for line in lines.map_while(Result::ok) {
        kept.extend(line.strip_prefix("kept ").map(str::to_owned));
        if kept.len() == 100 {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(kept.len() >= 100, "only {kept:?}");
    kept
}

#[expect(clippy::print_stdout, reason = "its parent reads what was kept")]
fn write_and_index(path: &std::path::Path) -> ! {
    let options = sqlite_options(path, greenroom_store::Sync::Normal);
    let store = Store::open(&options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for batch in 0.. {
        let names: Vec<String> =
            (0..8).map(|n| format!("item{}x{batch}x{n}", store.epoch())).collect();
        let sent = names.iter().map(|name| accept(&store, event(name, name)));
        let sent = futures_util::future::join_all(sent.collect::<Vec<_>>());
        let (_, indexed) = runtime.block_on(async { tokio::join!(sent, store.index_some(5)) });
        indexed.unwrap();
        for name in names {
            println!("kept {name}");
        }
    }
    unreachable!("it is killed")
}
