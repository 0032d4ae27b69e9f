//! External harnesses, with a fake one that does every odd thing; `tests/outside/harness` drives real ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod projection;
mod stage;
mod wall;
mod workspaces;

use greenroom_protocol::RunStatus;
use serde_json::json;
use stage::Stage;

fn code(run: &greenroom_protocol::RunView) -> (RunStatus, &str) {
    (run.status, run.error.as_ref().map_or("", |error| error.code.as_str()))
}

#[tokio::test]
async fn messages_plans_and_thoughts_of_a_harness_are_results() {
    let stage = Stage::open("", "", "").await;
    let run = stage.play("c", "plan").await;
    assert_eq!(code(&run), (RunStatus::Completed, ""), "{}", stage.host.log());
    let plan = stage.data(&run.run_id, "plan.updated").await;
    let steps = json!([{"content": "look", "status": "completed", "priority": "high"},
        {"content": "write", "status": "pending", "priority": "medium"}]);
    assert_eq!(plan, [json!({"entries": steps})]);
    let message = &stage.data(&run.run_id, "message.completed").await[0]["message"];
    let segments = json!([{"type": "reasoning", "text": "I think"},
        {"type": "text", "text": "planned"}]);
    assert_eq!((&message["content"], &message["segments"]), (&json!("planned"), &segments));
    assert_eq!(run.extra["diagnostics"], json!([]));
}

#[tokio::test]
async fn a_session_goes_on_and_conversations_are_apart() {
    let stage = Stage::open("", "", "").await;
    assert_eq!(stage.ask("c", "one").await, "one");
    assert_eq!(stage.ask("c", "two").await, "one | two");
    assert_eq!(stage.ask("d", "three").await, "three");
}

#[tokio::test]
async fn a_person_sees_what_will_happen_and_decides_once() {
    let stage = Stage::open("", "", "harness = { execute = \"ask\" }").await;
    for (decision, chosen, end) in
        [("allow", "allow_once!", "result"), ("deny", "reject_once!", "error")]
    {
        let run_id = stage.send("c", "ask execute").await;
        let approval = stage.asked(&run_id).await;
        assert_eq!(approval["action"], "harness.execute");
        assert_eq!(approval["target"]["title"], "do execute");
        let fields = json!([{"name": "command", "value": "rm -r 'a b'"},
            {"name": "/project/x", "value": "two", "before": "one"}]);
        assert_eq!(approval["subject"]["fields"], fields);
        stage.answer(&approval, decision).await;
        let run = stage.api.ended_run(&run_id).await;
        assert_eq!(code(&run), (RunStatus::Completed, ""));
        assert_eq!(stage.text(&run_id).await, chosen);
        let calls = stage.data(&run_id, "tool.call.completed").await;
        assert_eq!((calls.len(), calls[0][end].is_null()), (1, false));
        let changes = json!([{"path": "/project/x", "old_text": "one", "new_text": "two"}]);
        let details =
            if end == "result" { &calls[0]["result"] } else { &calls[0]["error"]["details"] };
        assert_eq!(details["changes"], changes);
        assert_eq!(stage.approvals(&run_id).await.len(), 1);
    }
}

#[tokio::test]
async fn the_grant_decides_by_kind_without_a_question() {
    let grant = "harness = { edit = \"always\", fetch = \"never\" }";
    let stage = Stage::open("", "", grant).await;
    for (kind, chosen) in
        [("edit", "allow_once!"), ("fetch", "reject_once!"), ("read", "allow_once!")]
    {
        let run = stage.play("c", &format!("ask {kind}")).await;
        assert_eq!(stage.text(&run.run_id).await, chosen, "{kind}");
        assert_eq!(stage.approvals(&run.run_id).await.len(), 0);
        let outcome = if kind == "fetch" { "unauthorized" } else { "ok" };
        assert_eq!(stage.audited(&run.run_id, "harness.permission").await, outcome, "{kind}");
    }
}

#[tokio::test]
async fn garbage_is_skipped() {
    let stage = Stage::open("", "", "").await;
    assert_eq!(stage.ask("c", "garbage").await, "still here");
    assert_eq!(stage.ask("c", "two").await, "garbage | two");
}

