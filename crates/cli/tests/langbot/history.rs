//! A page of the history has what LangBot's has: messages only, with that of the run's own event.

use crate::stage::{Stage, agent};
use serde_json::{Value, json};

async fn stage() -> Stage {
    let grant = "grant = { modules = [\"memory.*\"] }";
    Stage::open(&["reader"], &agent("calls", "reader", "calls", grant)).await
}

/// The text of each item, after its role.
fn lines(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| format!("{} {}", item["role"].as_str().unwrap(), item["content"])).collect()
}

#[tokio::test]
async fn a_page_has_the_message_that_is_answered_and_no_tool_calls() {
    let stage = stage().await;
    // Two calls that the transcript keeps, between two messages.
    let call = json!(["call_tool", {"tool_name": "project_cli", "parameters":
        {"module": "memory", "method": "search", "input": {"query": "x"}}}]);
    stage.play("calls", "c1", &json!([call, call]).to_string()).await;
    let kept = stage.api.history("c1").await;
    let tools = kept.iter().filter(|item| item.role == greenroom_protocol::TranscriptRole::Tool);
    assert_eq!(tools.count(), 2);

    let asked = json!([["history_page", {"limit": 3}], ["history_page", {"limit": 2}]]);
    let told = stage.told("calls", "c1", &asked).await;
    let page = &told[0]["ok"];
    let found = lines(page);
    assert_eq!(found.len(), 3, "{page}");
    assert_eq!(found[0], format!("user {}", json!(asked.to_string())));
    assert!(found[1].starts_with("assistant ") && found[2].starts_with("user "), "{found:?}");
    assert_eq!(page["has_more"], false, "{page}");
    // A page is full although what was left out lies between its items.
    let short = &told[1]["ok"];
    assert_eq!((lines(short), &short["has_more"]), (found[..2].to_vec(), &json!(true)));
    // The rest begins below it.
    let rest = json!([["history_page", {"limit": 9, "before_cursor": short["next_cursor"]}]]);
    let told = stage.told("calls", "c1", &rest).await;
    assert_eq!(lines(&told[0]["ok"]), found[2..]);
}
