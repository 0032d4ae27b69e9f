//! Audit records: stored with their outcome, and listed.

use crate::support::{Ground, W, accept, event, fence};
use greenroom_store::Store;
use greenroom_store::commands::{RecordAudit, RunFence, StateWritten, WriteState};
use greenroom_store::reads::audit::{AuditEntry, AuditFilter, AuditPage, AuditPosition, page};
use greenroom_store::types::{AuditBatch, AuditRecord};

pub(crate) fn record(method: &str, code: &str, at_ms: i64) -> AuditRecord {
    AuditRecord {
        attempt: Some(1),
        agent: "assistant".to_owned(),
        runner: "plugin:greenroom/echo/default".to_owned(),
        plugin: "greenroom/echo".to_owned(),
        runner_id: Some("plugin:greenroom/echo/default".to_owned()),
        method: method.to_owned(),
        resource: Some("a/b".to_owned()),
        scope: None,
        authority: None,
        code: code.to_owned(),
        bytes_in: 12,
        bytes_out: 34,
        duration_us: 56,
        at_ms,
    }
}

pub(crate) async fn keep(store: &Store, run_id: Option<&str>, records: Vec<AuditRecord>) {
    let (workspace_id, run_id) = (W.to_owned(), run_id.map(str::to_owned));
    let batches = vec![AuditBatch { workspace_id, run_id, records, closes: Vec::new() }];
    store.commit(RecordAudit { batches }).await.unwrap();
}

async fn look(
    store: &Store,
    filter: AuditFilter,
    before: Option<AuditPosition>,
    limit: usize,
) -> AuditPage {
    store.read(move |tx| page(tx, W, &filter, before, limit)).await.unwrap()
}

/// The times of all records that a filter finds, read in one go.
async fn times(store: &Store, filter: AuditFilter) -> Vec<i64> {
    let found = look(store, filter, None, 10_000).await;
    assert_eq!(found.next, None);
    found.entries.iter().map(|entry| entry.record.at_ms).collect()
}

pub(crate) async fn records_come_back_newest_first_and_unfolded(ground: Ground) {
    let store = ground.open();
    let none = AuditRecord {
        attempt: None,
        resource: None,
        scope: Some("conversation".to_owned()),
        ..record("state.get", "unauthorized", 4)
    };
    let other = AuditRecord {
        agent: "other".to_owned(),
        authority: Some("user".to_owned()),
        ..record("tools.call", "ok", 2)
    };
    keep(&store, Some("r"), vec![record("history.page", "ok", 1), other.clone()]).await;
    keep(&store, None, vec![none.clone()]).await;
    let entry = |run_id: Option<&str>, record: AuditRecord| AuditEntry {
        run_id: run_id.map(str::to_owned),
        record,
    };
    let found = look(&store, AuditFilter::default(), None, 10).await;
    let expected = vec![
        entry(None, none),
        entry(Some("r"), other),
        entry(Some("r"), record("history.page", "ok", 1)),
    ];
    assert_eq!(found, AuditPage { entries: expected, next: None });
    let elsewhere = |tx: &mut dyn greenroom_store::sql::Tx| {
        page(tx, "elsewhere", &AuditFilter::default(), None, 10)
    };
    assert_eq!(store.read(elsewhere).await.unwrap(), AuditPage::default());
}

pub(crate) async fn pages_of_records_join_without_a_gap(ground: Ground) {
    let store = ground.open();
    // More than one row holds, then rows of one.
    keep(&store, Some("r"), (0..450).map(|at| record("state.get", "ok", at)).collect()).await;
    for at in 450..500 {
        keep(&store, Some("r"), vec![record("state.get", "ok", at)]).await;
    }
    for limit in [1, 7, 50, 200, 500] {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let found = look(&store, AuditFilter::default(), before, limit).await;
            assert!(found.entries.len() <= limit);
            seen.extend(found.entries.iter().map(|entry| entry.record.at_ms));
            before = found.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..500).rev().collect::<Vec<_>>(), "pages of {limit}");
    }
}

