//! The host is killed while a tool acts: what it did is there or not, never twice, and the call has one output.

use crate::stage::{self, TOKEN};
use crate::{AGENT, PROGRAM, call};
use greenroom_protocol::TranscriptRole;
use greenroom_testkit::host::{Started, TestHost};
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
