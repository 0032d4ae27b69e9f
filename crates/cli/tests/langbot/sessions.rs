//! Sessions and people on LangBot's wire (issue 23, points 1 and 2): the rules of the host are the same there.

use crate::stage::{Stage, agent, event};
use serde_json::{Value, json};

/// Sends calls in a thread, perhaps of an actor without an id, and gives back their outcomes.
async fn told(stage: &Stage, thread: &str, nameless: bool, calls: Value) -> Vec<Value> {
    let mut sent = event("calls", "c", &calls.to_string());
    sent["thread_id"] = thread.into();
    if nameless {
        sent["actor"] = json!({"actor_type": "user"});
    }
    let run_id = stage.api.send_event(&sent).await.run_id.unwrap();
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(run.status.as_str(), "completed", "{run:?}\n{}", stage.host.log());
    let answer = stage.api.answers("c").await.pop().unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn a_thread_is_a_border_and_nobody_has_state() {
    let stage = Stage::open(&["reader"], &agent("calls", "reader", "calls", "")).await;
    let key = json!({"scope": "conversation", "key": "external.session_id"});
    let mut written = key.clone();
    written["value"] = "abc".into();
    let first = told(&stage, "t1", false, json!([["state_set", written]])).await;
    assert_eq!(first[0]["ok"], json!({"success": true}));
    let look = json!([["state_get", key], ["history_page", {"limit": 10}]]);
    let other = told(&stage, "t2", false, look.clone()).await;
    assert_eq!(other[0]["ok"]["value"], Value::Null);
    // On this wire a page has the message that is answered, and here nothing else.
    let items = other[1]["ok"]["items"].as_array().unwrap();
    assert_eq!(items.iter().map(|item| &item["thread_id"]).collect::<Vec<_>>(), ["t2"]);
    let again = told(&stage, "t1", false, look).await;
    assert_eq!(again[0]["ok"]["value"], "abc");
    assert_eq!(again[1]["ok"]["items"].as_array().unwrap().len(), 3);
    let mine = json!([["state_set", {"scope": "actor", "key": "k", "value": 1}]]);
    let nobody = told(&stage, "t1", true, mine.clone()).await;
    assert_eq!(nobody[0]["code"], "invalid_argument", "{nobody:?}");
    assert_eq!(told(&stage, "t1", false, mine).await[0]["ok"], json!({"success": true}));
}
