//! Calls of runners, listings of them, and retention.

use super::{Explained, SqliteDriver, accept, complete, fence};
use crate::audit::AuditRecord;
use crate::commands::{Collect, Command, Retained, WriteState, WriteStorage};
use crate::reads::audit::AuditFilter;
use crate::reads::state::StateSpan;
use crate::reads::storage::StorageSpan;
use crate::types::Queue;
use crate::{Sync, reads, schema};

#[test]
fn calls_of_runners_find_everything_by_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = SqliteDriver::writer(&folder.path().join("plans.db"), Sync::Normal).unwrap();
    schema::prepare(&mut driver).unwrap();
    let mut tx = Explained(driver);
    accept("1", Queue::Serial).execute(&mut tx).unwrap();
    for value in [Some("1"), None] {
        write_state(value.map(str::to_owned)).execute(&mut tx).unwrap();
        let storage = write_storage(value.map(|value| value.as_bytes().to_vec()));
        storage.execute(&mut tx).unwrap();
    }
    let span = StateSpan { prefix: "a".into(), after: "b".into(), values_max: 9, bytes_max: 9 };
    reads::state::list(&mut tx, "w", "o", &span, 1).unwrap();
    let span = StorageSpan { prefix: "a".into(), after: "b".into(), limit: 9 };
    reads::storage::list(&mut tx, "w", "o", &span).unwrap();
    for run_id in [None, Some("1".to_owned())] {
        for denied_only in [true, false] {
            let run_id = run_id.clone();
            let filter = AuditFilter { run_id, denied_only, ..AuditFilter::default() };
            let page = reads::audit::page(&mut tx, "w", &filter, None, 9).unwrap();
            assert_eq!(page.entries.len(), if denied_only { 0 } else { 4 });
        }
    }
    complete("1").execute(&mut tx).unwrap();
    for what in [Retained::Events, Retained::Ledger, Retained::ExpiredState] {
        Collect { what, before_ms: 99, rows_max: 9 }.execute(&mut tx).unwrap();
    }
}

fn called(method: &str) -> Option<AuditRecord> {
    Some(AuditRecord {
        attempt: Some(1),
        agent: "a".to_owned(),
        runner: "r".to_owned(),
        plugin: "p".to_owned(),
        runner_id: None,
        method: method.to_owned(),
        resource: None,
        scope: None,
        authority: None,
        code: "ok".to_owned(),
        bytes_in: 1,
        bytes_out: 1,
        duration_us: 1,
        at_ms: 1,
    })
}

fn write_state(value: Option<String>) -> WriteState {
    WriteState {
        fence: fence("1"),
        owner: "o".to_owned(),
        name: "n".to_owned(),
        value,
        if_version: None,
        expires_at: None,
        owner_bytes_max: Some(9),
        audit: called("state.set"),
        now_ms: 1,
    }
}

fn write_storage(value: Option<Vec<u8>>) -> WriteStorage {
    WriteStorage {
        fence: fence("1"),
        owner: "o".to_owned(),
        name: "n".to_owned(),
        value,
        owner_bytes_max: 9,
        workspace_bytes_max: 9,
        audit: called("storage.set"),
        now_ms: 1,
    }
}
