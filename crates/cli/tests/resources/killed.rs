//! The host is killed, or breaks, while a call is under way: what it did is there or not, never twice, and the
//! call has one output and one record.

use crate::stage::{self, PATIENCE, Stage, TOKEN, event, outcome};
use crate::{AGENT, PROGRAM, approvals, call, data};
use greenroom_protocol::{RunStatus, TranscriptRole};
use greenroom_testkit::host::{Started, TestHost};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

#[tokio::test]
async fn a_tool_that_was_under_way_has_one_output_that_says_so() {
    for place in ["before_tool", "after_tool"] {
        let mut host = TestHost::prepare(PROGRAM, &stage::config("cancel_grace_s = 1", AGENT));
        for name in ["puppet", "other"] {
            std::fs::create_dir(host.folder().join(name)).unwrap();
        }
        std::fs::write(host.folder().join("token"), TOKEN).unwrap();
        host.set_fault(Some(format!("{place}:1")));
        host.start_again().await;
        let step = call("made", "memory", "update", json!({"set": {"city": "Taipei"}}));
        let event = stage::event("clerk", "c1", &json!([step, ["end"]]).to_string());
        let run_id = host.api().send_event(&event).await.run_id.unwrap();
        host.died().await;
        host.set_fault(None);
        assert_eq!(host.try_start().await, Started::Ready);
        let api = host.api();
        let run = api.ended_run(&run_id).await;
        assert_eq!(run.error.unwrap().code, "host.interrupted");
        let items = api.history("c1").await;
        let tools: Vec<_> = items.iter().filter(|item| item.role == TranscriptRole::Tool).collect();
        assert_eq!(tools.len(), 1, "{place}");
        let output = &tools[0].metadata["tool_agent_output"];
        assert_eq!(output["error"]["code"], "INTERRUPTED", "{place}");
        assert_eq!(output["tool_call_args"]["method"], "update");
        let audit = api.get(&format!("/v1/audit?run_id={run_id}")).await;
        let calls: Vec<&Value> = audit["items"].as_array().unwrap().iter().collect();
        assert_eq!(calls.len(), 1, "{place}: {audit}");
        assert_eq!(calls[0]["method"], "tools.call");
        host.stop().await;
    }
}

/// A host in which something breaks, with a run beside it that must not notice.
async fn breaking(fault: &str) -> (Stage, String) {
    let mut host = TestHost::prepare(PROGRAM, &stage::config("cancel_grace_s = 1", AGENT));
    host.set_fault(Some(fault.to_owned()));
    let stage = Stage::with(host).await;
    let bystander = stage.start_waiting().await;
    (stage, bystander)
}

/// The codes of the calls of a run, oldest first.
async fn recorded(stage: &Stage, run_id: &str, count: usize) -> Vec<Value> {
    let mut codes = wait_for("the records", PATIENCE, async || {
        let audit = stage.api.get(&format!("/v1/audit?run_id={run_id}")).await;
        let items = audit["items"].as_array().unwrap().clone();
        (items.len() >= count).then_some(items)
    })
    .await;
    codes.reverse();
    codes.iter().map(|record| record["code"].clone()).collect()
}

#[tokio::test]
async fn a_call_that_breaks_inside_the_host_is_answered_recorded_and_harms_nothing_else() {
    let (stage, bystander) = breaking("in_call:2:panic").await;
    let get =
        |name: &str| json!(["call", "state.get", {"scope": "conversation", "key": "k"}, name]);
    let steps = json!([get("one"), get("two"), get("three"), ["end"]]);
    let run_id = stage.send(&event("clerk", "c1", &steps.to_string())).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let broken = json!({"code": "runtime_error", "retryable": false, "details": {},
        "message": "the host failed inside while it served the call"});
    assert_eq!(stage.told("two").await["error"]["data"], broken);
    for name in ["one", "three"] {
        assert!(stage.told(name).await.get("error").is_none(), "{name}");
    }
    assert_eq!(recorded(&stage, &run_id, 3).await, ["ok", "runtime_error", "ok"]);
    assert!(stage.host.log().contains("a proxy call panicked"));
    stage.finish_waiting(&bystander).await;
}

#[tokio::test]
async fn a_tool_whose_call_breaks_inside_the_host_has_one_output_that_says_so() {
    let (stage, bystander) = breaking("in_tool:1:panic").await;
    let steps = json!([
        call("one", "memory", "update", json!({"set": {"a": 1}})),
        call("two", "memory", "update", json!({"set": {"b": 1}})),
        ["end"]
    ]);
    let run_id = stage.send(&event("clerk", "c1", &steps.to_string())).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let broken = &stage.told("one").await["result"];
    assert_eq!(broken["error"]["code"], "RUNTIME_ERROR");
    data(&stage, "two").await;
    let items = approvals::tool_items(&stage, "c1").await;
    let outputs = items.iter().map(|item| &item.metadata["tool_agent_output"]["status"]);
    assert_eq!(outputs.collect::<Vec<_>>(), ["failure", "success"]);
    assert_eq!(recorded(&stage, &run_id, 2).await, ["ok", "ok"]);
    stage.finish_waiting(&bystander).await;
}
