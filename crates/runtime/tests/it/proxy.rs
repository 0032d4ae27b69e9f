//! Calls of runners, as they reach the host.

use crate::kit::{Kit, eventually, finish, some};
use greenroom_runtime::{Limits, RunEnd};
use serde_json::json;
use std::sync::atomic::Ordering;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_carries_the_identity_of_its_connection() {
    let kit = Kit::wire().await;
    let seen = kit.output("call state.get").await;
    let expected = json!({
        "runner": "wire", "plugin": "test/wire", "run_id": "run-0", "on_connection": true, "method": "state.get",
    });
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_for_a_run_elsewhere_says_so() {
    let kit = Kit::wire().await;
    let seen = kit.output("call_for run-99 state.get").await;
    assert_eq!(
        (seen["run_id"].as_str(), seen["on_connection"].as_bool()),
        (Some("run-99"), Some(false))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_is_answered_with_the_error() {
    let kit = Kit::wire().await;
    let seen = kit.output("call test.deny").await;
    assert_eq!(
        (seen["code"].as_i64(), seen["data"]["code"].as_str()),
        (Some(-32000), Some("unauthorized"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_at_which_the_host_fails_is_answered_all_the_same() {
    let kit = Kit::wire().await;
    let seen = kit.output("call test.panic").await;
    assert_eq!(seen["data"]["code"], "runtime_error");
    assert_eq!(seen["message"], "the host failed at this call");
    assert_eq!(kit.output("call state.get").await["on_connection"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_hangs_holds_up_nothing_else() {
    let kit = Kit::wire().await;
    let hanging = kit.start("call test.hang").await;
    assert_eq!(kit.output("call state.get").await["on_connection"], true);
    let mut other = kit.start("wait").await;
    some(&mut other).await;
    other.cancel("done");
    assert_eq!(finish(other).await.1, RunEnd::Finished);
    drop(hanging);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_is_dropped() {
    let kit = Kit::wire().await;
    let hanging = |count: u64| (kit.hanging.load(Ordering::Relaxed) == count).then_some(());
    let mut run = kit.start("call_and_give_up").await;
    some(&mut run).await;
    eventually("the call", || hanging(1)).await;
    run.cancel("give up");
    assert_eq!(finish(run).await.1, RunEnd::Finished);
    eventually("the call dropped", || hanging(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_calls_at_once_are_refused_one_by_one() {
    let kit = Kit::wire_with(Limits { calls_in_flight_max: 10, ..Limits::default() }).await;
    let seen = kit.output("many_calls 10").await;
    assert_eq!(
        (&seen["data"]["code"], &seen["data"]["retryable"]),
        (&json!("rate_limited"), &json!(true))
    );
    kit.runtime.apply(Vec::new()).await;
    eventually("the calls dropped", || (kit.hanging.load(Ordering::Relaxed) == 0).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_items_of_a_streaming_call_come_before_its_answer() {
    let kit = Kit::wire().await;
    let seen = kit.output("stream").await;
    let items = json!([{"number": 0}, {"number": 1}, {"number": 2}]);
    assert_eq!(seen, json!({"items": items, "answer": {"sent": 3}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_that_is_in_use_is_refused() {
    let kit = Kit::wire().await;
    let seen = kit.output("same_id_twice").await;
    assert_eq!(seen["data"]["code"], "invalid_argument");
}
