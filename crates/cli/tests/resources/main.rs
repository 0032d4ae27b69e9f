//! Models and tools from a runner's side: granted, called, refused, interrupted, over the real program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod approvals;
mod budgets;
mod edited;
mod ids;
#[cfg(feature = "faults")]
mod killed;
mod mcp;
mod mcp_addresses;
mod models;
mod modules;
mod operators;
mod plugin_tools;
mod programs;
mod progress;
mod project_cli;
mod questions;
mod search;
mod secrecy;
mod sign_in;
mod skills;
mod sleepy;
#[path = "../host/stage.rs"]
#[expect(dead_code, reason = "shared with the tests of the host, which need more of it")]
mod stage;
mod watched;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

use greenroom_protocol::RunView;
use serde_json::{Value, json};
use stage::{Stage, event};

/// An agent that plays steps with every module, and asks before what cannot be brought back.
const AGENT: &str = r#"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = { modules = ["calendar.*", "contacts.read", "memory.*"] }
"#;

/// A call of the project CLI as a step, told in a file of its name.
fn call(name: &str, module: &str, method: &str, input: Value) -> Value {
    let parameters = json!({"module": module, "method": method, "input": input});
    let params =
        json!({"tool_name": "project_cli", "parameters": parameters, "tool_call_id": name});
    json!(["call", "tools.call", params, name])
}

/// Plays steps as an actor, in a conversation, to the end.
async fn play(stage: &Stage, actor: &str, conversation: &str, mut steps: Vec<Value>) -> RunView {
    steps.push(json!(["end"]));
    let mut event = event("clerk", conversation, &Value::Array(steps).to_string());
    event["actor"]["actor_id"] = actor.into();
    let run_id = stage.send(&event).await;
    stage.api.ended_run(&run_id).await
}

/// The data of a call that must have succeeded.
async fn data(stage: &Stage, name: &str) -> Value {
    let told = stage.told(name).await;
    let answer = &told["result"];
    assert_eq!(answer["metadata"]["status"], "success", "{told}");
    // What the model reads is the complete text of the result.
    let content: Value = serde_json::from_str(answer["content"].as_str().unwrap()).unwrap();
    assert_eq!(content, answer["result"]);
    answer["result"]["data"].clone()
}
