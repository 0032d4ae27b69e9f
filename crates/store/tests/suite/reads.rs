//! Pages, filters, borders, and no access to another workspace.

use super::support::*;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{AcceptEvent, ApplyResults};
use greenroom_store::reads::conversations::{Names, Own, Reach, Span};
use greenroom_store::reads::runs::RunFilter;
use greenroom_store::reads::{self, Direction};

pub(crate) async fn a_page_of_results_starts_at_any_number(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    // Numbers 1-3, 5-6, 9 and then one chunk per number up to 40.
    let mut chunks = vec![delta_chunk(1, &["a", "b", "c"]), delta_chunk(5, &["d", "e"])];
    chunks.push(result_chunk(9, "custom.thing", r#"{"x":1}"#));
    chunks.extend((10..=40).map(|sequence| delta_chunk(sequence, &["z"])));
    for chunk in chunks {
        apply(&store, ApplyResults { chunk: Some(chunk), ..results(&first) }).await;
    }
    let all: Vec<i64> = [1, 2, 3, 5, 6].into_iter().chain(9..=40).collect();
    for after in 0..=41 {
        for limit in [1, 2, 7, 100] {
            let page = move |tx: &mut dyn greenroom_store::sql::Tx| {
                reads::results::page(tx, "run-a", after, limit)
            };
            let found: Vec<_> = store.read(page).await.unwrap();
            let found: Vec<_> = found.iter().map(|record| record.sequence).collect();
            let expected: Vec<_> =
                all.iter().copied().filter(|number| *number > after).take(limit).collect();
            assert_eq!(found, expected, "after {after}, limit {limit}");
        }
    }
}

pub(crate) async fn runs_are_paged_and_filtered(ground: Ground) {
    let store = ground.open();
    for (conversation, name) in [("c", "1"), ("c", "2"), ("d", "3"), ("d", "4"), ("e", "5")] {
        let mut event = event(conversation, name);
        let named = ["1", "4"].contains(&name);
        event.run.as_mut().unwrap().agent = if named { "triage" } else { "assistant" }.to_owned();
        accept(&store, event).await;
    }
    let ids = async |filter: RunFilter, before: Option<&'static str>, limit| {
        let page = store.read(move |tx| reads::runs::page(tx, W, &filter, before, limit)).await;
        page.unwrap().into_iter().map(|run| run.run_id).collect::<Vec<_>>()
    };
    let all = RunFilter::default();
    assert_eq!(ids(all.clone(), None, 2).await, ["run-5", "run-4"]);
    assert_eq!(ids(all.clone(), Some("run-4"), 2).await, ["run-3", "run-2"]);
    assert_eq!(ids(all.clone(), Some("run-2"), 9).await, ["run-1"]);
    assert!(ids(all.clone(), Some("run-1"), 9).await.is_empty());
    let conversation = RunFilter { conversation_id: Some("d".to_owned()), ..all.clone() };
    assert_eq!(ids(conversation.clone(), None, 9).await, ["run-4", "run-3"]);
    assert_eq!(ids(conversation, Some("run-4"), 9).await, ["run-3"]);
    let agent = RunFilter { agent: Some("triage".to_owned()), ..all.clone() };
    assert_eq!(ids(agent, None, 9).await, ["run-4", "run-1"]);
    let queued = RunFilter { status: Some(RunStatus::Queued), ..all };
    assert_eq!(ids(queued.clone(), None, 9).await, ["run-4", "run-2"]);
    let both = RunFilter { agent: Some("triage".to_owned()), ..queued };
    assert_eq!(ids(both, None, 9).await, ["run-4"]);
    let open = store.read(reads::runs::open).await.unwrap();
    let open: Vec<_> = open.iter().map(|run| run.event_seq).collect();
    assert_eq!(open, [1, 2, 3, 4, 5], "in the order of their events");
}

pub(crate) async fn conversations_and_events_are_paged(ground: Ground) {
    let store = ground.open();
    for (name, now_ms) in [("a", 10), ("b", 20), ("d", 20), ("e", 5)] {
        accept(&store, AcceptEvent { now_ms, ..event(name, name) }).await;
    }
    let conversations = async |before: Option<(i64, &'static str)>, limit| {
        let page = store
            .read(move |tx| reads::conversations::page(tx, W, &Reach::All, before, limit))
            .await
            .unwrap();
        page.into_iter().map(|row| row.conversation_id).collect::<Vec<_>>()
    };
    assert_eq!(conversations(None, 9).await, ["d", "b", "a", "e"]);
    assert_eq!(conversations(Some((20, "d")), 2).await, ["b", "a"]);
    assert_eq!(conversations(Some((10, "a")), 2).await, ["e"]);
    assert!(conversations(Some((5, "e")), 2).await.is_empty());
    let events = async |conversation: Option<&'static str>, before, limit| {
        let page = store
            .read(move |tx| reads::events::page(tx, W, conversation, before, limit))
            .await
            .unwrap();
        page.into_iter().map(|row| row.seq).collect::<Vec<_>>()
    };
    assert_eq!(events(None, i64::MAX, 3).await, [4, 3, 2]);
    assert_eq!(events(None, 2, 3).await, [1]);
    assert_eq!(events(Some("b"), i64::MAX, 3).await, [2]);
    assert!(events(Some("b"), 2, 3).await.is_empty());
    let sent_by = Some("token:web".to_owned());
    accept(&store, AcceptEvent { sent_by: sent_by.clone(), ..event("f", "f") }).await;
    accept(&store, AcceptEvent { sent_by, ..event("a", "a2") }).await;
    let of = async |name: &str| {
        let reach = Reach::Own(std::sync::Arc::new(Own {
            begun_by: name.to_owned(),
            named: Names::default(),
        }));
        let page = store.read(move |tx| reads::conversations::page(tx, W, &reach, None, 9)).await;
        page.unwrap().into_iter().map(|row| row.conversation_id).collect::<Vec<_>>()
    };
    assert_eq!(of("token:web").await, ["f"], "only the first event says who began it");
    assert!(of("admin").await.is_empty());
}

