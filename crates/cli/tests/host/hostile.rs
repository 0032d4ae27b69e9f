//! Runners that break: each run ends with the right code, and those beside it do not notice.
//!
//! Invariant: expectations are DESIGN §3 ("a runner cannot hurt the host") and the codes of CONTRACT §2.

use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus::{Cancelled, Completed, Failed, Timeout};
use greenroom_testkit::wait::wait_for;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What a host may have in memory, whatever a runner writes.
const PEAK_BYTES_MAX: u64 = 200 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_the_answer_is_told_and_the_next_run_is_served() {
    let stage = Stage::open("").await;
    let run = stage.play(json!([["exit", 3]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.crashed"));
    let error = run.error.clone().unwrap();
    assert_eq!(error.message, "runner `puppet` exited with code 3");
    assert!(error.retryable);
    assert_eq!(stage.answers_of(&run).await, [""; 0]);
    let next = stage.play(json!([["message", "back"], ["end"]])).await;
    assert_eq!(outcome(&next), (Completed, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_a_crash_is_in_the_transcript() {
    let stage = Stage::open("").await;
    let run = stage.play(json!([["say", "half an "], ["say", "answer"], ["exit", 3]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.crashed"));
    assert_eq!(stage.answers_of(&run).await, ["half an answer"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_takes_the_runs_of_its_process_and_no_others() {
    let more = "[agents.hanging]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\nconfig = { mode = \"hang\" }";
    let stage = Stage::open(more).await;
    let elsewhere = stage.send(&event("hanging", "elsewhere", "x")).await;
    let beside = stage.start_waiting().await;
    assert_eq!(outcome(&stage.play(json!([["exit", 3]])).await), (Failed, "runner.crashed"));
    assert_eq!(outcome(&stage.api.ended_run(&beside).await), (Failed, "runner.crashed"));
    assert_eq!(stage.api.answers("bystander").await, ["waiting "]);
    assert_eq!(outcome(&stage.cancel(&elsewhere).await), (Cancelled, "cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_come_while_a_process_is_replaced_wait_for_its_successor() {
    let stage = Stage::open("").await;
    stage.api.ready_runner("puppet").await;
    for round in 0..4 {
        let mut runs = JoinSet::new();
        for number in 0..60 {
            let steps = if number == 20 { json!([["exit", 3]]) } else { json!([["end"]]) };
            let event = event("puppet", &format!("c-{round}-{number}"), &steps.to_string());
            let api = stage.api.clone();
            runs.spawn(async move {
                let run_id = api.send_event(&event).await.run_id.unwrap();
                api.ended_run(&run_id).await
            });
        }
        for run in runs.join_all().await {
            let expected = [(Completed, ""), (Failed, "runner.crashed")];
            assert!(expected.contains(&outcome(&run)), "{run:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_run_times_out_and_its_process_is_replaced_beside_the_others() {
    let more = "[agents.brief]\nrunner = \"plugin:test/puppet/main\"\nevents = []\ndeadline_s = 1";
    let stage = Stage::open(more).await;
    let pid = stage.api.ready_runner("puppet").await["pid"].clone();
    let beside = stage.start_waiting().await;
    let hanging = json!([["say", "so far"], ["hang"]]).to_string();
    let run_id = stage.send(&event("brief", "hanging", &hanging)).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Timeout, "deadline_exceeded"));
    assert_eq!(stage.api.answers("hanging").await, ["so far"]);
    let terminal = stage.api.results(&run_id).await.pop().unwrap();
    assert_eq!(
        (terminal.kind.as_str(), &terminal.data["code"]),
        ("run.failed", &json!("deadline_exceeded"))
    );
    stage.replaced(&pid).await;
    let fresh = stage.play(json!([["message", "fresh"], ["end"]])).await;
    assert_eq!(outcome(&fresh), (Completed, ""));
    stage.finish_waiting(&beside).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ignores_its_cancel_is_over_at_once_and_its_process_goes_after_the_grace() {
    let stage = Stage::open("").await;
    let pid = stage.api.ready_runner("puppet").await["pid"].clone();
    let beside = stage.start_waiting().await;
    let stubborn =
        stage.start("stubborn", json!([["say", "never "], ["mark", "hangs"], ["hang"]])).await;
    stage.marked("hangs").await;
    let asked = Instant::now();
    assert_eq!(outcome(&stage.cancel(&stubborn).await), (Cancelled, "cancelled"));
    assert!(asked.elapsed() < Duration::from_millis(900), "not at once: {:?}", asked.elapsed());
    assert_eq!(stage.api.answers("stubborn").await, ["never "]);
    stage.replaced(&pid).await;
    stage.finish_waiting(&beside).await;
    let pid = pid.as_u64().unwrap();
    wait_for("the end of the old process", PATIENCE, async || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_1_gb_overflows_its_run_and_not_the_host() {
    let stage = Stage::open("").await;
    let beside = stage.start_waiting().await;
    let run = stage.play(json!([["flood", 1000], ["end"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.overflow"));
    stage.finish_waiting(&beside).await;
    let peak = stage.host.memory().peak_bytes;
    assert!(peak < PEAK_BYTES_MAX, "{} MB", peak >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_100_mb_fails_its_run_and_is_never_held() {
    let stage = Stage::open("").await;
    let beside = stage.start_waiting().await;
    let run = stage.play(json!([["long_line", 100], ["hang"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.protocol_error"));
    stage.finish_waiting(&beside).await;
    let peak = stage.host.memory().peak_bytes;
    assert!(peak < PEAK_BYTES_MAX, "{} MB", peak >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_not_the_protocol_fail_the_run_they_name_and_no_other() {
    let stage = Stage::open("").await;
    let lines = [
        "{\"jsonrpc\":\"2.0\",\"method\":\"run.result\",\"params\":{\"run_id\":\"RUN\",\"x\":\"\u{ff}\u{fe}\"}}",
        "{\"run_id\":\"RUN\", broken",
        "{\"jsonrpc\":\"2.0\",\"method\":\"run.result\",\"params\":{\"run_id\":\"RUN\"}}",
    ];
    let beside = stage.start_waiting().await;
    for line in lines {
        let run = stage.play(json!([["say", "before"], ["line", line], ["end"]])).await;
        assert_eq!(outcome(&run), (Failed, "runner.protocol_error"), "{line}");
        assert_eq!(stage.answers_of(&run).await, ["before"], "{line}");
    }
    stage.finish_waiting(&beside).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn well_formed_messages_that_make_no_sense_are_no_reason_to_fail() {
    let stage = Stage::open("").await;
    let lines = [
        r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"who","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"no.such.notification","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"request.cancel","params":{"request_id":"none"}}"#,
        r#"{"jsonrpc":"2.0","id":"c1","method":"no.such.method","params":{"run_id":"RUN"}}"#,
        "",
    ];
    for line in lines {
        let run = stage.play(json!([["line", line], ["message", "good"], ["end"]])).await;
        assert_eq!(outcome(&run), (Completed, ""), "{line}");
        assert_eq!(stage.answers_of(&run).await, ["good"], "{line}");
    }
    let starts = stage.wire_log().iter().filter(|line| *line == "start").count();
    assert_eq!(starts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_that_names_no_run_fails_the_runs_of_its_process_only() {
    let more = "[agents.hanging]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\nconfig = { mode = \"hang\" }";
    let stage = Stage::open(more).await;
    let elsewhere = stage.send(&event("hanging", "elsewhere", "x")).await;
    let beside = stage.start_waiting().await;
    let run = stage.play(json!([["line", "what is this"], ["hang"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.protocol_error"));
    let beside = stage.api.ended_run(&beside).await;
    assert_eq!(outcome(&beside), (Failed, "runner.protocol_error"));
    assert_eq!(outcome(&stage.cancel(&elsewhere).await), (Cancelled, "cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_stopped_and_leaves_nothing() {
    let mut stage = Stage::open("").await;
    let run = stage.play(json!([["fork_bomb"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.crashed"));
    let message = "runner `puppet` was stopped: it had more than 64 processes (`processes`)";
    assert_eq!(run.error.unwrap().message, message);
    let next = stage.play(json!([["message", "back"], ["end"]])).await;
    assert_eq!(outcome(&next), (Completed, ""));
    assert!(stage.host.stop().await.success());
    assert_eq!(stage.host.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn children_of_a_run_end_with_its_process() {
    let mut stage = Stage::open("").await;
    let run = stage.play(json!([["children", 3], ["exit", 3]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.crashed"));
    stage.host.kill();
    wait_for("the end of everything", PATIENCE, async || {
        stage.host.leftovers().is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_closes_its_output_has_crashed() {
    let stage = Stage::open("").await;
    let pid = stage.api.ready_runner("puppet").await["pid"].clone();
    let run = stage.play(json!([["say", "bye"], ["close", 1], ["hang"]])).await;
    assert_eq!(outcome(&run), (Failed, "runner.crashed"));
    assert_eq!(stage.answers_of(&run).await, ["bye"]);
    stage.replaced(&pid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_closes_its_input_is_replaced() {
    let stage = Stage::open("").await;
    let pid = stage.api.ready_runner("puppet").await["pid"].clone();
    let deaf = stage.start("deaf", json!([["close", 0], ["mark", "deaf"], ["hang"]])).await;
    stage.marked("deaf").await;
    // Whatever becomes of runs that nobody reads, they end, and a process that listens takes over.
    let lost = stage.start("lost", json!([["message", "heard"], ["end"]])).await;
    stage.cancel(&deaf).await;
    stage.replaced(&pid).await;
    let lost = stage.api.ended_run(&lost).await;
    assert!([(Failed, "runner.crashed"), (Completed, "")].contains(&outcome(&lost)), "{lost:?}");
    let heard = stage.play(json!([["message", "heard"], ["end"]])).await;
    assert_eq!(outcome(&heard), (Completed, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_on_stderr_disturbs_nobody() {
    let stage = Stage::open("").await;
    let run = stage.play(json!([["stderr", 1000], ["message", "done"], ["end"]])).await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert!(stage.host.log().len() < 2_000_000, "{} bytes of log", stage.host.log().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_never_starts_is_tried_less_and_less_often_and_its_runs_fail_soon() {
    let more = r#"
[runners.broken]
command = ["python3", "-c", "open('wire.log', 'a').write('start\\n'); raise SystemExit('cannot find my model')"]
dir = "other"
plugin = "test/broken"
[agents.broken]
runner = "plugin:test/broken/main"
events = []
"#;
    let stage = Stage::open_with("runner_start_s = 2", more).await;
    let beside = stage.start_waiting().await;
    let started = Instant::now();
    let run_id = stage.send(&event("broken", "c", "x")).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Failed, "runner.unavailable"));
    let message = run.error.unwrap().message;
    // What the process said on its stderr is for operators.
    assert_eq!(message, "runner `broken` exited with code 1");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let restarts = wait_for("six starts", PATIENCE, async || {
        stage.api.runner("broken").await["restarts"].as_u64().filter(|restarts| *restarts >= 6)
    });
    restarts.await;
    // The pauses double from 0.1 s: before the sixth start there were 0.1 + 0.2 + 0.4 + 0.8 + 1.6 s.
    assert!(started.elapsed() > Duration::from_secs(2), "{:?}", started.elapsed());
    let log = std::fs::read_to_string(stage.host.folder().join("other/wire.log")).unwrap();
    assert!((6..=7).contains(&log.lines().count()), "{log}");
    stage.finish_waiting(&beside).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_whose_command_does_not_exist_is_unavailable() {
    let more = r#"
[runners.missing]
command = ["no-such-program"]
dir = "other"
plugin = "test/missing"
[agents.missing]
runner = "plugin:test/missing/main"
events = []
[agents.nobody]
runner = "plugin:test/nobody/main"
events = []
"#;
    let stage = Stage::open_with("runner_start_s = 1", more).await;
    let run_id = stage.send(&event("missing", "c", "x")).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Failed, "runner.unavailable"));
    let message = run.error.unwrap().message;
    assert!(message.contains("`no-such-program` was not found"), "{message}");
    let run_id = stage.send(&event("nobody", "c2", "x")).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Failed, "runner.unavailable"));
    let run = stage.play(json!([["message", "here"], ["end"]])).await;
    assert_eq!(outcome(&run), (Completed, ""));
}
