//! Results applied, late ones dropped, one terminal only.

use super::support::*;
use greenroom_protocol::{RunError, RunStatus};
use greenroom_store::commands::{
    Applied, ApplyResults, FreezeGrant, RecordDiagnostics, RunFence, StateWritten, Terminal,
    WriteState,
};
use greenroom_store::reads;
use greenroom_store::types::{Diagnostic, HostEvent, NewDelivery, StateWrite};

pub(crate) fn delivery(id: &str) -> NewDelivery {
    NewDelivery {
        delivery_id: id.to_owned(),
        surface: "hook".to_owned(),
        target: "hook:c".to_owned(),
        sequence: 1,
        payload: r#"{"text":"hi"}"#.to_owned(),
    }
}

fn state(name: &str, value: Option<&str>) -> StateWrite {
    let value = value.map(str::to_owned);
    StateWrite {
        owner: "conversation:c".to_owned(),
        name: name.to_owned(),
        value,
        owner_bytes_max: None,
    }
}

pub(crate) fn diagnostic(message: &str) -> Diagnostic {
    let kind = "result.refused".to_owned();
    Diagnostic { kind, message: message.to_owned(), created_at: 2_000 }
}

pub(crate) fn host_event(id: &str) -> HostEvent {
    HostEvent {
        event_id: id.to_owned(),
        event_type: "tool.called".to_owned(),
        body: "{}".to_owned(),
    }
}

pub(crate) fn everything(run: &greenroom_store::types::RunRow) -> ApplyResults {
    ApplyResults {
        chunk: Some(delta_chunk(1, &["he", "llo"])),
        reserved_seq: 128,
        effects: true,
        isolation: Some("landlock:7".to_owned()),
        state: vec![state("a", Some("1")), state("b", Some("{}"))],
        items: vec![item("i1", "assistant", "hello")],
        deliveries: vec![delivery("d1")],
        diagnostics: vec![diagnostic("not an object")],
        log: vec![host_event("h1")],
        ..results(run)
    }
}

pub(crate) async fn everything_of_a_batch_of_results_is_kept(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    apply(&store, everything(&first)).await;
    let after = run(&store, "run-a").await;
    assert_eq!((after.last_seq, after.reserved_seq, after.effects), (2, 128, true));
    assert_eq!((after.status, after.finished_at), (RunStatus::Running, None));
    assert_eq!(after.isolation.as_deref(), Some("landlock:7"));
    assert_eq!(transcript(&store, "c").await, ["1 user a", "2 assistant hello"]);
    let found = store
        .read(|tx| {
            Ok((
                reads::state::list(tx, W, "conversation:c", &all_state(), 0)?.0,
                reads::deliveries::of_run(tx, W, "run-a")?,
                reads::runs::diagnostics(tx, "run-a", 10)?,
                reads::events::by_id(tx, W, "h1")?,
            ))
        })
        .await
        .unwrap();
    let (state, deliveries, diagnostics, log) = found;
    let state: Vec<_> = state.iter().map(|s| (s.name.as_str(), &*s.value, s.version)).collect();
    assert_eq!(state, [("a", "1", 1), ("b", "{}", 1)]);
    assert_eq!(deliveries.len(), 1);
    assert_eq!((&*deliveries[0].delivery_id, deliveries[0].attempts), ("d1", 0));
    assert_eq!(diagnostics, [diagnostic("not an object")]);
    assert_eq!((&*log[0].event_type, &*log[0].source), ("tool.called", "host"));
    assert_eq!(log[0].run_id.as_deref(), Some("run-a"));
    assert_eq!(log[0].conversation_seq, None, "only the senders' events are counted");
}

