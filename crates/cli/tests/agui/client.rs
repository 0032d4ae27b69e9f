//! What a client has of its own: tools, whose calls it answers; a thread that it edits; a state of its own shape.

use crate::reader::{Reader, find, input, kinds, refused, request, steps, talk};
use crate::stage::Stage;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

const TELLER: &str = r#"
[agents.teller]
runner = "plugin:test/puppet/main"
events = []
config = { steps = '[["tell", "event"], ["end"]]' }
"#;

/// An agent that reads its history into the file of this name.
fn reader_of_history(name: &str) -> String {
    format!(
        "[agents.{name}]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n\
         config = {{ steps = '[[\"call\", \"history.page\", {{}}, \"{name}.page\"], [\"message\", \"read\"], [\"end\"]]' }}\n"
    )
}

fn connect(agent: &str, thread: &str) -> Request {
    let mut sent = input(thread, "connecting", "");
    sent["messages"] = json!([]);
    Request::post(format!("/v1/agui/agent/{agent}/connect"), sent.to_string())
}

fn open_tool() -> Value {
    json!([{"name": "open", "description": "opens a door", "parameters": {"type": "object"}}])
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

fn answered(run: &Value, text: &str) -> Value {
    let run_id = run["metadata"]["greenroom"]["run_id"].as_str().unwrap();
    json!({"id": format!("{run_id}.1"), "role": "assistant", "content": text})
}

#[tokio::test]
async fn a_call_of_the_clients_tool_stays_open_until_the_client_answers_it() {
    let stage = Stage::open(TELLER).await;
    let call = json!({"tool_call_id": "c1", "tool_name": "open", "parameters": {"door": 1}});
    let played = json!([["message", "Wait."], ["result", "tool.call.started", call], ["end"]]);
    let mut sent = steps("t1", "r1", played);
    sent["tools"] = open_tool();
    let events = talk(&stage, "puppet", &sent).await;
    let finished = find(&events, "RUN_FINISHED");
    assert_eq!(finished["outcome"], json!({"type": "success", "pendingToolCallIds": ["c1"]}));
    assert!(!kinds(&events).contains(&"TOOL_CALL_RESULT"));
    // The thread as it is kept has the open call.
    let kept = Reader::open(&stage, connect("puppet", "t1")).await.rest().await;
    let messages = kept[1]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "assistant"]);
    let open = &messages[2]["toolCalls"][0];
    assert_eq!(
        (&open["id"], &open["function"]["arguments"]),
        (&json!("c1"), &json!("{\"door\":1}"))
    );
    // A second call with the same id has another one for the client, and its own for the runner.
    let mut again = sent.clone();
    again["runId"] = "r2".into();
    again["messages"] = json!([sent["messages"][0], {"id": "a", "role": "assistant",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "open", "arguments": "{}"}}]},
        {"id": "x", "role": "tool", "toolCallId": "c1", "content": "no"},
        user("u2", sent["messages"][0]["content"].as_str().unwrap())]);
    let events = talk(&stage, "puppet", &again).await;
    let started = find(&events, "TOOL_CALL_START");
    let (id, message) = (&started["toolCallId"], &started["parentMessageId"]);
    assert_ne!(*id, "c1");
    let call = json!({"id": message, "role": "assistant", "toolCalls": [{"id": id,
        "type": "function", "function": {"name": "open", "arguments": "{}"}}]});
    let mut result = input("t1", "r3", "");
    result["messages"] = json!([user("u2", "x"), call,
        {"id": "t2", "role": "tool", "toolCallId": id, "content": "it is open"}]);
    talk(&stage, "teller", &result).await;
    let told: Value = serde_json::from_str(stage.api.answers("t1").await.last().unwrap()).unwrap();
    assert_eq!(told["event_type"], "tool.result.received");
    let results = json!([{"tool_call_id": "c1", "content": "it is open", "message_id": "t2"}]);
    assert_eq!(told["data"], json!({"results": results}));
}

#[tokio::test]
async fn a_thread_that_is_read_again_has_the_clients_results() {
    let call = r#"{"tool_call_id": "c1", "tool_name": "open", "parameters": {}}"#;
    let caller = format!(
        "[agents.caller]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n\
         config = {{ steps = '[[\"result\", \"tool.call.started\", {call}], [\"end\"]]' }}\n"
    );
    let stage = Stage::open(&caller).await;
    let mut sent = input("t1", "r1", "open it");
    sent["tools"] = open_tool();
    let events = talk(&stage, "caller", &sent).await;
    let call_message = json!({"id": find(&events, "TOOL_CALL_START")["parentMessageId"],
        "role": "assistant", "toolCalls": [{"id": "c1", "type": "function",
            "function": {"name": "open", "arguments": "{}"}}]});
    let mut result = sent.clone();
    result["runId"] = "r2".into();
    result["messages"] = json!([sent["messages"][0], call_message,
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "done", "error": "stuck"}]);
    let events = talk(&stage, "caller", &result).await;
    let second = find(&events, "TOOL_CALL_START")["toolCallId"].clone();
    let kept = Reader::open(&stage, connect("caller", "t1")).await.rest().await;
    let messages = kept[1]["messages"].as_array().unwrap();
    let said: Vec<(&str, &Value)> =
        messages.iter().map(|one| (one["role"].as_str().unwrap(), &one["toolCallId"])).collect();
    let none = Value::Null;
    assert_eq!(
        said,
        [("user", &none), ("assistant", &none), ("tool", &json!("c1")), ("assistant", &none)]
    );
    assert_eq!(messages[0]["id"], "user-r1");
    assert_eq!(
        messages[2],
        json!({"id": "t1", "role": "tool", "toolCallId": "c1", "content": "done", "error": "stuck"})
    );
    assert_ne!(second, "c1");
}