pub(crate) async fn nobody_sees_another_workspace(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    apply(&store, super::applied::everything(&first)).await;
    let span = Span::whole(Direction::Forward, 9);
    store
        .read(move |tx| {
            let w = "other";
            assert_eq!(reads::runs::get(tx, w, "run-a")?, None);
            assert_eq!(reads::runs::page(tx, w, &RunFilter::default(), None, 9)?, []);
            let filter =
                RunFilter { conversation_id: Some("c".to_owned()), ..RunFilter::default() };
            assert_eq!(reads::runs::page(tx, w, &filter, None, 9)?, []);
            assert_eq!(reads::events::load(tx, w, first.event_seq)?, None);
            assert_eq!(reads::events::by_id(tx, w, "a")?, []);
            assert_eq!(reads::events::page(tx, w, None, i64::MAX, 9)?, []);
            assert_eq!(reads::events::page(tx, w, Some("c"), i64::MAX, 9)?, []);
            assert_eq!(reads::conversations::get(tx, w, "c")?, None);
            assert_eq!(reads::conversations::page(tx, w, &Reach::All, None, 9)?, []);
            assert_eq!(reads::conversations::history(tx, w, "c", &span)?, []);
            assert_eq!(reads::state::get(tx, w, "conversation:c", "a", 0)?, None);
            let none = reads::state::list(tx, w, "conversation:c", &all_state(), 0)?;
            assert_eq!(none, (Vec::new(), false));
            assert_eq!(reads::deliveries::of_run(tx, w, "run-a")?, []);
            assert!(reads::events::load(tx, W, first.event_seq)?.is_some());
            Ok(())
        })
        .await
        .unwrap();
}

pub(crate) async fn state_is_listed_by_prefix_within_its_bounds(ground: Ground) {
    use greenroom_store::types::StateWrite;
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let write = |name: String, value: String| StateWrite {
        owner: "o".to_owned(),
        name,
        value: Some(value),
        owner_bytes_max: None,
    };
    let mut state: Vec<_> = (0..250).map(|n| write(format!("a{n:03}"), "1".to_owned())).collect();
    state.push(write("z1".to_owned(), format!("\"{}\"", "x".repeat(1000))));
    state.push(write("z2".to_owned(), "2".to_owned()));
    apply(&store, ApplyResults { state, ..results(&first) }).await;
    let span = reads::state::StateSpan { values_max: 200, bytes_max: 500, ..all_state() };
    let list = async |prefix: &str, after: &str| {
        let span = reads::state::StateSpan {
            prefix: prefix.to_owned(),
            after: after.to_owned(),
            ..span.clone()
        };
        let read = store.read(move |tx| reads::state::list(tx, W, "o", &span, 0));
        let (rows, more) = read.await.unwrap();
        (rows.into_iter().map(|row| row.name).collect::<Vec<_>>(), more)
    };
    let (names, more) = list("", "").await;
    assert_eq!((names.len(), names[199].as_str(), more), (200, "a199", true));
    let (names, more) = list("a", "a199").await;
    assert_eq!((names.len(), names[49].as_str(), more), (50, "a249", false));
    // The first is handed out whatever its size; what does not fit beside it comes next time.
    assert_eq!(list("z", "").await, (vec!["z1".to_owned()], true));
    assert_eq!(list("z", "z1").await, (vec!["z2".to_owned()], false));
    assert_eq!(list("y", "").await, (Vec::new(), false));
}