pub(crate) async fn state_is_versioned_and_removed(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let writes = [
        vec![state("a", Some("1")), state("b", Some("1"))],
        vec![state("a", Some("2")), state("a", Some("3")), state("b", None)],
    ];
    for (sequence, state) in (1..).zip(writes) {
        let chunk = Some(result_chunk(sequence, "state.updated", "{}"));
        apply(&store, ApplyResults { chunk, state, ..results(&first) }).await;
    }
    let found = store.read(|tx| reads::state::get(tx, W, "conversation:c", "a", 0)).await.unwrap();
    let found = found.unwrap();
    assert_eq!((&*found.value, found.version), ("3", 3));
    let gone = store.read(|tx| reads::state::get(tx, W, "conversation:c", "b", 0)).await.unwrap();
    assert_eq!(gone, None);
    let foreign =
        store.read(|tx| reads::state::get(tx, "other", "conversation:c", "a", 0)).await.unwrap();
    assert_eq!(foreign, None);
}

pub(crate) async fn reserved_numbers_and_effects_only_grow(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    apply(&store, ApplyResults { reserved_seq: 256, effects: true, ..results(&first) }).await;
    apply(&store, ApplyResults { reserved_seq: 10, ..results(&first) }).await;
    let after = run(&store, "run-a").await;
    assert_eq!((after.reserved_seq, after.effects, after.last_seq), (256, true, 0));
}

pub(crate) async fn a_terminal_keeps_error_and_usage(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let error = RunError {
        code: "runner.crashed".to_owned(),
        message: "exit status 1".to_owned(),
        retryable: true,
    };
    let usage: Box<str> = r#"{"tokens":3}"#.into();
    let terminal = Terminal {
        status: RunStatus::Failed,
        error: Some(error.clone()),
        usage: Some(usage.clone()),
    };
    apply(&store, ApplyResults { terminal: Some(terminal), ..completed(&first, 1) }).await;
    let after = run(&store, "run-a").await;
    assert_eq!((after.status, after.finished_at), (RunStatus::Failed, Some(2_000)));
    assert_eq!((after.error, after.usage), (Some(error), Some(usage)));
}

pub(crate) async fn late_output_changes_nothing(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    let queued = run(&store, "run-b").await;
    let before = rows(&store).await;
    let by = |fence| ApplyResults { fence, ..everything(&first) };
    let late = [
        by(RunFence { attempt: 2, ..first.fence() }),
        by(RunFence { epoch: 2, ..first.fence() }),
        by(RunFence { workspace_id: "other".to_owned(), ..first.fence() }),
        by(RunFence { run_id: "run-none".to_owned(), ..first.fence() }),
        everything(&queued),
    ];
    for command in late {
        assert_eq!(store.commit(command).await.unwrap(), Applied::Stale);
    }
    assert_eq!(rows(&store).await, before);
    assert_eq!(run(&store, "run-a").await, first);
    apply(&store, completed(&first, 1)).await;
    let ended = run(&store, "run-a").await;
    let before = rows(&store).await;
    let after_end = ApplyResults { chunk: Some(delta_chunk(2, &["x"])), ..everything(&first) };
    assert_eq!(store.commit(after_end).await.unwrap(), Applied::Stale);
    assert_eq!(rows(&store).await, before);
    assert_eq!(run(&store, "run-a").await, ended);
}

pub(crate) async fn diagnostics_are_kept_even_after_the_terminal(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    apply(&store, completed(&first, 1)).await;
    let ended = run(&store, "run-a").await;
    let diagnostics = vec![diagnostic("a result after the terminal")];
    let late = ApplyResults { diagnostics: diagnostics.clone(), ..results(&first) };
    assert_eq!(store.commit(late).await.unwrap(), Applied::Stale);
    for _ in 0..2 {
        let (run_id, diagnostics) = ("run-a".to_owned(), diagnostics.clone());
        store.commit(RecordDiagnostics { run_id, diagnostics }).await.unwrap();
    }
    let found = store.read(|tx| reads::runs::diagnostics(tx, "run-a", 9)).await.unwrap();
    assert_eq!(found, diagnostics);
    assert_eq!(run(&store, "run-a").await, ended);
}

