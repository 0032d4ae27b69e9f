//! How SQLite finds what the hot path asks for.
//!
//! Invariant: no statement of a command, and no page, walks through a table, through a workspace, or sorts.

use super::SqliteDriver;
use crate::commands::{AcceptEvent, ApplyResults, CancelQueued, Command, NewRun, Terminal};
use crate::sql::{Dialect, Row, Tx, Value};
use crate::types::{OnInterrupt, Queue};
use crate::{StoreError, Sync, reads, schema};
use greenroom_protocol::RunStatus;

/// Looks at the plan of every statement before it is run.
struct Explained(SqliteDriver);

impl Explained {
    fn check(&mut self, sql: &str) {
        // Plans do not depend on parameters; the statement is leaked because drivers keep statements.
        let explain: &'static str = format!("EXPLAIN QUERY PLAN {sql}").leak();
        for mut row in self.0.query(explain, &[]).unwrap() {
            for _ in 0..3 {
                row.int().unwrap();
            }
            let step = row.text().unwrap();
            let walks = step.contains("SCAN ") && step != "SCAN CONSTANT ROW";
            let wide = step.ends_with("(workspace_id=?)") || step.contains("TEMP B-TREE");
            assert!(!walks && !wide, "`{step}` in\n{sql}");
        }
    }
}

impl Tx for Explained {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.check(sql);
        self.0.execute(sql, params)
    }

    fn query(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        self.check(sql);
        self.0.query(sql, params)
    }
}

fn accept(name: &str, queue: Queue) -> Command {
    Command::Accept(Box::new(AcceptEvent {
        workspace_id: "w".to_owned(),
        source: "api".to_owned(),
        event_id: name.to_owned(),
        body_hash: [0; 32],
        event_type: "message.received".to_owned(),
        conversation_id: Some("c".to_owned()),
        body: "{}".to_owned(),
        run: Some(NewRun {
            run_id: name.to_owned(),
            agent: "a".to_owned(),
            runner_id: "r".to_owned(),
            queue,
            lane_length_max: 9,
            grant: None,
            on_interrupt: OnInterrupt::Fail,
            deadline_ms: 1,
            surface: None,
            reserved_seq: 1,
            epoch: 1,
            steers: queue == Queue::Steer,
            steering_length_max: Some(9),
        }),
        item: None,
        artifacts: Vec::new(),
        uploads: Vec::new(),
        now_ms: 1,
    }))
}

fn complete(run_id: &str) -> Command {
    Command::Apply(std::sync::Arc::new(ApplyResults {
        workspace_id: "w".to_owned(),
        run_id: run_id.to_owned(),
        attempt: 1,
        epoch: 1,
        epoch_now: 1,
        conversation_id: Some("c".to_owned()),
        chunk: None,
        reserved_seq: 1,
        effects: false,
        isolation: None,
        state: Vec::new(),
        items: Vec::new(),
        deliveries: Vec::new(),
        artifacts: Vec::new(),
        approvals: Vec::new(),
        approvals_pending_max: 9,
        diagnostics: Vec::new(),
        log: Vec::new(),
        terminal: Some(Terminal { status: RunStatus::Completed, error: None, usage: None }),
        now_ms: 2,
    }))
}

#[test]
fn the_hot_path_finds_everything_by_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = SqliteDriver::writer(&folder.path().join("plans.db"), Sync::Normal).unwrap();
    schema::prepare(&mut driver).unwrap();
    let mut tx = Explained(driver);
    let cancel = CancelQueued {
        workspace_id: "w".to_owned(),
        run_id: "4".to_owned(),
        epoch_now: 1,
        now_ms: 3,
    };
    let commands = [
        accept("1", Queue::Serial),
        accept("2", Queue::Serial),
        complete("1"),
        accept("3", Queue::Replace),
        accept("4", Queue::Serial),
        Command::CancelQueued(cancel),
        complete("2"),
    ];
    for command in &commands {
        command.execute(&mut tx).unwrap();
    }
    let conversation_id = Some("c".to_owned());
    let filter = reads::runs::RunFilter { conversation_id, ..Default::default() };
    assert_eq!(reads::runs::page(&mut tx, "w", &filter, None, 9).unwrap().len(), 4);
    assert_eq!(reads::events::page(&mut tx, "w", None, 9, 9).unwrap().len(), 4);
    assert_eq!(reads::events::page(&mut tx, "w", Some("c"), 9, 9).unwrap().len(), 4);
    assert!(reads::results::page(&mut tx, "3", 0, 9).unwrap().is_empty());
}
