//! Work on top of what an earlier version left: readers, senders and runners come back to it.

use crate::folder::{Opened, Recorded};
use greenroom_protocol::{AgentRunResult, RunStatus};
use greenroom_testkit::api::Failure;
use greenroom_testkit::http::Request;
use greenroom_testkit::reader::Frames;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Deltas that are stored in one row are read on between any two of them.
pub(crate) async fn streams(recorded: Recorded) {
    let opened = recorded.open().await;
    for name in ["english", "chinese", "threaded", "assistant"] {
        let run_id = opened.run_id(name);
        let all = sequences(&opened.api.results(run_id).await);
        assert!(all.len() > 4, "{name}: {all:?}");
        for (position, sequence) in all.iter().enumerate() {
            let request = Request::get(format!("/v1/runs/{run_id}/results"))
                .header("accept", "text/event-stream")
                .header("last-event-id", sequence.to_string());
            let mut frames = Frames::new(opened.api.send(request).await.unwrap());
            let mut rest: Vec<i64> = Vec::new();
            while let Some(frame) = frames.next().await.unwrap() {
                rest.push(frame.id.parse().unwrap());
            }
            assert_eq!(rest, all[position + 1..], "{name} after {sequence}");
        }
    }
    let chinese = opened.api.results(opened.run_id("chinese")).await;
    let pieces: Vec<&Value> = chinese
        .iter()
        .filter(|result| result.kind == "message.delta")
        .map(|result| &result.data["chunk"]["content"])
        .collect();
    assert_eq!(pieces, ["蓝色", "的", "自行车", "停在", "图书馆", "后面"]);
}

fn sequences(results: &[AgentRunResult]) -> Vec<i64> {
    results.iter().map(|result| result.sequence.unwrap()).collect()
}

