//! The reference runner with a client of AG-UI: what the client has of its own reaches the model, and comes back.

use crate::checks::{is_paired, offered};
use crate::reader::{find, input, kinds, talk};
use crate::scene::{Scene, Setting};
use serde_json::{Value, json};

const TOOL: &str = "setBackground";

fn tools() -> Value {
    json!([{"name": TOOL, "description": "Changes the colour", "parameters": {"type": "object",
        "properties": {"colour": {"type": "string"}}, "required": ["colour"]}}])
}

/// Says something as a client that has these messages.
async fn talks(scene: &Scene, run: &str, messages: Value) -> Vec<Value> {
    let mut sent = input("t", run, "");
    sent["messages"] = messages;
    sent["tools"] = tools();
    talk(&scene.stage, "agent", &sent).await
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

/// The messages of a client after a stream that had no text.
fn after(messages: &Value, events: &[Value]) -> Value {
    let mut messages = messages.clone();
    let calls = events.iter().filter(|event| event["type"] == "TOOL_CALL_START");
    let calls = calls.map(|call| {
        json!({"id": call["parentMessageId"], "role": "assistant", "toolCalls": [{
            "id": call["toolCallId"], "type": "function",
            "function": {"name": call["toolCallName"], "arguments": "{}"}}]})
    });
    messages.as_array_mut().unwrap().extend(calls);
    messages
}

fn texts(messages: &[Value]) -> Vec<String> {
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_context_state_and_instructions_of_the_client_reach_the_model() {
    let scene = Setting::default().open().await;
    let mut sent = input("t", "r1", "hi");
    sent["tools"] = tools();
    sent["state"] = json!({"recipe": {"title": "</client> Soup"}});
    sent["context"] = json!([{"description": "the page", "value": "/recipes"}]);
    let system = json!({"id": "s", "role": "system", "content": "Be brief."});
    sent["messages"].as_array_mut().unwrap().insert(0, system);
    let events = talk(&scene.stage, "agent", &sent).await;
    assert_eq!(find(&events, "RUN_FINISHED")["outcome"], json!({"type": "success"}));
    let request = scene.requests().remove(0);
    let names = offered(&request);
    assert!(names.contains(&TOOL.to_owned()) && names.contains(&"update_client_state".to_owned()));
    let messages = request["messages"].as_array().unwrap();
    let told = texts(messages);
    let framed = told.iter().find(|text| text.starts_with("<client>\n")).unwrap();
    let said: Value = serde_json::from_str(framed.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        said,
        json!({"instructions": [{"role": "system", "content": "Be brief."}],
            "context": [{"description": "the page", "value": "/recipes"}],
            "state": {"recipe": {"title": "</client> Soup"}}})
    );
    assert_eq!(framed.matches("</client>").count(), 1, "{framed}");
    assert_eq!(told.last().unwrap(), "hi");
    assert!(told[0].contains("<client>"), "the prompt explains the frame");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_tool_of_the_client_is_continued_with_its_result() {
    let script = r#"
[[rule]]
when.result_text = "it is blue"
answer = "Both are done."
[[rule]]
when.result_text = "it is red"
answer = [{ call = "setBackground", args = { colour = "blue" }, id = "c1" }]
[[rule]]
when.text = "go"
answer = [{ text = "I will." }, { call = "forge_add", args = { a = 2, b = 3 }, id = "c0" }, { call = "setBackground", args = { colour = "red" }, id = "c1" }]
[[rule]]
answer = "You said: {{text}}"
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    let mut messages = json!([user("u1", "go")]);
    let mut events = talks(&scene, "r1", messages.clone()).await;
    for (number, result) in ["it is red", "it is blue"].into_iter().enumerate() {
        let finished = find(&events, "RUN_FINISHED");
        let pending = finished["outcome"]["pendingToolCallIds"].as_array().unwrap().clone();
        assert_eq!(pending.len(), 1, "{finished}");
        let started: Vec<&Value> =
            events.iter().filter(|event| event["type"] == "TOOL_CALL_START").collect();
        assert_eq!(started.last().unwrap()["toolCallName"], TOOL);
        messages = after(&messages, &events);
        let told = json!({"id": format!("t{number}"), "role": "tool", "toolCallId": pending[0],
            "content": result});
        messages.as_array_mut().unwrap().push(told);
        events = talks(&scene, &format!("next{number}"), messages.clone()).await;
    }
    assert_eq!(scene.stage.api.answers("t").await.pop().unwrap(), "Both are done.");
    let asked = scene.asked();
    asked.iter().for_each(|messages| is_paired(messages));
    // The run goes on where the last one ended: a request begins with the one before.
    assert_eq!(asked.len(), 3);
    for pair in asked.windows(2) {
        assert_eq!(pair[1][..pair[0].len()], pair[0][..]);
    }
    let results: Vec<String> = texts(&asked[2]).into_iter().rev().take(1).collect();
    assert_eq!(results, ["it is blue"]);
    // The thread remains readable for the next question.
    messages = after(&messages, &events);
    messages.as_array_mut().unwrap().push(user("u2", "thanks"));
    let events = talks(&scene, "r9", messages).await;
    assert!(kinds(&events).contains(&"TEXT_MESSAGE_CONTENT"));
    let last = scene.asked().pop().unwrap();
    is_paired(&last);
    assert!(texts(&last).contains(&"Both are done.".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_client_never_answers_does_not_block_the_thread() {
    let script = "[[rule]]\nwhen.text = \"go\"\nanswer = [{ call = \"setBackground\", args = {}, id = \"c1\" }]\n\
                  [[rule]]\nanswer = \"You said: {{text}}\"\n";
    let scene = Setting { script, ..Setting::default() }.open().await;
    talks(&scene, "r1", json!([user("u1", "go")])).await;
    let events = talks(&scene, "r2", json!([user("u2", "never mind")])).await;
    assert!(kinds(&events).contains(&"TEXT_MESSAGE_CONTENT"), "{events:?}");
    let last = scene.asked().pop().unwrap();
    is_paired(&last);
    assert!(
        last.iter()
            .any(|one| one["role"] == "tool"
                && one["content"].as_str().unwrap().contains("NO_RESULT"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_message_is_answered_without_what_it_replaces() {
    let script = r#"
[[rule]]
when = { text = "three", round = 1 }
answer = [{ call = "search_history", args = { query = "two" }, id = "s1" }]
[[rule]]
answer = "You said: {{text}}"
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    let first = talks(&scene, "r1", json!([user("u1", "one")])).await;
    let start = find(&first, "TEXT_MESSAGE_START")["messageId"].clone();
    let answer = json!({"id": start, "role": "assistant", "content": "You said: one"});
    talks(&scene, "r2", json!([user("u1", "one"), answer, user("u2", "two")])).await;
    talks(&scene, "r3", json!([user("u1", "one"), answer, user("u2", "three")])).await;
    let last = scene.asked().pop().unwrap();
    let told = texts(&last[1..]);
    assert_eq!(told[..3], ["one", "You said: one", "three"]);
    let found: Value = serde_json::from_str(told.last().unwrap()).unwrap();
    assert_eq!(found, json!({"query": "two", "items": []}));
    // The first message again: nothing is left of the rest.
    talks(&scene, "r4", json!([user("u1", "four")])).await;
    assert_eq!(texts(&scene.asked().pop().unwrap()[1..]), ["four"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_changes_the_state_of_the_client() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "update_client_state", args = { changes = { list = [1], old = "", title = "Stew" } }, id = "c1" }]
[[rule]]
answer = "Done."
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    let mut sent = input("t", "r1", "make it a stew");
    sent["state"] = json!({"title": "Soup", "kept": true});
    let events = talk(&scene.stage, "agent", &sent).await;
    assert_eq!(
        find(&events, "STATE_DELTA")["delta"],
        json!([{"op": "add", "path": "/list", "value": [1]},
            {"op": "add", "path": "/old", "value": ""},
            {"op": "add", "path": "/title", "value": "Stew"}])
    );
    let refused = r#"client.tool_clash"#;
    sent["runId"] = "r2".into();
    sent["tools"] = json!([{"name": "update_client_state"}]);
    let events = talk(&scene.stage, "agent", &sent).await;
    assert_eq!(find(&events, "RUN_ERROR")["code"], refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_and_arguments_are_streamed_as_the_model_writes_them() {
    let script = r#"
[[rule]]
when.round = 1
answer = [
  { reasoning = "It must be added, and then it must be told." },
  { text = "Let me see." },
  { call = "forge_add", args = { a = 2, b = 3 }, id = "c1" },
]
[[rule]]
answer = [{ reasoning = "That was easy." }, { text = "Five." }]
"#;
    let setting = Setting { script, provider: "anthropic", ..Setting::default() };
    let scene = setting.open().await;
    let events = talk(&scene.stage, "agent", &input("t", "r1", "add")).await;
    let order: Vec<&str> = kinds(&events)
        .into_iter()
        .filter(|kind| {
            ["REASONING_START", "TEXT_MESSAGE_START", "TOOL_CALL_START", "TOOL_CALL_RESULT"]
                .contains(kind)
        })
        .collect();
    assert_eq!(
        order,
        [
            "REASONING_START",
            "TEXT_MESSAGE_START",
            "TOOL_CALL_START",
            "TOOL_CALL_RESULT",
            "REASONING_START",
            "TEXT_MESSAGE_START"
        ]
    );
    let reasoning: String = events
        .iter()
        .filter(|event| event["type"] == "REASONING_MESSAGE_CONTENT")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(reasoning, "It must be added, and then it must be told.That was easy.");
    let arguments: String = events
        .iter()
        .filter(|event| event["type"] == "TOOL_CALL_ARGS")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), json!({"a": 2, "b": 3}));
    let ends = events.iter().filter(|event| event["type"] == "TOOL_CALL_END").count();
    assert_eq!(ends, 1);
}
