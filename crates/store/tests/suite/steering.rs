//! Messages for an active run: stored, pulled by it, or turned into runs after its end.

use super::support::*;
use greenroom_protocol::RunStatus;
use greenroom_store::chunk::ChunkBuilder;
use greenroom_store::commands::{
    AcceptEvent, Accepted, Applied, ApplyResults, CancelQueued, Displaced, FreezeGrant,
    PullSteering, Pulled, RestartRun, Terminal,
};
use greenroom_store::reads::events::EventKey;
use greenroom_store::types::{Queue, ResultRecord, RunRow};
use greenroom_store::{Store, reads};
use serde_json::value::RawValue;

/// A message for an agent that is steered, of which at most three wait for a run.
fn message(name: &str) -> AcceptEvent {
    let mut event = with_queue(event("c", name), Queue::Steer);
    event.run.as_mut().unwrap().steers = true;
    event
}

fn pull(run: &RunRow, limit: i64) -> PullSteering {
    PullSteering { fence: run.fence(), limit, bytes_max: 1_000, audit: None, now_ms: 1_500 }
}

async fn pulled(store: &Store, run: &RunRow, limit: i64) -> Vec<String> {
    match store.commit(pull(run, limit)).await.unwrap() {
        Pulled::Events(events) => events.into_iter().map(|event| event.event_id).collect(),
        Pulled::Stale => panic!("stale"),
    }
}

/// Sends a message that has to steer a run, and returns which.
async fn steer(store: &Store, command: AcceptEvent) -> String {
    match store.commit(command).await.unwrap() {
        Accepted::Steered { run } => run.run_id,
        other => panic!("not steered: {other:?}"),
    }
}

async fn log(store: &Store) -> Vec<String> {
    let found = store.read(|tx| reads::events::page(tx, W, Some("c"), i64::MAX, 100)).await;
    let events = found.unwrap().into_iter().rev();
    events.filter(|event| event.source == "host").map(|event| event.event_type).collect()
}

async fn run_of(store: &Store, event_id: &str) -> Option<String> {
    let id = event_id.to_owned();
    let known = store
        .read(move |tx| {
            reads::events::known(
                tx,
                W,
                EventKey { source: "api", sender: None, event_id: &id },
                &[],
            )
        })
        .await
        .unwrap();
    known.unwrap().run_id
}

pub(crate) async fn a_message_goes_to_the_run_that_is_under_way(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    assert!(first.steers);
    for name in ["b", "d"] {
        assert_eq!(steer(&store, message(name)).await, "run-a");
    }
    let again = store.commit(message("b")).await.unwrap();
    assert_eq!(again, Accepted::SteeredBefore { run: Box::new(run(&store, "run-a").await) });
    let first_again = store.commit(message("a")).await.unwrap();
    assert!(matches!(first_again, Accepted::New { run: Some(run), .. } if run.run_id == "run-a"));
    let other = AcceptEvent { body_hash: [8; 32], ..message("b") };
    assert_eq!(store.commit(other).await.unwrap(), Accepted::Conflict);
    assert_eq!(pulled(&store, &first, 1).await, ["b"]);
    assert_eq!(pulled(&store, &first, 9).await, ["d"]);
    assert_eq!(pulled(&store, &first, 9).await, [""; 0]);
    assert_eq!(transcript(&store, "c").await, ["1 user a", "2 user b", "3 user d"]);
    assert_eq!(log(&store).await, ["steering.injected"; 2]);
    let end = store.commit(completed(&first, 1)).await.unwrap();
    assert_eq!(end, Applied::Done { next: None, requeued: 0 });
    let again = store.commit(message("b")).await.unwrap();
    assert!(matches!(again, Accepted::SteeredBefore { run } if run.status == RunStatus::Completed));
    assert!(rows(&store).await.contains(&("steering".to_owned(), 0)));
    assert!(rows(&store).await.contains(&("runs".to_owned(), 1)));
}

