//! How far a call is: the progress of a real server, told to the runner and kept with the call.

use crate::mcp::{stage, use_tool};
use crate::play;
use crate::stage::outcome;
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_a_server_reaches_the_runner_and_the_record_of_the_call() {
    let stage = stage("", r#"tools = ["everything.*"]"#).await;
    let long = json!({"duration": 1, "steps": 4});
    let steps = vec![use_tool("long", "everything.trigger-long-running-operation", long)];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let told = stage.told("long").await;
    assert_eq!(told["result"]["metadata"]["status"], "success", "{told}");
    let items = told["items"].as_array().unwrap();
    assert!(!items.is_empty(), "{told}");
    for item in items {
        assert_eq!((&item["type"], &item["total"]), (&json!("progress"), &json!(4.0)), "{item}");
    }
    let steps: Vec<f64> = items.iter().map(|item| item["progress"].as_f64().unwrap()).collect();
    assert!(steps.is_sorted(), "{steps:?}");
    let events = stage.api.events().await;
    let done: &Value =
        events.iter().find(|event| event["event_type"] == "tool.call.completed").unwrap();
    assert!(done.to_string().contains(r#""type":"progress""#), "{done}");
}
