//! Query plans of SQLite for the hot path.
//!
//! Invariant: no statement of a command, and no page, scans a table or a workspace, or sorts.

mod calls;

use super::SqliteDriver;
use crate::commands::{
    AcceptEvent, AnswerApproval, ApplyResults, CancelQueued, Command, Decision, ExpireApprovals,
    IndexItems, NewRun, PullSteering, RequestAction, RunFence, Terminal, Wanted,
};
use crate::reads::conversations::{Names, Own, Reach, Span, history, page};
use crate::sql::{Dialect, Row, Tx, Value};
use crate::types::{ApprovalKind, DeliveryStatus, NewApproval, NewDelivery, OnInterrupt, Queue};
use crate::{StoreError, Sync, reads, schema};
use greenroom_protocol::RunStatus;

/// Checks the plan of every statement before it runs.
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
            // A full-text index is searched by terms.
            let walks = step.contains("SCAN ")
                && step != "SCAN CONSTANT ROW"
                && !step.ends_with("VALUES CLAUSE")
                && !(step.contains("VIRTUAL TABLE INDEX") && step.contains(":M"));
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

fn accept(name: &str, queue: Queue) -> AcceptEvent {
    AcceptEvent {
        workspace_id: "w".to_owned(),
        source: "api".to_owned(),
        limited_to: None,
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
            replaces: greenroom_protocol::Replaces::default(),
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
        sent_by: None,
        now_ms: 1,
    }
}

fn fence(run_id: &str) -> RunFence {
    let (workspace_id, run_id) = ("w".to_owned(), run_id.to_owned());
    RunFence { workspace_id, run_id, attempt: 1, epoch: 1 }
}

fn complete(run_id: &str) -> ApplyResults {
    ApplyResults {
        fence: fence(run_id),
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
    }
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
    accept("1", Queue::Serial).execute(&mut tx).unwrap();
    accept("2", Queue::Serial).execute(&mut tx).unwrap();
    complete("1").execute(&mut tx).unwrap();
    accept("3", Queue::Replace).execute(&mut tx).unwrap();
    accept("4", Queue::Serial).execute(&mut tx).unwrap();
    cancel.execute(&mut tx).unwrap();
    complete("2").execute(&mut tx).unwrap();
    let conversation_id = Some("c".to_owned());
    let filter = reads::runs::RunFilter { conversation_id, ..Default::default() };
    assert_eq!(reads::runs::page(&mut tx, "w", &filter, None, 9).unwrap().len(), 4);
    let narrow = reads::runs::RunFilter {
        event_type: Some("message.received".to_owned()),
        error_code: Some("cancelled".to_owned()),
        since_ms: Some(1),
        ..Default::default()
    };
    assert_eq!(reads::runs::page(&mut tx, "w", &narrow, None, 9).unwrap().len(), 1);
    assert!(reads::runs::floor(&mut tx, "w", &narrow, None, 9).unwrap().is_none());
    assert!(reads::events::by_id_prefix(&mut tx, "w", "rpl_", 9).unwrap().is_empty());
    let artifacts = reads::artifacts::ArtifactSpan::whole(9, 1);
    let (all, id) = (reads::artifacts::ArtifactFilter::default(), Some("x".to_owned()));
    let of_run = reads::artifacts::ArtifactFilter { run_id: id.clone(), ..all.clone() };
    let of_conversation = reads::artifacts::ArtifactFilter { conversation_id: id, ..all.clone() };
    for filter in [all, of_run, of_conversation] {
        assert!(reads::artifacts::page(&mut tx, "w", &filter, &artifacts).unwrap().is_empty());
    }
    let reach = Reach::Own(std::sync::Arc::new(Own {
        begun_by: "token:web".to_owned(),
        named: Names::default(),
    }));
    assert!(page(&mut tx, "w", &reach, Some((9, "c")), 9).unwrap().is_empty());
    assert_eq!(reads::events::page(&mut tx, "w", None, 9, 9).unwrap().len(), 4);
    assert_eq!(reads::events::page(&mut tx, "w", Some("c"), 9, 9).unwrap().len(), 4);
    assert!(reads::results::page(&mut tx, "3", 0, 9).unwrap().is_empty());
    assert!(!reads::results::shows_work(&mut tx, "3").unwrap());
}