#[tokio::test]
async fn after_a_crash_the_next_message_loads_the_session() {
    let stage = Stage::open("", "", "").await;
    stage.ask("c", "one").await;
    let run = stage.play("c", "crash").await;
    assert_eq!(code(&run), (RunStatus::Failed, "harness.exited"));
    let error = run.error.unwrap();
    assert!(error.retryable && error.message.contains("the last words"), "{}", error.message);
    assert_eq!(stage.text(&run.run_id).await, "before the crash");
    assert_eq!(stage.ask("c", "two").await, "one | crash | two");
}

#[tokio::test]
async fn a_message_that_finds_a_dying_session_is_answered_by_a_new_process() {
    let stage = Stage::open("", "", "").await;
    assert_eq!(stage.ask("c", "doomed").await, "doomed");
    assert_eq!(stage.ask("c", "two").await, "doomed | two");
}

#[tokio::test]
async fn a_cancelled_run_ends_soon_whether_the_harness_listens_or_not() {
    let stage = Stage::open("", "", "").await;
    stage.ask("c", "one").await;
    for (word, said) in [("wait", "waiting"), ("hang", "hanging")] {
        let run_id = stage.send("c", word).await;
        stage.said(&run_id, said).await;
        let cancel = format!("/v1/runs/{run_id}/cancel");
        stage.api.json(greenroom_testkit::http::Request::post(cancel, "")).await.unwrap();
        let run = stage.api.ended_run(&run_id).await;
        assert_eq!(code(&run), (RunStatus::Cancelled, "cancelled"));
    }
    assert_eq!(stage.ask("c", "two").await, "one | wait | hang | two");
}

#[tokio::test]
async fn what_a_harness_left_behind_ends_with_its_session() {
    let stage = Stage::open("idle_s = 1", "", "").await;
    let argument = stage.ask("c", "orphan").await;
    assert!(stage.is_argument(&argument), "it has started");
    stage.gone(&argument).await;
    assert_eq!(stage.ask("c", "two").await, "orphan | two");
}

#[tokio::test]
async fn another_conversation_takes_the_room_of_an_idle_session() {
    let stage = Stage::open("open = 1", "", "").await;
    assert_eq!(stage.ask("c", "one").await, "one");
    assert_eq!(stage.ask("d", "two").await, "two");
    assert_eq!(stage.ask("c", "three").await, "one | three");
}

#[tokio::test]
async fn a_session_that_cannot_be_loaded_is_replaced_and_the_user_is_told() {
    let stage = Stage::open("idle_s = 1", "", "").await;
    stage.ask("c", "remember the whale").await;
    let run = stage.play("c", "forget").await;
    assert_eq!(stage.text(&run.run_id).await, "forgotten");
    let usage = run.usage.unwrap();
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(3), &json!(4)));
    let run = stage.play("c", "crash").await;
    assert_eq!(code(&run), (RunStatus::Failed, "harness.exited"));
    std::fs::remove_file(sessions_file(&stage)).unwrap();
    let text = stage.ask("c", "two").await;
    assert!(text.starts_with("fake could not load the earlier session."), "{text}");
    assert!(text.contains("user: remember the whale") && text.ends_with("; two"), "{text}");
}

fn sessions_file(stage: &Stage) -> std::path::PathBuf {
    let workspaces = stage.host.data().join("harness/fake/workspaces");
    let one = std::fs::read_dir(workspaces).unwrap().next().unwrap().unwrap();
    one.path().join("home/sessions.json")
}

#[tokio::test]
async fn reasons_to_stop_are_ends_of_the_run() {
    let stage = Stage::open("", "", "").await;
    for (reason, expected) in [
        ("refusal", (RunStatus::Failed, "model.refused")),
        ("max_turn_requests", (RunStatus::Failed, "loop.max_rounds")),
        ("max_tokens", (RunStatus::Completed, "")),
        ("end_turn", (RunStatus::Completed, "")),
    ] {
        let run = stage.play("c", &format!("end {reason}")).await;
        assert_eq!(code(&run), expected, "{reason}");
        if reason == "max_tokens" {
            let end = &stage.data(&run.run_id, "run.completed").await[0];
            assert_eq!(end["finish_reason"], "length");
        }
    }
}

#[tokio::test]
async fn after_a_power_failure_the_session_goes_on() {
    let mut stage = Stage::open("", "", "").await;
    stage.ask("c", "one").await;
    stage.host.kill();
    stage.host.start_again().await;
    assert_eq!(stage.ask("c", "two").await, "one | two");
    stage.host.stop().await;
    assert_eq!(stage.host.leftovers(), [""; 0]);
}