pub(crate) async fn state_is_written_under_conditions(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let write = |value: Option<&str>, if_version| WriteState {
        fence: fence("run-a"),
        owner: "o".to_owned(),
        name: "n".to_owned(),
        value: value.map(str::to_owned),
        if_version,
        expires_at: None,
        owner_bytes_max: None,
        audit: None,
        now_ms: 2_000,
    };
    let by = |fence| WriteState { fence, ..write(Some("3"), None) };
    let steps = [
        (write(Some("1"), Some(1)), StateWritten::Conflict(0)),
        (write(Some("1"), Some(0)), StateWritten::Set(1)),
        (write(Some("2"), Some(0)), StateWritten::Conflict(1)),
        (write(Some("2"), None), StateWritten::Set(2)),
        (by(RunFence { attempt: 2, ..first.fence() }), StateWritten::Stale),
        (by(RunFence { epoch: 2, ..first.fence() }), StateWritten::Stale),
        (by(RunFence { workspace_id: "x".to_owned(), ..first.fence() }), StateWritten::Stale),
        (WriteState { expires_at: Some(2_500), ..write(Some("4"), Some(2)) }, StateWritten::Set(3)),
    ];
    for (command, expected) in steps {
        assert_eq!(store.commit(command).await.unwrap(), expected);
    }
    let at = async |now_ms| {
        let found = store.read(move |tx| reads::state::get(tx, W, "o", "n", now_ms)).await.unwrap();
        found.map(|row| row.value)
    };
    assert_eq!((at(2_499).await.as_deref(), at(2_500).await), (Some("4"), None), "it expires");
    for deleted in [true, false] {
        let answer = store.commit(write(None, None)).await.unwrap();
        assert_eq!(answer, StateWritten::Deleted(deleted));
    }
    apply(&store, completed(&first, 1)).await;
    let late = store.commit(write(Some("5"), None)).await.unwrap();
    assert_eq!(late, StateWritten::Stale);
}

pub(crate) async fn a_number_is_never_stored_twice(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let chunk = Some(delta_chunk(1, &["a", "b", "c"]));
    apply(&store, ApplyResults { chunk, ..results(&first) }).await;
    let overlapping = Some(delta_chunk(3, &["x", "y"]));
    let overlapping = ApplyResults { chunk: overlapping, ..results(&first) };
    assert_eq!(store.commit(overlapping).await.unwrap(), Applied::Stale);
    assert_eq!(run(&store, "run-a").await.last_seq, 3);
}

pub(crate) async fn of_many_terminals_at_once_one_wins(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    accept(&store, event("c", "b")).await;
    let statuses =
        [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled, RunStatus::Timeout];
    let tries = (0..32).map(|n| {
        let terminal = Terminal { status: statuses[n % 4], error: None, usage: None };
        let chunk = Some(result_chunk(1, "run.completed", &format!(r#"{{"try":{n}}}"#)));
        store.commit(ApplyResults { terminal: Some(terminal), chunk, ..completed(&first, 1) })
    });
    let answers = futures_util::future::try_join_all(tries).await.unwrap();
    let won: Vec<_> = answers.iter().filter(|answer| **answer != Applied::Stale).collect();
    assert_eq!(won.len(), 1);
    assert!(matches!(won[0], Applied::Done { next: Some(next), .. } if next.run_id == "run-b"));
    assert!(rows(&store).await.contains(&("results".to_owned(), 1)));
}

pub(crate) async fn a_grant_is_frozen_once(ground: Ground) {
    let store = ground.open();
    let mut late = event("c", "a");
    late.run.as_mut().unwrap().grant = None;
    let first = accept(&store, late).await;
    assert_eq!(first.grant_hash, None);
    let freeze = |hash: &str, attempt| FreezeGrant {
        fence: RunFence { attempt, ..fence("run-a") },
        grant: grant(hash),
        steers: false,
    };
    assert!(!store.commit(freeze("g0", 2)).await.unwrap(), "another attempt");
    assert!(store.commit(freeze("g1", 1)).await.unwrap());
    assert!(store.commit(freeze("g1", 1)).await.unwrap(), "the same again");
    assert!(!store.commit(freeze("g2", 1)).await.unwrap(), "frozen is frozen");
    assert_eq!(run(&store, "run-a").await.grant_hash.as_deref(), Some("g1"));
    assert!(rows(&store).await.contains(&("grants".to_owned(), 1)));
}