/// The same body gets the same ids; another body under the same key is refused.
pub(crate) async fn keys(recorded: Recorded) {
    let opened = recorded.open().await;
    let before = opened.api.runs().await.len();
    for name in ["english", "chinese", "ticket", "failed", "unbound", "elsewhere", "open-queued-1"]
    {
        let mut event = opened.name(name)["event"].clone();
        let first = &opened.name(name)["answer"];
        let (status, again) = opened.api.post_event(&event).await.unwrap();
        assert_eq!(status, 200, "{name}");
        assert_eq!(
            json!([again.event_id, again.run_id]),
            json!([first["event_id"], first["run_id"]])
        );
        event["metadata"]["other"] = true.into();
        match opened.api.post_event(&event).await {
            Err(Failure::Refused { status: 409, .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(opened.api.runs().await.len(), before);
}

/// Plays steps in a conversation and gives back what was told.
async fn play(opened: &Opened, conversation: &str, steps: Value) -> Vec<Value> {
    let event = json!({"event_type": "message.received", "conversation_id": conversation,
        "actor": {"actor_type": "user", "actor_id": "ann"}, "agent": "player",
        "subject": {"subject_type": "ticket", "subject_id": "T-7"},
        "input": {"text": "A question for the new version"}, "data": {"steps": steps}});
    let run_id = opened.api.send_event(&event).await.run_id.unwrap();
    let run = opened.api.ended_run(&run_id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}\n{}", run.error, opened.host.log());
    let results = opened.api.results(&run_id).await;
    let messages = results.iter().filter(|result| result.kind == "message.completed");
    messages
        .map(|result| {
            let text = result.data["message"]["content"].as_str().unwrap();
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
        })
        .collect()
}

/// A call, and a message with its answer.
fn told(method: &str, params: Value) -> [Value; 2] {
    [json!(["call", method, params]), json!(["tell_answer"])]
}

pub(crate) async fn runners(recorded: Recorded) {
    let opened = recorded.open().await;
    let scopes = ["conversation", "actor", "subject", "runner", "binding"];
    let mut steps = Vec::new();
    for scope in scopes {
        steps.extend(told("state.get", json!({"scope": scope, "key": "city"})));
    }
    for key in ["lasting", "passing", "told"] {
        steps.extend(told("state.get", json!({"scope": "conversation", "key": key})));
    }
    for area in ["plugin", "workspace", "binding"] {
        steps.extend(told("storage.get", json!({"area": area, "key": "notes/one"})));
    }
    steps.push(json!(["end"]));
    let answers = play(&opened, "keep", Value::Array(steps)).await;
    let mut answers = answers.iter().map(|answer| &answer["result"]);
    for scope in scopes {
        let (value, version) = match scope {
            "conversation" => ("Taipei, the second version".to_owned(), 2),
            _ => (format!("Taipei of the {scope}"), 1),
        };
        assert_eq!(
            *answers.next().unwrap(),
            json!({"value": value, "version": version}),
            "{scope}"
        );
    }
    assert_eq!(answers.next().unwrap()["value"], json!({"deep": [1, 2.5, null, "深"]}));
    assert_eq!(answers.next().unwrap()["value"], Value::Null, "its time was up");
    assert_eq!(answers.next().unwrap()["value"], json!(["by", "a", "result"]));
    for bytes in [
        "Ynl0ZXMgb2YgdGhlIHBsdWdpbg==",
        "Ynl0ZXMgb2YgdGhlIHdvcmtzcGFjZQ==",
        "Ynl0ZXMgb2YgdGhlIGJpbmRpbmc=",
    ] {
        assert_eq!(answers.next().unwrap()["data_base64"], bytes);
    }
    pages(&opened).await;
    records(&opened).await;
}

/// A runner that kept a cursor reads on from there.
async fn pages(opened: &Opened) {
    let item = opened.api.history("talk").await;
    let item = item.iter().find(|item| {
        item.run_id.as_deref() == Some(opened.run_id("paged"))
            && item.event_id.is_some()
            && item.role == greenroom_protocol::TranscriptRole::Assistant
    });
    let page: Value = serde_json::from_str(item.unwrap().text.as_deref().unwrap()).unwrap();
    let cursor = page["result"]["next_cursor"].as_str().unwrap_or_else(|| panic!("{page}"));
    let mut steps = told("history.page", json!({"before_cursor": cursor, "limit": 2})).to_vec();
    steps.push(json!(["end"]));
    let answer = play(opened, "talk", Value::Array(steps)).await.remove(0);
    let texts: Vec<&Value> =
        answer["result"]["items"].as_array().unwrap().iter().map(|item| &item["text"]).collect();
    assert_eq!(texts, ["蓝色自行车在哪里？", "蓝色的自行车停在图书馆后面"], "{answer}");
}

/// What the project modules keep can be read and changed.
async fn records(opened: &Opened) {
    let id = opened.name("dinner")["record_id"].as_str().unwrap();
    let call = |id: &str, module: &str, method: &str, input: Value| {
        let parameters = json!({"module": module, "method": method, "input": input});
        told(
            "tools.call",
            json!({"tool_name": "project_cli", "tool_call_id": id, "parameters": parameters}),
        )
    };
    let mut steps =
        call("new-1", "calendar", "read", json!({"mode": "event", "event_id": id})).to_vec();
    steps.extend(call("new-2", "calendar", "update", json!({"event_id": id, "title": "Lunch"})));
    steps.extend(call("new-3", "contacts", "read", json!({"query": "李雷"})));
    steps.extend(call("new-4", "memory", "read", json!({})));
    steps.push(json!(["end"]));
    let answers = play(opened, "tools", Value::Array(steps)).await;
    let data: Vec<&Value> =
        answers.iter().map(|answer| &answer["result"]["result"]["data"]).collect();
    assert_eq!(data[0]["title"], "Dinner with Bob", "{answers:#?}");
    assert_eq!(data[1]["title"], "Lunch", "{answers:#?}");
    assert_eq!(data[2]["items"][0]["name"], "李雷", "{answers:#?}");
    assert!(data[3].to_string().contains("乌龙"), "{answers:#?}");
}

pub(crate) async fn conversations(recorded: Recorded) {
    let mut opened = recorded.open().await;
    opened.settle().await;
    let before = opened.api.history("talk").await;
    let texts = ["bicycle", "%E8%87%AA%E8%A1%8C%E8%BD%A6"];
    let mut found = Vec::new();
    for text in texts {
        found.push(find(&opened, text).await);
    }
    let steps = json!([["message", "The red bicycle is 红色自行车"], ["end"]]);
    assert_eq!(play(&opened, "talk", steps).await, ["The red bicycle is 红色自行车"]);
    for _ in 0..2 {
        let after = opened.api.history("talk").await;
        assert_eq!(after.len(), before.len() + 2);
        assert!(after.iter().zip(&before).all(|(now, then)| now == then));
        let answer = &after.last().unwrap().item_id;
        for (text, found) in texts.into_iter().zip(&found) {
            assert!(found.len() >= 2, "{text}: {found:?}");
            let mut expected = found.clone();
            expected.insert(answer.clone());
            assert_eq!(find(&opened, text).await, expected, "{text}");
        }
        // The same once more, after a clean stop of this version.
        assert!(opened.host.stop().await.success(), "{}", opened.host.log());
        opened.host.start_again().await;
    }
}

/// The items of the conversation that a search finds.
async fn find(opened: &Opened, text: &str) -> BTreeSet<String> {
    let found = opened.api.get(&format!("/v1/conversations/talk/search?q={text}&limit=200")).await;
    let items = found["items"].as_array().unwrap().iter();
    items.map(|item| item["item_id"].as_str().unwrap().to_owned()).collect()
}
