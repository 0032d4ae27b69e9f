//! Chunks are snapshots: every kind of reader ends with what LangBot would show.
//!
//! Random sequences are in `random.rs`; here a real plugin sends chosen ones, and the
//! stored results, a resumed stream, the transcript, AG-UI and the terminal are read.

use crate::stage::{PATIENCE, Stage, agent, greenroom};
use greenroom_protocol::AgentRunResult;
use greenroom_testkit::fold::Fold;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

fn agents() -> String {
    agent("replay", "basics", "replay", "") + &agent("streaming", "basics", "streaming", "")
}

/// What a plugin sends, and the messages that LangBot shows for it.
fn scenes() -> Vec<(Value, Vec<&'static str>)> {
    let picture = json!([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]);
    let text = |text: &str| json!(["delta", {"content": text}]);
    let last = |text: &str| json!(["delta", {"content": text, "is_final": true}]);
    let whole = |text: &str| json!(["completed", {"content": text}]);
    vec![
        (
            json!([text("Hello"), text("Hello from"), last("Hello from n8n")]),
            vec!["Hello from n8n"],
        ),
        (
            json!([text("Thinking"), text("The answer"), text("The answer is 4")]),
            vec!["The answer is 4"],
        ),
        (json!([text("abc"), text("ab"), last("ab"), whole("ab")]), vec!["ab"]),
        (
            json!([["delta", {"content": "b", "all_content": "ab"}], ["delta", {"content": "c", "all_content": "abc"}],
                whole("abc")]),
            vec!["abc"],
        ),
        (json!([last("one"), text("t"), last("two"), whole("two")]), vec!["one", "two"]),
        (json!([text("gone"), ["delta", {"content": picture, "is_final": true}]]), vec![""]),
        (json!([text("x"), text("yz"), text("y"), whole("other")]), vec!["other"]),
    ]
}

#[tokio::test]
async fn every_reader_ends_with_what_langbot_shows() {
    let stage = Stage::open(&["basics"], &agents()).await;
    for (number, (sent, expected)) in scenes().into_iter().enumerate() {
        let conversation = format!("c{number}");
        let run = stage.play("replay", &conversation, &sent.to_string()).await;
        let results = stage.results(&run).await;
        let texts: Vec<&str> = expected.iter().copied().filter(|text| !text.is_empty()).collect();
        assert_eq!(Fold::of(&results).messages, texts, "{sent}\n{results:?}");
        assert_eq!(stage.api.answers(&conversation).await, expected, "{sent}");
        // A reader that lost its connection at any point.
        for at in 0..results.len() {
            let before = &results[..at];
            let last = before.last().map_or(0, |result| result.sequence.unwrap());
            let path = format!("/v1/runs/{}/results?after={last}&limit=200", run.run_id);
            let (_, page) = stage.api.json(Request::get(path)).await.unwrap();
            let rest: Vec<AgentRunResult> = serde_json::from_value(page["items"].clone()).unwrap();
            assert_eq!(Fold::of(before.iter().chain(&rest)).messages, texts, "{sent} from {last}");
        }
        assert_eq!(through_agui(&stage, number, &sent).await, texts, "{sent}");
    }
}

/// What a client of AG-UI holds at the end of the run: deltas are appended, a snapshot replaces everything.
pub(crate) async fn through_agui(stage: &Stage, number: usize, sent: &Value) -> Vec<String> {
    let input = json!({"threadId": format!("t{number}"), "runId": format!("a{number}"), "state": {}, "tools": [],
        "messages": [{"id": "u", "role": "user", "content": sent.to_string()}], "context": [],
        "forwardedProps": {}});
    let request =
        Request::post("/v1/agui/replay", input.to_string()).header("accept", "text/event-stream");
    let answer = stage.api.send(request).await.unwrap();
    let body = tokio::time::timeout(PATIENCE, answer.body()).await.unwrap().unwrap();
    let body = String::from_utf8(body).unwrap();
    let mut messages: Vec<(String, String)> = Vec::new();
    for line in body.lines().filter_map(|line| line.strip_prefix("data:")) {
        let event: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" => messages.push((text("messageId"), String::new())),
            "TEXT_MESSAGE_CONTENT" => {
                let open = messages.iter_mut().find(|(id, _)| *id == text("messageId"));
                open.expect("content of a message that was started").1 += &text("delta");
            }
            "MESSAGES_SNAPSHOT" => {
                let all = event["messages"].as_array().unwrap().iter();
                let shown = all.filter(|message| message["role"] == "assistant");
                let text = |message: &Value, key: &str| message[key].as_str().unwrap().to_owned();
                messages =
                    shown.map(|message| (text(message, "id"), text(message, "content"))).collect();
            }
            _ => {}
        }
    }
    messages.into_iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect()
}

#[tokio::test]
async fn a_picture_of_a_chunk_is_in_the_message() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let picture = json!([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]);
    let run =
        stage.play("replay", "c1", &json!([["delta", {"content": picture}]]).to_string()).await;
    let results = stage.results(&run).await;
    let message = results.iter().find(|result| result.kind == "message.completed").unwrap();
    assert_eq!(
        message.data["message"]["content"],
        json!([{"type": "image", "url": "https://example.com/a.png"}])
    );
}

#[tokio::test]
async fn the_terminal_prints_a_rewritten_text_below() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let data = stage.host.data();
    let sent =
        json!([["delta", {"content": "Thinking"}], ["delta", {"content": "Four"}]]).to_string();
    let folder = data.to_str().unwrap();
    let output =
        greenroom(&data, &["send", &sent, "--agent", "replay", "--follow", "--data", folder]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.ends_with("Thinking\nFour\n"), "{printed}");
}

#[tokio::test]
async fn files_of_an_event_reach_the_plugin_with_their_bytes() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let upload = Request::post("/v1/artifacts?name=a.txt&conversation_id=c1", "hello")
        .header("content-type", "text/plain");
    let (_, artifact) = stage.api.json(upload).await.unwrap();
    let mut message = crate::stage::event("replay", "c1", "[[\"input\", {}]]");
    let picture = json!({"type": "image", "data_base64": "iVBORw0KGgo=", "mime_type": "image/png"});
    message["input"]["attachments"] = json!([{"artifact_id": artifact["artifact_id"]}]);
    message["input"]["contents"] = json!([{"type": "text", "text": "see"}, picture]);
    let run_id = stage.api.send_event(&message).await.run_id.unwrap();
    stage.api.ended_run(&run_id).await;
    let told: Value = serde_json::from_str(&stage.api.answers("c1").await.pop().unwrap()).unwrap();
    let png = "data:image/png;base64,iVBORw0KGgo=";
    let mime_type = told["attachments"][0]["mime_type"].as_str().unwrap();
    let file = format!("data:{mime_type};base64,aGVsbG8=");
    assert_eq!(
        told["contents"],
        json!([{"type": "text", "text": "see"}, {"type": "image_base64", "image_base64": png},
            {"type": "file_base64", "file_base64": file, "file_name": "a.txt"}])
    );
    let content = |at: usize| told["attachments"][at]["content"].clone();
    assert_eq!((content(0), content(1)), (json!(file), json!(png)));
    assert_eq!(told["attachments"][1]["type"], "image");
}
