//! What must hold of every request and every run.

use crate::scene::Scene;
use greenroom_protocol::{RunView, TranscriptRole};
use serde_json::{Value, json};

/// The names of the tools that a request of chat completions offers.
pub(crate) fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Every call has exactly one result, right behind the turn that made it, in the order of the calls.
pub(crate) fn is_paired(messages: &[Value]) {
    let mut rest = messages;
    while let Some((message, behind)) = rest.split_first() {
        assert_ne!(message["role"], "tool", "a result without a call: {messages:#?}");
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(behind.len() >= calls.len(), "a call without its result: {messages:#?}");
        let (results, after) = behind.split_at(calls.len());
        for (call, result) in calls.iter().zip(results) {
            let expected = (&json!("tool"), &call["id"]);
            assert_eq!((&result["role"], &result["tool_call_id"]), expected, "{messages:#?}");
        }
        rest = after;
    }
}

/// What the model was told of each call of the last request, as JSON.
pub(crate) fn results(messages: &[Value]) -> Vec<Value> {
    let last = messages.iter().rposition(|message| message["role"] == "assistant").unwrap();
    let told = messages[last..].iter().filter(|message| message["role"] == "tool");
    told.map(|message| {
        let text = message["content"].as_str().unwrap();
        serde_json::from_str(text).unwrap_or_else(|_| text.into())
    })
    .collect()
}

/// The ids of the calls in a conversation, as its transcript tells them.
pub(crate) async fn call_ids(scene: &Scene, conversation: &str) -> Vec<String> {
    let items = scene.history(conversation).await;
    let tools = items.iter().filter(|item| item.role == TranscriptRole::Tool);
    tools.map(|item| item.metadata["tool_call_id"].as_str().unwrap().to_owned()).collect()
}

/// The types of a run's results; exactly one is a terminal, and it is the last.
pub(crate) async fn kinds(scene: &Scene, run: &RunView) -> Vec<String> {
    let results = scene.stage.api.results(&run.run_id).await;
    let kinds: Vec<String> = results.into_iter().map(|result| result.kind).collect();
    let terminals =
        kinds.iter().filter(|kind| ["run.completed", "run.failed"].contains(&kind.as_str()));
    assert_eq!(terminals.count(), 1, "{kinds:?}");
    assert!(kinds.last().unwrap().starts_with("run."), "{kinds:?}");
    kinds
}

/// What was shown while the answer came.
pub(crate) async fn shown(scene: &Scene, run: &RunView) -> String {
    let results = scene.stage.api.results(&run.run_id).await;
    let deltas = results.iter().filter(|result| result.kind == "message.delta");
    deltas.map(|delta| delta.data["chunk"]["content"].as_str().unwrap()).collect()
}