pub(crate) async fn what_was_never_pulled_becomes_a_run_at_the_end(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    for name in ["b", "d", "e"] {
        steer(&store, message(name)).await;
    }
    assert_eq!(pulled(&store, &first, 1).await, ["b"]);
    let Applied::Done { next: Some(next), requeued: 2 } =
        store.commit(completed(&first, 1)).await.unwrap()
    else {
        panic!("nothing started")
    };
    assert_eq!((next.run_id.as_str(), next.status), ("run-d", RunStatus::Running));
    assert_eq!((next.event_id.as_str(), next.conversation_seq), ("d", Some(3)));
    assert_eq!((next.created_at, next.steers, next.queue), (1_000, true, Queue::Steer));
    assert_eq!(status(&store, "run-e").await, RunStatus::Queued);
    let runs = [run_of(&store, "b").await, run_of(&store, "d").await, run_of(&store, "e").await];
    assert_eq!(runs.map(Option::unwrap), ["run-a", "run-d", "run-e"]);
    assert_eq!(log(&store).await, ["steering.injected", "steering.requeued", "steering.requeued"]);
    // A message that comes now does not overtake the one that waits.
    assert_eq!(accept(&store, message("f")).await.status, RunStatus::Queued);
    assert_eq!(apply(&store, completed(&next, 1)).await.as_deref(), Some("run-e"));
}

pub(crate) async fn only_so_many_messages_wait_for_a_run(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    for name in ["b", "d", "e"] {
        steer(&store, message(name)).await;
    }
    let before = rows(&store).await;
    assert_eq!(store.commit(message("f")).await.unwrap(), Accepted::LaneFull);
    assert_eq!(rows(&store).await, before, "a refusal writes nothing");
    assert_eq!(pulled(&store, &first, 1).await, ["b"]);
    assert_eq!(steer(&store, message("f")).await, "run-a");
}

pub(crate) async fn what_does_not_fit_the_run_waits_its_turn(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    let mut no_message = message("1");
    no_message.run.as_mut().unwrap().steering_length_max = None;
    let mut other_agent = message("2");
    other_agent.run.as_mut().unwrap().agent = "other".to_owned();
    let mut elsewhere = message("3");
    elsewhere.run.as_mut().unwrap().surface = Some("hook".to_owned());
    let mut other_thread = message("4");
    other_thread.item.as_mut().unwrap().session = greenroom_store::session_key(None, Some("t"));
    let serial = event("c", "5");
    for command in [no_message, other_agent, elsewhere, other_thread, serial] {
        // Each alone beside the run: what is queued keeps messages behind it.
        let waiting = accept(&store, command).await;
        assert_eq!(waiting.status, RunStatus::Queued, "{}", waiting.run_id);
        let cancel = CancelQueued {
            workspace_id: W.to_owned(),
            run_id: waiting.run_id,
            epoch_now: 1,
            now_ms: 3_000,
        };
        store.commit(cancel).await.unwrap();
    }
    assert_eq!(steer(&store, message("6")).await, "run-a");
    assert_eq!(pulled(&store, &first, 9).await, ["6"]);
}

pub(crate) async fn a_run_takes_messages_once_its_grant_says_so(ground: Ground) {
    let store = ground.open();
    let mut unknown = message("a");
    unknown.run.as_mut().unwrap().steers = false;
    unknown.run.as_mut().unwrap().grant = None;
    let first = accept(&store, unknown).await;
    assert_eq!(accept(&store, message("b")).await.status, RunStatus::Queued);
    let freeze = FreezeGrant { fence: fence("run-a"), grant: grant("g1"), steers: true };
    assert!(store.commit(freeze).await.unwrap());
    assert_eq!(accept(&store, message("d")).await.status, RunStatus::Queued, "behind `b`");
    assert_eq!(apply(&store, completed(&first, 1)).await.as_deref(), Some("run-b"));
}

pub(crate) async fn a_cancelled_run_takes_no_more_and_hands_back_what_waits(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    steer(&store, message("b")).await;
    let cancel = CancelQueued {
        workspace_id: W.to_owned(),
        run_id: "run-a".to_owned(),
        epoch_now: 1,
        now_ms: 3_000,
    };
    store.commit(cancel).await.unwrap();
    assert_eq!(store.commit(pull(&first, 9)).await.unwrap(), Pulled::Stale);
    assert_eq!(accept(&store, message("d")).await.status, RunStatus::Queued);
    let terminal = Terminal { status: RunStatus::Cancelled, error: None, usage: None };
    let end = ApplyResults { terminal: Some(terminal), ..completed(&first, 1) };
    assert_eq!(apply(&store, end).await.as_deref(), Some("run-b"), "before `d`");
}