pub(crate) async fn runs_are_narrowed_in_every_way(ground: Ground) {
    let store = ground.open();
    for (name, now_ms) in [("1", 10), ("2", 20), ("3", 30), ("4", 40)] {
        let mut event = AcceptEvent { now_ms, ..event(name, name) };
        if name == "2" {
            event.event_type = "tick".to_owned();
            event.run.as_mut().unwrap().runner_id = "plugin:a/b/c".to_owned();
        }
        let run = accept(&store, event).await;
        let error = |code: &str| greenroom_protocol::RunError {
            code: code.to_owned(),
            message: "desk.closed".to_owned(),
            retryable: false,
        };
        let code = match name {
            "3" => "desk.closed",
            "4" => "desk.closed\"",
            _ => continue,
        };
        let mut end = completed(&run, 1);
        end.terminal.as_mut().unwrap().status = RunStatus::Failed;
        end.terminal.as_mut().unwrap().error = Some(error(code));
        apply(&store, end).await;
    }
    let ids = async |filter: RunFilter| {
        let page = store.read(move |tx| reads::runs::page(tx, W, &filter, None, 9)).await;
        page.unwrap().into_iter().map(|run| run.run_id).collect::<Vec<_>>()
    };
    let all = RunFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(ids(RunFilter { runner_id: text("plugin:a/b/c"), ..all() }).await, ["run-2"]);
    assert_eq!(ids(RunFilter { event_type: text("tick"), ..all() }).await, ["run-2"]);
    assert_eq!(ids(RunFilter { error_code: text("desk.closed"), ..all() }).await, ["run-3"]);
    assert_eq!(ids(RunFilter { error_code: text("desk.closed\""), ..all() }).await, ["run-4"]);
    assert!(ids(RunFilter { error_code: text("desk"), ..all() }).await.is_empty());
    let since = RunFilter { since_ms: Some(20), until_ms: Some(40), ..all() };
    assert_eq!(ids(since).await, ["run-3", "run-2"]);
    let between = RunFilter { id_min: text("run-2"), id_end: text("run-4"), ..all() };
    assert_eq!(ids(between).await, ["run-3", "run-2"]);
    let running = RunFilter { status: Some(RunStatus::Running), ..all() };
    assert_eq!(ids(RunFilter { id_end: text("run-2"), ..running.clone() }).await, ["run-1"]);
    assert_eq!(ids(RunFilter { conversation_id: text("2"), ..running }).await, ["run-2"]);
    let floor = async |before: Option<&'static str>, rows| {
        store
            .read(move |tx| reads::runs::floor(tx, W, &RunFilter::default(), before, rows))
            .await
            .unwrap()
    };
    assert_eq!(floor(None, 1).await.as_deref(), Some("run-4"));
    assert_eq!(floor(Some("run-4"), 2).await.as_deref(), Some("run-2"));
    assert_eq!(floor(Some("run-4"), 4).await, None);
}

pub(crate) async fn state_of_all_owners_is_listed_in_order(ground: Ground) {
    let store = ground.open();
    let run = accept(&store, event("c", "a")).await;
    let write = |owner: &str, name: &str, value: &str| greenroom_store::types::StateWrite {
        owner: owner.to_owned(),
        name: name.to_owned(),
        value: Some(value.to_owned()),
        owner_bytes_max: None,
    };
    let state = vec![
        write("b", "x", "1"),
        write("a", "y", "22"),
        write("a", "数", "\"abc\""),
        write("c", "z", "4"),
    ];
    let chunk = Some(result_chunk(1, "custom.thing", "{}"));
    apply(&store, ApplyResults { state, chunk, ..results(&run) }).await;
    let keys = async |after: (&str, &str), owner_end: &str, limit| {
        let span = reads::state::StateKeys {
            after: (after.0.to_owned(), after.1.to_owned()),
            owner_end: owner_end.to_owned(),
            limit,
        };
        let found = store.read(move |tx| reads::state::keys(tx, W, &span, 5_000)).await.unwrap();
        found.into_iter().map(|key| format!("{}{}", key.owner, key.name)).collect::<Vec<_>>()
    };
    assert_eq!(keys(("", ""), "\u{10ffff}", 9).await, ["ay", "a数", "bx", "cz"]);
    assert_eq!(keys(("a", "y"), "c", 9).await, ["a数", "bx"]);
    assert_eq!(keys(("a", "数"), "c", 1).await, ["bx"]);
    let span = reads::state::StateKeys {
        after: ("a".to_owned(), "y".to_owned()),
        owner_end: "b".to_owned(),
        limit: 1,
    };
    let read = move |tx: &mut dyn greenroom_store::sql::Tx| {
        let key = reads::state::keys(tx, W, &span, 5_000)?.remove(0);
        reads::state::beginning(tx, W, &key, 3)
    };
    assert_eq!(store.read(read).await.unwrap().as_deref(), Some("\"ab"));
}
