//! The delay between restarts grows.

use crate::kit::{Kit, eventually, wire};
use greenroom_runtime::{Limits, RunnerStatus};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_crashes_at_start_is_tried_less_and_less() {
    let kit = Kit::new();
    let mut spec = kit.spec();
    spec.env.insert("MODE".into(), "crash_at_start".into());
    let began = Instant::now();
    kit.runtime.apply(vec![spec]).await;
    let state =
        eventually("four starts", || Some(kit.state()).filter(|state| state.restarts >= 4)).await;
    // 100, 200 and 400 ms lie between four starts.
    assert!(began.elapsed() >= Duration::from_millis(700));
    assert!(matches!(state.status, RunnerStatus::BackingOff { retry_in_ms } if retry_in_ms > 400));
    let error = state.last_error.unwrap();
    assert_eq!(error, "runner `wire` exited with code 1: cannot find my model");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_runner_that_backs_off_too_long_fails_at_once() {
    let kit = Kit::with(Limits { backoff_min: Duration::from_secs(20), ..Limits::default() });
    let mut spec = kit.spec();
    spec.env.insert("MODE".into(), "crash_at_start".into());
    kit.runtime.apply(vec![spec]).await;
    let error = kit.runtime.ready(&wire(), Duration::from_secs(10)).await.unwrap_err();
    // The sender of the event learns what happened; stderr is for operators only.
    assert_eq!(
        error.message,
        "no runner offers `plugin:test/wire/main`: runner `wire` exited with code 1"
    );
    let told = kit.state().last_error.unwrap();
    assert_eq!(told, "runner `wire` exited with code 1: cannot find my model");
    let again = Instant::now();
    kit.runtime.ready(&wire(), Duration::from_secs(10)).await.unwrap_err();
    assert!(again.elapsed() < Duration::from_secs(1));
}