pub(crate) async fn a_replacing_event_ends_what_waits_for_the_run(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    steer(&store, message("b")).await;
    let newest = with_queue(event("c", "z"), Queue::Replace);
    let Accepted::New { run: Some(_), displaced: Displaced { cancelled, requeued: 1, replaced } } =
        store.commit(newest).await.unwrap()
    else {
        panic!("not accepted")
    };
    assert_eq!(replaced, ["run-a"]);
    assert_eq!(cancelled.len(), 1);
    assert_eq!(
        (cancelled[0].run_id.as_str(), cancelled[0].status),
        ("run-b", RunStatus::Cancelled)
    );
    assert_eq!(run_of(&store, "b").await.as_deref(), Some("run-b"));
    let terminal = Terminal { status: RunStatus::Cancelled, error: None, usage: None };
    let end = ApplyResults { terminal: Some(terminal), ..completed(&first, 1) };
    assert_eq!(apply(&store, end).await.as_deref(), Some("run-z"));
}

pub(crate) async fn a_new_attempt_pulls_everything_anew(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    steer(&store, message("b")).await;
    assert_eq!(pulled(&store, &first, 9).await, ["b"]);
    let mut chunk = ChunkBuilder::default();
    chunk.push(&ResultRecord {
        sequence: 65,
        kind: "run.restarted".into(),
        data: RawValue::from_string("{}".to_owned()).unwrap(),
        at_ms: 1,
        runner_sequence: None,
        runner_timestamp: None,
        usage: None,
    });
    let restart = RestartRun {
        fence: fence("run-a"),
        epoch_now: 2,
        chunk: chunk.take().unwrap(),
        reserved_seq: 128,
        now_ms: 2_000,
    };
    assert!(store.commit(restart).await.unwrap());
    assert_eq!(store.commit(pull(&first, 9)).await.unwrap(), Pulled::Stale);
    let second = run(&store, "run-a").await;
    assert_eq!(pulled(&store, &second, 9).await, ["b"]);
    assert_eq!(log(&store).await, ["steering.injected"; 2]);
}

pub(crate) async fn answers_stand_with_the_message_that_was_pulled_last(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    steer(&store, message("b")).await;
    let says = |sequence, text: &str| ApplyResults {
        chunk: Some(result_chunk(sequence, "message.completed", "{}")),
        items: vec![item(&format!("item-{sequence}"), "assistant", text)],
        ..results(&first)
    };
    apply(&store, says(1, "to a")).await;
    assert_eq!(pulled(&store, &first, 9).await, ["b"]);
    apply(&store, says(2, "to a and b")).await;
    let expected = ["1 user a", "3 assistant to a", "2 user b", "4 assistant to a and b"];
    assert_eq!(transcript(&store, "c").await, expected);
}

pub(crate) async fn a_pull_hands_out_only_so_much_but_always_something(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    for name in ["b", "d", "e"] {
        let body = format!("\"{}\"", "x".repeat(600));
        steer(&store, AcceptEvent { body, ..message(name) }).await;
    }
    assert_eq!(pulled(&store, &first, 9).await, ["b"]);
    let small = PullSteering { bytes_max: 1, ..pull(&first, 9) };
    let Pulled::Events(events) = store.commit(small).await.unwrap() else { panic!("stale") };
    assert_eq!(events.len(), 1);
    assert_eq!(pulled(&store, &first, 9).await, ["e"]);
}

pub(crate) async fn many_messages_at_once_reach_one_run_each_once(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, message("a")).await;
    let send = |n: usize| {
        let mut command = message(&format!("m{n:03}"));
        command.run.as_mut().unwrap().steering_length_max = Some(1_000);
        store.commit(command)
    };
    let sending = futures_util::future::join_all((0..100).map(send));
    let pulling = async {
        let mut seen = Vec::new();
        while seen.len() < 100 {
            seen.extend(pulled(&store, &first, 7).await);
        }
        seen
    };
    let (_, mut seen) = tokio::join!(sending, pulling);
    seen.sort();
    let expected: Vec<String> = (0..100).map(|n| format!("m{n:03}")).collect();
    assert_eq!(seen, expected);
}
