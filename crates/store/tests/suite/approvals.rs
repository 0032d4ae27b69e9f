//! Actions: executed at once, approved, answered once, expired, ended with their run.

use super::audit::record;
use super::support::*;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{
    AnswerApproval, Answered, ApplyResults, CancelApproval, CancelQueued, Decision,
    ExpireApprovals, RecordAudit, RecordInterrupted, RequestAction, Requested, Terminal, Wanted,
};
use greenroom_store::reads::approvals::{ApprovalFilter, next_due, page};
use greenroom_store::reads::audit::AuditFilter;
use greenroom_store::types::{
    ApprovalKind, ApprovalRow, ApprovalStatus, AuditBatch, DeliveryStatus, HostEvent, NewApproval,
    NewDelivery, OpenCall, RunRow,
};
use greenroom_store::{Store, reads};

fn delivery(name: &str) -> NewDelivery {
    NewDelivery {
        delivery_id: format!("dlv-{name}"),
        surface: "hook".to_owned(),
        target: "lane".to_owned(),
        sequence: 0,
        payload: r#"{"type":"message.send"}"#.to_owned(),
    }
}

fn question(name: &str, kind: ApprovalKind) -> NewApproval {
    NewApproval {
        approval_id: name.to_owned(),
        nonce: format!("nonce-{name}"),
        kind,
        agent: "assistant".to_owned(),
        runner_id: "plugin:greenroom/echo/default".to_owned(),
        actor: Some(r#"{"actor_id":"u1"}"#.to_owned()),
        action: "message.send".to_owned(),
        target: r#"{"conversation_id":"c"}"#.to_owned(),
        payload: r#"{"text":"hi"}"#.to_owned(),
        delivery: Some(delivery(name)),
        expires_at: 10_000,
    }
}

fn asks(run: &RunRow, name: &str) -> RequestAction {
    RequestAction {
        fence: run.fence(),
        conversation_id: run.conversation_id.clone(),
        wanted: Wanted::Ask(Box::new(question(name, ApprovalKind::Call))),
        pending_max: 3,
        call: None,
        now_ms: 1_500,
    }
}

fn answers(name: &str, decision: Decision) -> AnswerApproval {
    AnswerApproval {
        workspace_id: W.to_owned(),
        approval_id: name.to_owned(),
        nonce: format!("nonce-{name}"),
        decision,
        edited: None,
        by: "admin".to_owned(),
        values: None,
        now_ms: 1_600,
    }
}

async fn approval(store: &Store, name: &str) -> ApprovalRow {
    let id = name.to_owned();
    store.read(move |tx| reads::approvals::get(tx, W, &id)).await.unwrap().unwrap()
}

async fn status_of(store: &Store, name: &str) -> ApprovalStatus {
    approval(store, name).await.status
}

/// The deliveries of `run-a` by id.
async fn deliveries(store: &Store) -> Vec<String> {
    let found = store.read(|tx| reads::deliveries::of_run(tx, W, "run-a")).await.unwrap();
    found.into_iter().map(|row| row.delivery_id).collect()
}

/// The host's own events of a conversation, oldest first.
async fn log(store: &Store) -> Vec<String> {
    let found = store.read(|tx| reads::events::page(tx, W, Some("c"), i64::MAX, 100)).await;
    let events = found.unwrap().into_iter().rev();
    events.filter(|event| event.source == "host").map(|event| event.event_type).collect()
}

pub(crate) async fn an_action_that_is_allowed_beforehand_goes_out_with_its_request(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let log_entry = HostEvent {
        event_id: "x".to_owned(),
        event_type: "action.requested".to_owned(),
        body: "{}".to_owned(),
    };
    let wanted = Wanted::Act { delivery: delivery("1"), log: log_entry };
    let command = RequestAction { wanted, ..asks(&first, "none") };
    for _ in 0..2 {
        assert_eq!(store.commit(command.clone()).await.unwrap(), Requested::Queued);
    }
    assert_eq!(deliveries(&store).await, ["dlv-1"]);
    assert_eq!(log(&store).await, ["action.requested"]);
    assert!(run(&store, "run-a").await.effects, "it is not started again");
}

pub(crate) async fn a_question_waits_and_acts_once_when_it_is_allowed(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    for _ in 0..2 {
        assert_eq!(store.commit(asks(&first, "q")).await.unwrap(), Requested::Pending);
    }
    let expected = ApprovalRow {
        workspace_id: W.to_owned(),
        run_id: "run-a".to_owned(),
        attempt: 1,
        conversation_id: Some("c".to_owned()),
        request: question("q", ApprovalKind::Call),
        status: ApprovalStatus::Pending,
        created_at: 1_500,
        answered_at: None,
        answered_by: None,
        delivered: None,
    };
    assert_eq!(approval(&store, "q").await, expected);
    assert!(run(&store, "run-a").await.effects);
    assert_eq!(deliveries(&store).await, [""; 0]);
    let Answered::New(row) = store.commit(answers("q", Decision::Allow)).await.unwrap() else {
        panic!("not answered")
    };
    let delivered = row.delivered.as_ref().map(|delivered| delivered.status);
    assert_eq!((row.status, row.answered_at), (ApprovalStatus::Allowed, Some(1_600)));
    assert_eq!(
        (row.answered_by.as_deref(), delivered),
        (Some("admin"), Some(DeliveryStatus::Pending))
    );
    assert_eq!(approval(&store, "q").await, *row);
    for (decision, by) in [(Decision::Allow, "other"), (Decision::Deny, "other")] {
        let again = AnswerApproval { by: by.to_owned(), ..answers("q", decision) };
        let expected = match decision {
            Decision::Allow => Answered::Repeated(row.clone()),
            Decision::Deny => Answered::Conflict(row.clone()),
        };
        assert_eq!(store.commit(again).await.unwrap(), expected);
    }
    assert_eq!(deliveries(&store).await, ["dlv-q"]);
    assert_eq!(log(&store).await, ["approval.requested", "approval.allowed"]);
}

pub(crate) async fn of_many_answers_at_once_one_is_taken(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    store.commit(asks(&first, "q")).await.unwrap();
    let all = (0..32).map(|n| {
        let decision = if n % 2 == 0 { Decision::Deny } else { Decision::Allow };
        store.commit(answers("q", decision))
    });
    let all = futures_util::future::join_all(all).await;
    let new = all.iter().filter(|answer| matches!(answer, Ok(Answered::New(_)))).count();
    assert_eq!(new, 1);
    let sent = usize::from(status_of(&store, "q").await == ApprovalStatus::Allowed);
    assert_eq!(deliveries(&store).await.len(), sent);
}

pub(crate) async fn a_denied_question_does_nothing(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    store.commit(asks(&first, "q")).await.unwrap();
    let denied = store.commit(answers("q", Decision::Deny)).await.unwrap();
    assert!(matches!(denied, Answered::New(row) if row.status == ApprovalStatus::Denied));
    let late = store.commit(answers("q", Decision::Allow)).await.unwrap();
    assert!(matches!(late, Answered::Conflict(row) if row.status == ApprovalStatus::Denied));
    assert_eq!(deliveries(&store).await, [""; 0]);
    assert_eq!(log(&store).await, ["approval.requested", "approval.denied"]);
}

pub(crate) async fn an_answer_needs_the_nonce_and_the_workspace(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    store.commit(asks(&first, "q")).await.unwrap();
    let guess = AnswerApproval { nonce: "nonce".to_owned(), ..answers("q", Decision::Allow) };
    assert_eq!(store.commit(guess).await.unwrap(), Answered::WrongNonce);
    let elsewhere =
        AnswerApproval { workspace_id: "other".to_owned(), ..answers("q", Decision::Allow) };
    assert_eq!(store.commit(elsewhere).await.unwrap(), Answered::NotFound);
    let unknown = store.commit(answers("x", Decision::Allow)).await.unwrap();
    assert_eq!(unknown, Answered::NotFound);
    assert_eq!(status_of(&store, "q").await, ApprovalStatus::Pending);
}

pub(crate) async fn questions_expire_in_order_and_cannot_be_answered_then(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    for (name, expires_at) in [("late", 9_000), ("early", 5_000), ("never", 99_000)] {
        let mut asked = question(name, ApprovalKind::Call);
        asked.expires_at = expires_at;
        let command = RequestAction { wanted: Wanted::Ask(Box::new(asked)), ..asks(&first, name) };
        store.commit(command).await.unwrap();
    }
    assert_eq!(store.read(|tx| next_due(tx)).await.unwrap(), Some(5_000));
    let expire = |due_ms| ExpireApprovals { due_ms, limit: 100, now_ms: due_ms };
    assert_eq!(store.commit(expire(4_999)).await.unwrap(), []);
    let expired = store.commit(expire(5_000)).await.unwrap();
    assert_eq!(expired.len(), 1);
    assert_eq!(approval(&store, "early").await, expired[0]);
    assert_eq!(expired[0].status, ApprovalStatus::Expired);
    let allow = store.commit(answers("early", Decision::Allow)).await.unwrap();
    assert!(matches!(allow, Answered::Conflict(row) if row.status == ApprovalStatus::Expired));
    // An answer that comes before the host has noticed is too late as well.
    let late = AnswerApproval { now_ms: 9_000, ..answers("late", Decision::Allow) };
    let late = store.commit(late).await.unwrap();
    assert!(matches!(late, Answered::Conflict(row) if row.status == ApprovalStatus::Expired));
    assert_eq!(store.commit(expire(9_000)).await.unwrap(), []);
    assert_eq!(store.read(|tx| next_due(tx)).await.unwrap(), Some(99_000));
    assert_eq!(deliveries(&store).await, [""; 0]);
    assert_eq!(log(&store).await[3..], ["approval.expired", "approval.expired"]);
}

pub(crate) async fn a_call_is_over_with_its_run_and_a_result_is_not(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    store.commit(asks(&first, "call")).await.unwrap();
    let results = ApplyResults {
        chunk: Some(result_chunk(1, "action.requested", "{}")),
        approvals: vec![question("result", ApprovalKind::Result)],
        effects: true,
        ..results(&first)
    };
    apply(&store, results).await;
    assert_eq!(status_of(&store, "result").await, ApprovalStatus::Pending);
    apply(&store, completed(&first, 2)).await;
    assert_eq!(status_of(&store, "call").await, ApprovalStatus::Cancelled);
    let late = store.commit(answers("call", Decision::Allow)).await.unwrap();
    assert!(matches!(late, Answered::Conflict(row) if row.status == ApprovalStatus::Cancelled));
    let allowed = store.commit(answers("result", Decision::Allow)).await.unwrap();
    assert!(matches!(allowed, Answered::New(_)));
    assert_eq!(deliveries(&store).await, ["dlv-result"]);
    assert_eq!(store.commit(asks(&first, "z")).await.unwrap(), Requested::Stale);
    let expected =
        ["approval.requested", "approval.requested", "approval.cancelled", "approval.allowed"];
    assert_eq!(log(&store).await, expected);
}

pub(crate) async fn cancelling_a_run_gives_up_what_it_asked(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    store.commit(asks(&first, "q")).await.unwrap();
    let cancel = CancelQueued {
        workspace_id: W.to_owned(),
        run_id: "run-a".to_owned(),
        epoch_now: 1,
        now_ms: 3_000,
    };
    store.commit(cancel).await.unwrap();
    assert_eq!(status(&store, "run-a").await, RunStatus::Running);
    assert_eq!(status_of(&store, "q").await, ApprovalStatus::Cancelled);
    assert_eq!(store.commit(asks(&first, "z")).await.unwrap(), Requested::Stale);
    let terminal = Terminal { status: RunStatus::Cancelled, error: None, usage: None };
    apply(&store, ApplyResults { terminal: Some(terminal), ..completed(&first, 1) }).await;
    assert_eq!(log(&store).await, ["approval.requested", "approval.cancelled"]);
}

pub(crate) async fn a_call_that_is_given_up_takes_its_question_back(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    store.commit(asks(&first, "q")).await.unwrap();
    let (workspace_id, approval_id) = (W.to_owned(), "q".to_owned());
    let give_up = CancelApproval { workspace_id, approval_id, now_ms: 1_700 };
    assert!(store.commit(give_up.clone()).await.unwrap());
    assert!(!store.commit(give_up.clone()).await.unwrap());
    assert_eq!(status_of(&store, "q").await, ApprovalStatus::Cancelled);
    store.commit(asks(&first, "r")).await.unwrap();
    store.commit(answers("r", Decision::Allow)).await.unwrap();
    let late = CancelApproval { approval_id: "r".to_owned(), ..give_up };
    assert!(!store.commit(late).await.unwrap(), "what is decided stays so");
    assert_eq!(deliveries(&store).await, ["dlv-r"]);
}

pub(crate) async fn a_run_asks_only_so_much_at_once(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    for name in ["1", "2", "3"] {
        assert_eq!(store.commit(asks(&first, name)).await.unwrap(), Requested::Pending);
    }
    assert_eq!(store.commit(asks(&first, "4")).await.unwrap(), Requested::TooMany);
    let results = ApplyResults {
        chunk: Some(result_chunk(1, "action.requested", "{}")),
        approvals: vec![question("5", ApprovalKind::Result)],
        approvals_pending_max: 3,
        ..results(&first)
    };
    apply(&store, results).await;
    let notes = store.read(|tx| reads::runs::diagnostics(tx, "run-a", 9)).await.unwrap();
    assert_eq!(notes[0].message, "more than 3 approvals of this run are pending");
    store.commit(answers("1", Decision::Deny)).await.unwrap();
    assert_eq!(store.commit(asks(&first, "4")).await.unwrap(), Requested::Pending);
}

pub(crate) async fn a_thousand_questions_are_paged_and_filtered(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    let second = accept(&store, event("d", "b")).await;
    let ask = |n: usize| {
        let run = if usize::is_multiple_of(n, 2) { &first } else { &second };
        let command = RequestAction { pending_max: 1_000, ..asks(run, &format!("q{n:04}")) };
        store.commit(command)
    };
    futures_util::future::join_all((0..1_000).map(ask)).await;
    store.commit(answers("q0998", Decision::Deny)).await.unwrap();
    let list = async |filter: ApprovalFilter, before: Option<&str>, limit| {
        let before = before.map(str::to_owned);
        let read = store.read(move |tx| page(tx, W, &filter, before.as_deref(), limit)).await;
        read.unwrap().into_iter().map(|row| row.request.approval_id).collect::<Vec<_>>()
    };
    let status = |status| ApprovalFilter { status: Some(status), run_id: None };
    assert_eq!(list(ApprovalFilter::default(), None, 2).await, ["q0999", "q0998"]);
    assert_eq!(list(status(ApprovalStatus::Pending), None, 2).await, ["q0999", "q0997"]);
    assert_eq!(list(status(ApprovalStatus::Pending), Some("q0001"), 9).await, ["q0000"]);
    assert_eq!(list(status(ApprovalStatus::Denied), None, 9).await, ["q0998"]);
    let run_id = Some("run-a".to_owned());
    let of_run = ApprovalFilter { status: Some(ApprovalStatus::Pending), run_id };
    assert_eq!(list(of_run.clone(), None, 1_000).await.len(), 499);
    let foreign = store.read(move |tx| page(tx, "other", &of_run, None, 9)).await.unwrap();
    assert_eq!(foreign, []);
}

/// A question that a call waits for.
fn call_asks(run: &RunRow, name: &str) -> RequestAction {
    let record = record("platform.request_action", "ok", 1_500);
    let call = Some(OpenCall { call_id: format!("call-{name}"), record });
    RequestAction { call, ..asks(run, name) }
}

/// The codes of all records, oldest first, and how long each call took.
async fn recorded(store: &Store) -> Vec<(String, i64)> {
    let filter = AuditFilter::default();
    let page = store.read(move |tx| reads::audit::page(tx, W, &filter, None, 99)).await.unwrap();
    let told = page.entries.into_iter().rev().map(|it| (it.record.code, it.record.duration_us));
    told.collect()
}

pub(crate) async fn a_call_that_asked_is_open_until_it_has_its_one_record(ground: Ground) {
    let store = ground.open();
    let first = accept(&store, event("c", "a")).await;
    for name in ["q", "q", "r"] {
        let asked = store.commit(call_asks(&first, name)).await.unwrap();
        assert_eq!(asked, Requested::Pending);
    }
    let other_attempt = RunRow { attempt: 2, ..first.clone() };
    let refused = store.commit(call_asks(&other_attempt, "s")).await.unwrap();
    assert_eq!(refused, Requested::Stale, "nothing was done: whoever is refused records it");
    assert_eq!(recorded(&store).await, []);
    let ended = AuditBatch {
        workspace_id: W.to_owned(),
        run_id: Some("run-a".to_owned()),
        records: vec![record("platform.request_action", "unauthorized", 1_500)],
        closes: vec!["call-q".to_owned()],
    };
    store.commit(RecordAudit { batches: vec![ended] }).await.unwrap();
    let unauthorized = ("unauthorized".to_owned(), 56);
    assert_eq!(recorded(&store).await, std::slice::from_ref(&unauthorized));
    let interrupted = RecordInterrupted { calls_max: 1, now_ms: 1_502 };
    assert!(store.commit(interrupted.clone()).await.unwrap());
    assert!(!store.read(|tx| reads::audit::has_open(tx)).await.unwrap());
    assert!(!store.commit(interrupted).await.unwrap());
    let failed = ("runtime_error".to_owned(), 2_000);
    assert_eq!(recorded(&store).await, [unauthorized, failed]);
}