#[test]
fn what_is_asked_about_and_what_steers_is_found_by_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = SqliteDriver::writer(&folder.path().join("plans.db"), Sync::Normal).unwrap();
    schema::prepare(&mut driver).unwrap();
    let mut tx = Explained(driver);
    let now_ms = 2;
    for name in ["1", "2", "3"] {
        accept(name, Queue::Steer).execute(&mut tx).unwrap();
    }
    for name in ["a", "b"] {
        ask(fence("1"), name).execute(&mut tx).unwrap();
    }
    let answer = AnswerApproval {
        workspace_id: "w".to_owned(),
        approval_id: "a".to_owned(),
        nonce: "n".to_owned(),
        decision: Decision::Allow,
        edited: Some("{}".to_owned()),
        by: "admin".to_owned(),
        values: None,
        now_ms,
    };
    answer.execute(&mut tx).unwrap();
    ExpireApprovals { due_ms: 1, limit: 9, now_ms }.execute(&mut tx).unwrap();
    let pull = PullSteering { fence: fence("1"), limit: 1, bytes_max: 9, audit: None, now_ms };
    pull.execute(&mut tx).unwrap();
    complete("1").execute(&mut tx).unwrap();
    assert_eq!(reads::approvals::next_due(&mut tx).unwrap(), None);
    assert!(reads::deliveries::get(&mut tx, "w", "d-a").unwrap().is_some());
    assert!(reads::deliveries::next(&mut tx, "t").unwrap().is_some());
    let run_id = Some("1".to_owned());
    for status in [None].into_iter().chain(DeliveryStatus::ALL.map(Some)) {
        let all = reads::deliveries::DeliveryFilter { status, ..Default::default() };
        let of_run = reads::deliveries::DeliveryFilter { run_id: run_id.clone(), ..all.clone() };
        for filter in [all, of_run] {
            reads::deliveries::page(&mut tx, "w", &filter, 99, (9, 9)).unwrap();
        }
    }
}

fn ask(fence: RunFence, name: &str) -> RequestAction {
    let delivery = NewDelivery {
        delivery_id: format!("d-{name}"),
        surface: "s".to_owned(),
        target: "t".to_owned(),
        sequence: 0,
        payload: "{}".to_owned(),
    };
    let asked = NewApproval {
        approval_id: name.to_owned(),
        nonce: "n".to_owned(),
        kind: ApprovalKind::Call,
        agent: "a".to_owned(),
        runner_id: "r".to_owned(),
        actor: None,
        action: "message.send".to_owned(),
        target: "{}".to_owned(),
        payload: "{}".to_owned(),
        delivery: Some(delivery),
        expires_at: 9,
    };
    RequestAction {
        fence,
        conversation_id: Some("c".to_owned()),
        wanted: Wanted::Ask(Box::new(asked)),
        pending_max: 9,
        call: None,
        now_ms: 1,
    }
}

#[test]
fn history_and_search_find_everything_by_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = SqliteDriver::writer(&folder.path().join("plans.db"), Sync::Normal).unwrap();
    schema::prepare(&mut driver).unwrap();
    let mut tx = Explained(driver);
    for name in ["1", "2", "3"] {
        let mut event = accept(name, Queue::Serial);
        event.item = Some(crate::types::NewItem {
            item_id: name.to_owned(),
            thread_id: Some("t".to_owned()),
            session: crate::session_key(None, Some("t")),
            role: "user",
            event_id: None,
            run_id: None,
            actor_id: None,
            text: Some("数据库 连接".to_owned()),
            body: "{}".to_owned(),
        });
        event.execute(&mut tx).unwrap();
    }
    let step = IndexItems::next(&mut tx, 2).unwrap().unwrap();
    step.execute(&mut tx).unwrap();
    for direction in [reads::Direction::Backward, reads::Direction::Forward] {
        let whole = Span::whole(direction, 9);
        let session = Some(crate::session_key(None, Some("t")));
        let thread = Span { session, ..whole.clone() };
        for span in [whole, thread] {
            assert_eq!(history(&mut tx, "w", "c", &span).unwrap().len(), 3);
        }
    }
    let query = reads::search::SearchQuery {
        workspace: "w".to_owned(),
        text: "数据库 连接".to_owned(),
        roles: vec!["user".to_owned(), "tool".to_owned()],
        before_ms: Some(99),
        top_k: 9,
        ..Default::default()
    };
    assert_eq!(reads::search::search(&mut tx, &query).unwrap().len(), 3);
}

/// Records the plan of every statement before it runs.
struct Recorded(SqliteDriver, Vec<String>);

impl Tx for Recorded {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.0.execute(sql, params)
    }

    fn query(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let explain: &'static str = format!("EXPLAIN QUERY PLAN {sql}").leak();
        for mut row in self.0.query(explain, &[]).unwrap() {
            for _ in 0..3 {
                row.int().unwrap();
            }
            self.1.push(row.text().unwrap());
        }
        self.0.query(sql, params)
    }
}

#[test]
fn what_is_open_is_found_without_what_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = SqliteDriver::writer(&folder.path().join("plans.db"), Sync::Normal).unwrap();
    schema::prepare(&mut driver).unwrap();
    let mut tx = Recorded(driver, Vec::new());
    let running = reads::runs::RunFilter { status: Some(RunStatus::Running), ..Default::default() };
    reads::runs::page(&mut tx, "w", &running, None, 9).unwrap();
    reads::rates::waiting(&mut tx, "w").unwrap();
    reads::deliveries::lanes(&mut tx, "", 9).unwrap();
    reads::deliveries::unsuccessful(&mut tx, "w").unwrap();
    let open =
        ["runs_open", "approvals_pending", "approvals_due", "outbox_open", "outbox_unsuccessful"];
    let tables = ["runs ", "approvals ", "outbox "].map(|table| format!(" {table}"));
    let of_table = |step: &&String| tables.iter().any(|table| step.contains(table.as_str()));
    let steps: Vec<&String> = tx.1.iter().filter(of_table).collect();
    assert_eq!(steps.len(), 9, "{:?}", tx.1);
    assert!(steps.iter().all(|step| open.iter().any(|index| step.contains(index))), "{steps:?}");
}