pub(crate) async fn records_are_found_by_run_method_code_and_denial(ground: Ground) {
    let store = ground.open();
    let first = vec![
        record("state.get", "ok", 1),
        record("state.get", "unauthorized", 2),
        record("history.page", "runtime_error", 3),
    ];
    keep(&store, Some("a"), first).await;
    keep(&store, Some("b"), vec![record("state.get", "ok", 4)]).await;
    keep(&store, Some("b"), vec![record("history.page", "rate_limited", 5)]).await;
    let none = AuditFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (none(), vec![5, 4, 3, 2, 1]),
        (AuditFilter { run_id: text("a"), ..none() }, vec![3, 2, 1]),
        (AuditFilter { run_id: text("c"), ..none() }, vec![]),
        (AuditFilter { method: text("state.get"), ..none() }, vec![4, 2, 1]),
        (AuditFilter { code: text("ok"), ..none() }, vec![4, 1]),
        (AuditFilter { code: text("rate_limited"), ..none() }, vec![5]),
        (AuditFilter { code: text("runtime_error"), ..none() }, vec![3]),
        (AuditFilter { denied_only: true, ..none() }, vec![5, 2]),
        (AuditFilter { denied_only: true, run_id: text("a"), ..none() }, vec![2]),
        (AuditFilter { code: text("ok"), denied_only: true, ..none() }, vec![]),
    ];
    for (filter, expected) in cases {
        let told = format!("{filter:?}");
        assert_eq!(times(&store, filter).await, expected, "{told}");
    }
}

pub(crate) async fn a_rare_record_is_found_over_several_pages(ground: Ground) {
    let store = ground.open();
    keep(&store, Some("r"), vec![record("events.get", "ok", 0)]).await;
    let rows = (1..=1500).map(|at| AuditBatch {
        workspace_id: W.to_owned(),
        run_id: Some("r".to_owned()),
        records: vec![record("state.get", "ok", at)],
        closes: Vec::new(),
    });
    store.commit(RecordAudit { batches: rows.collect() }).await.unwrap();
    let rare = || AuditFilter { method: Some("events.get".to_owned()), ..AuditFilter::default() };
    let found = look(&store, rare(), None, 10).await;
    assert!(found.entries.is_empty() && found.next.is_some(), "one page looks at so much only");
    let found = look(&store, rare(), found.next, 10).await;
    assert_eq!(found.entries.len(), 1);
    assert_eq!(found.next, None);
}

pub(crate) async fn a_write_keeps_its_record_with_its_outcome(ground: Ground) {
    let store = ground.open();
    accept(&store, event("c", "a")).await;
    let write = |at_ms, attempt, if_version| WriteState {
        fence: RunFence { attempt, ..fence("run-a") },
        owner: "o".to_owned(),
        name: "n".to_owned(),
        value: Some("1".to_owned()),
        if_version,
        expires_at: None,
        owner_bytes_max: None,
        audit: Some(record("state.set", "ok", at_ms)),
        now_ms: 2_000,
    };
    let written = store.commit(write(1, 1, None)).await.unwrap();
    assert_eq!(written, StateWritten::Set(1));
    let written = store.commit(write(2, 1, Some(7))).await.unwrap();
    assert_eq!(written, StateWritten::Conflict(1));
    let written = store.commit(write(3, 2, None)).await.unwrap();
    assert_eq!(written, StateWritten::Stale);
    let found = look(&store, AuditFilter::default(), None, 10).await;
    let expected = [
        record("state.set", "unauthorized", 3),
        record("state.set", "invalid_argument", 2),
        record("state.set", "ok", 1),
    ];
    let run_id = Some("run-a".to_owned());
    let expected = expected.map(|record| AuditEntry { run_id: run_id.clone(), record });
    assert_eq!(found.entries, expected);
}

pub(crate) async fn whatever_a_caller_claims_is_kept(ground: Ground) {
    let store = ground.open();
    let odd = "\0\u{1f600}\"\\\n\u{fffd}";
    let claimed =
        AuditRecord { resource: Some(odd.to_owned()), ..record("state.get", "unauthorized", 1) };
    keep(&store, Some("run\0x"), vec![claimed.clone()]).await;
    let found = look(&store, AuditFilter::default(), None, 10).await;
    let run_id = Some("run\u{fffd}x".to_owned());
    assert_eq!(found.entries, [AuditEntry { run_id, record: claimed }]);
}