#[tokio::test]
async fn a_tool_of_the_client_cannot_have_the_name_of_a_granted_one() {
    let stage = Stage::open(
        "[agents.clerk]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n\
         grant = { modules = [\"calendar.*\"] }\n",
    )
    .await;
    // The grant is known once the runner has started.
    talk(&stage, "clerk", &steps("t0", "r0", json!([["end"]]))).await;
    let mut sent = steps("t1", "r1", json!([["end"]]));
    sent["tools"] = json!([{"name": "project_cli", "description": "mine"}]);
    let (status, body) = refused(&stage, request("clerk", &sent)).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_argument")));
    assert!(body["error"]["message"].as_str().unwrap().contains("`project_cli`"), "{body}");
    sent["tools"] = json!([{"name": "open"}, {"name": "open"}]);
    assert_eq!(refused(&stage, request("clerk", &sent)).await.0, 400);
    assert_eq!(stage.api.runs().await.len(), 1);
}

/// The texts of users in a page.
fn texts(answer: &Value) -> Vec<String> {
    let items = answer["result"]["items"].as_array().unwrap().iter();
    let users = items.filter(|item| item["role"] == "user");
    let mut texts: Vec<String> =
        users.map(|item| item["text"].as_str().unwrap().to_owned()).collect();
    texts.sort();
    texts
}

/// Says something to the agent with these messages before it; the texts that its run sees in its history.
async fn view(stage: &Stage, name: &str, thread: &str, messages: Value) -> (Vec<String>, Value) {
    let mut sent = input(thread, &format!("run-{name}"), "");
    sent["messages"] = messages;
    let events = talk(stage, name, &sent).await;
    let page = texts(&stage.told(&format!("{name}.page")).await);
    (page, events[0].clone())
}

#[tokio::test]
async fn an_edited_message_replaces_what_came_after_it_in_the_view_of_the_run() {
    let names = ["one", "two", "edit", "after", "back", "short"];
    let agents: String = names.iter().map(|name| reader_of_history(name)).collect();
    let stage = Stage::open(&agents).await;
    let (page, one) = view(&stage, "one", "t", json!([user("u1", "word one")])).await;
    assert_eq!(page, [""; 0]);
    let a1 = answered(&one, "a");
    let (page, two) =
        view(&stage, "two", "t", json!([user("u1", "word one"), a1, user("u2", "word two")])).await;
    assert_eq!(page, ["word one"]);
    // The second message again, with another text.
    let edited = json!([user("u1", "word one"), a1, user("u2", "word edited")]);
    let (page, edit) = view(&stage, "edit", "t", edited).await;
    assert_eq!(page, ["word one"]);
    let after = json!([
        user("u1", "word one"),
        a1,
        user("u2", "word edited"),
        answered(&edit, "b"),
        user("u3", "word after")
    ]);
    assert_eq!(view(&stage, "after", "t", after).await.0, ["word edited", "word one"]);
    // A client that reconnects sees its own branch.
    let kept = Reader::open(&stage, connect("after", "t")).await.rest().await;
    let shown = kept[1]["messages"].to_string();
    assert!(shown.contains("word after") && !shown.contains("word two"), "{shown}");
    // From the first branch on: what came instead of it is replaced.
    let back = json!([
        user("u1", "word one"),
        a1,
        user("u2", "word two"),
        answered(&two, "c"),
        user("u4", "word back")
    ]);
    assert_eq!(view(&stage, "back", "t", back).await.0, ["word one", "word two"]);
    // The newest message alone continues the newest branch.
    let short = view(&stage, "short", "t", json!([user("u5", "word short")])).await.0;
    assert_eq!(short, ["word back", "word one", "word two"]);
    // Nothing was removed.
    let history = stage.api.history("t").await;
    assert_eq!(history.iter().filter(|item| item.event_id.is_some() && item.seq > 0).count(), 12);
}

#[tokio::test]
async fn the_clients_state_changes_in_its_own_shape() {
    let stage = Stage::open("").await;
    let patch = json!([{"op": "add", "path": "/list/-", "value": 2}]);
    let wrong = json!([{"op": "remove", "path": "/nothing"}]);
    let played = json!([
        ["result", "client.state.delta", {"patch": patch}],
        ["result", "client.state.delta", {"patch": wrong}],
        ["result", "client.state.snapshot", {"state": {"new": true}}],
        ["end"]
    ]);
    let mut sent = steps("t1", "r1", played);
    sent["state"] = json!({"list": [1]});
    let events = talk(&stage, "puppet", &sent).await;
    let expected = [
        json!({"type": "STATE_DELTA", "delta": patch}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": {"new": true}}),
    ];
    assert_eq!(events[1..3], expected);
    assert_eq!(events.len(), 4);
    // A client that comes back has the changes already: they begin where the run began.
    sent["state"] = json!({"new": true});
    let events = talk(&stage, "puppet", &sent).await;
    assert_eq!(events[1], json!({"type": "STATE_SNAPSHOT", "snapshot": {"list": [1]}}));
    assert_eq!(events[2..4], expected);
    assert_eq!(stage.api.runs().await.len(), 1);
}
