//! The end of a host in order: what can finish does, the rest is closed or handed on, nothing stays behind.

use crate::PROGRAM;
use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus::{Completed, Failed};
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

const RETRYING: &str = "[agents.retrying]\nrunner = \"plugin:test/puppet/main\"\nevents = []\non_interrupt = \"retry\"\n";

/// Asks the host to stop and waits until it has heard.
async fn terminate(stage: &Stage) {
    let pid = i32::try_from(stage.host.pid()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    wait_for("the stop", PATIENCE, async || stage.host.log().contains("stopping").then_some(()))
        .await;
}

/// The host has ended in order and took everything with it.
async fn gone(stage: &mut Stage) {
    assert!(stage.host.died().await.success(), "{}", stage.host.log());
    assert!(!stage.host.data().join("host.json").exists());
    assert_eq!(stage.host.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_host_lets_its_runs_finish() {
    let mut stage = Stage::open("").await;
    let run_id = stage.start_waiting().await;
    terminate(&stage).await;
    stage.pass("go");
    gone(&mut stage).await;
    stage.host.start_again().await;
    assert_eq!(outcome(&stage.api.run(&run_id).await), (Completed, ""));
    assert_eq!(stage.api.answers("bystander").await, ["waiting done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_the_end_of_a_run_that_finishes_while_the_host_stops() {
    let mut stage = Stage::open("").await;
    let run_id = stage.start_waiting().await;
    let request = Request::get(format!("/v1/runs/{run_id}/results"));
    let stream = stage.api.send(request.header("accept", "text/event-stream")).await;
    let stream = stream.unwrap_or_else(|failure| panic!("{failure:?}"));
    terminate(&stage).await;
    stage.pass("go");
    let seen = String::from_utf8(stream.body().await.unwrap()).unwrap();
    assert!(seen.contains("event: run.completed"), "{seen}");
    gone(&mut stage).await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
async fn so_does_whoever_follows_it_on_the_command_line() {
    let mut stage = Stage::open("").await;
    let run_id = stage.start_waiting().await;
    let mut follower = Command::new(PROGRAM);
    follower.args(["runs", "follow", &run_id, "--data"]).arg(stage.host.data());
    let mut follower = follower.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut seen = [0; 7];
    follower.stdout.as_mut().unwrap().read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"waiting");
    terminate(&stage).await;
    stage.pass("go");
    gone(&mut stage).await;
    let end = follower.wait_with_output().await.unwrap();
    assert_eq!((end.status.code(), end.stdout.as_slice()), (Some(0), b" done\n".as_slice()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_stopping_host_at_once() {
    let mut stage = Stage::open_with("shutdown_grace_s = 600", "").await;
    let run_id = stage.start_waiting().await;
    terminate(&stage).await;
    assert!(stage.host.log().contains("600 s"), "{}", stage.host.log());
    terminate(&stage).await;
    assert_eq!(stage.host.died().await.code(), Some(1), "{}", stage.host.log());
    stage.host.start_again().await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Failed, "host.interrupted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_finish_within_the_grace_is_closed_or_tried_again() {
    let limits = "cancel_grace_s = 1\nshutdown_grace_s = 1";
    let mut stage = Stage::open_with(limits, RETRYING).await;
    let steps =
        |mark: &str| json!([["say", mark], ["mark", mark], ["gate", "go"], ["end"]]).to_string();
    let failing = stage.send(&event("puppet", "failing", &steps("failing"))).await;
    let queued = stage.send(&event("puppet", "failing", &steps("queued"))).await;
    let retrying = stage.send(&event("retrying", "retrying", &steps("retrying"))).await;
    stage.marked("failing").await;
    stage.marked("retrying").await;
    let asked = Instant::now();
    terminate(&stage).await;
    gone(&mut stage).await;
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    stage.pass("go");
    stage.host.start_again().await;
    let run = stage.api.ended_run(&failing).await;
    assert_eq!(outcome(&run), (Failed, "host.interrupted"));
    assert!(run.error.unwrap().retryable);
    let run = stage.api.ended_run(&retrying).await;
    assert_eq!((outcome(&run), run.attempt), ((Completed, ""), 2));
    assert_eq!(stage.api.answers("retrying").await, ["retrying"]);
    assert_eq!(outcome(&stage.api.ended_run(&queued).await).0, Completed);
    assert_eq!(stage.api.answers("failing").await, ["failing", "queued"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_takes_the_children_of_runners_along() {
    let limits = "cancel_grace_s = 1\nshutdown_grace_s = 0";
    let mut stage = Stage::open_with(limits, "").await;
    stage.start("c", json!([["children", 3], ["mark", "on"], ["hang"]])).await;
    stage.marked("on").await;
    terminate(&stage).await;
    gone(&mut stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_host_takes_no_new_events() {
    let mut stage = Stage::open("").await;
    let run_id = stage.start_waiting().await;
    let api = stage.api.clone();
    terminate(&stage).await;
    let refused = api.post_event(&event("echo", "late", "x")).await;
    assert!(refused.is_err_and(|failure| failure.is_transient()));
    stage.pass("go");
    gone(&mut stage).await;
    stage.host.start_again().await;
    assert_eq!(outcome(&api.run(&run_id).await), (Completed, ""));
    assert_eq!(api.runs().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_the_moment_the_host_is_ready_is_heard() {
    let mut stage = Stage::open("").await;
    for _ in 0..5 {
        let pid = i32::try_from(stage.host.pid()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
        assert_eq!(stage.api.get("/readyz").await, json!({"status": "ready"}));
        // Ends in order, whether it has dealt with the first signal or not.
        assert!(stage.host.stop().await.success(), "{}", stage.host.log());
        stage.host.start_again().await;
    }
}
