//! What a run's results look like, what goes in, and what is refused.

use crate::reader::{Reader, find, input, kinds, refused, request, steps, talk, text};
use crate::stage::Stage;
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

const CLERK: &str = r#"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
grant = { modules = ["calendar.*"], state = ["conversation"] }
"#;

#[tokio::test]
async fn a_message_is_answered_as_it_comes() {
    let stage = Stage::open("").await;
    let sent = steps(
        "t1",
        "r1",
        json!([["say", "one "], ["say", "two"], ["message", "one two"], ["end"]]),
    );
    let events = talk(&stage, "puppet", &sent).await;
    let run_id = events[0]["metadata"]["greenroom"]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(
        events[0],
        json!({"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0",
            "metadata": {"greenroom": {"run_id": run_id}}})
    );
    assert_eq!(text(&events), "one two");
    assert_eq!(kinds(&events)[1], "TEXT_MESSAGE_START");
    assert_eq!(kinds(&events)[events.len() - 2], "TEXT_MESSAGE_END");
    assert_eq!(
        events[events.len() - 1],
        json!({"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1",
            "result": {"run_id": run_id, "finish_reason": "stop"}, "outcome": {"type": "success"}})
    );
    assert_eq!(stage.api.answers("t1").await, ["one two"]);
    // The same input again: the same run, told from its beginning.
    assert_eq!(text(&talk(&stage, "puppet", &sent).await), "one two");
    assert_eq!(stage.api.runs().await.len(), 1);
}

#[tokio::test]
async fn a_tool_has_its_arguments_its_result_and_its_card() {
    let stage = Stage::open(CLERK).await;
    let made = json!({"module": "calendar", "method": "create", "input": {"title": "Sync",
        "start_at": "2026-04-21T10:00:00+08:00", "end_at": "2026-04-21T11:00:00+08:00"}});
    let call = json!({"tool_name": "project_cli", "parameters": made, "tool_call_id": "c1"});
    let asked = json!({"tool_call_id": "c1", "tool_name": "project_cli", "parameters": made});
    let told =
        json!({"tool_call_id": "c1", "tool_name": "project_cli", "result": "what the runner says"});
    let played = json!([
        ["result", "tool.call.started", asked],
        ["call", "tools.call", call, "made"],
        ["result", "tool.call.completed", told],
        ["message", "done"],
        ["end"]
    ]);
    let sent = steps("t1", "r1", played);
    let events = talk(&stage, "clerk", &sent).await;
    assert_eq!(
        kinds(&events),
        [
            "RUN_STARTED",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "ACTIVITY_SNAPSHOT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED"
        ]
    );
    let arguments: Value = serde_json::from_str(events[2]["delta"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, made);
    let result = &events[4];
    let output = &result["metadata"]["tool_agent_output"];
    let content: Value = serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
    assert_eq!((&content, &output["status"]), (&output["result"], &json!("success")));
    assert_eq!(content["data"]["title"], "Sync");
    assert_eq!(output.get("ui_hints"), None);
    let operations = &result["metadata"]["ui_schema"]["operations"];
    assert!(operations.as_array().unwrap().len() > 1, "{result}");
    assert_eq!(
        events[5],
        json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a2ui-surface-c1", "activityType": "a2ui-surface",
            "replace": true, "content": {"a2ui_operations": operations}})
    );
    let end = find(&events, "TEXT_MESSAGE_END");
    assert_eq!(end.as_object().unwrap().len(), 2, "no user interface: {end}");
    // Whoever reads Chinese sees the same card in Chinese, live and in the history.
    assert!(operations.to_string().contains("Event created"), "{operations}");
    let history = || Request::get("/v1/conversations/t1/history");
    for (tag, word) in [("zh-CN,zh;q=0.9,en;q=0.8", "日程已创建"), ("en", "Event created")] {
        let again = request("clerk", &sent).header("accept-language", tag);
        let events = Reader::open(&stage, again).await.rest().await;
        let card = find(&events, "ACTIVITY_SNAPSHOT")["content"].to_string();
        assert!(card.contains(word), "{card}");
        let (_, page) = stage.api.json(history().header("accept-language", tag)).await.unwrap();
        assert!(page.to_string().contains(word), "{page}");
    }
}

#[tokio::test]
async fn state_and_artifacts_are_told() {
    let stage = Stage::open(CLERK).await;
    let state = json!({"scope": "conversation", "key": "mood", "value": "good"});
    let file = json!({"name": "a.txt", "mime_type": "text/plain", "content_base64": "aGVsbG8="});
    let played =
        json!([["result", "state.updated", state], ["result", "artifact.created", file], ["end"]]);
    let events = talk(&stage, "clerk", &steps("t1", "r1", played)).await;
    assert_eq!(
        find(&events, "STATE_DELTA")["delta"],
        json!([{"op": "add", "path": "/conversation", "value": {}},
            {"op": "add", "path": "/conversation/mood", "value": "good"}])
    );
    let made = &find(&events, "CUSTOM")["value"];
    let id = made["artifact_id"].as_str().unwrap();
    assert_eq!(
        (&made["name"], &made["url"]),
        (&json!("a.txt"), &json!(format!("/v1/artifacts/{id}")))
    );
}

#[tokio::test]
async fn what_a_client_says_beside_its_message_reaches_the_runner() {
    let stage = Stage::open("").await;
    let mut sent = steps("t1", "r1", json!([["tell", "adapter"], ["tell", "actor"], ["end"]]));
    sent["state"] = json!({"page": 3});
    sent["context"] = json!([{"description": "where", "value": "home"}]);
    sent["tools"] = json!([{"name": "open", "description": "opens", "parameters": {}}]);
    sent["forwardedProps"] = json!({"theme": "dark"});
    talk(&stage, "puppet", &sent).await;
    let answers = stage.api.answers("t1").await;
    let adapter: Value = serde_json::from_str(&answers[0]).unwrap();
    assert_eq!(
        adapter,
        json!({"name": "agui", "extra": {"state": {"page": 3}, "forwardedProps": {"theme": "dark"},
            "context": [{"description": "where", "value": "home"}],
            "tools": [{"name": "open", "description": "opens", "parameters": {}}]}})
    );
    let actor: Value = serde_json::from_str(&answers[1]).unwrap();
    assert_eq!((&actor["actor_type"], &actor["actor_id"]), (&json!("user"), &json!("admin")));
}

#[tokio::test]
async fn pictures_come_in_with_the_message() {
    let stage = Stage::open(
        "[agents.teller]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n\
         config = { steps = '[[\"tell\", \"input\"], [\"end\"]]' }\n",
    )
    .await;
    let mut sent = input("t1", "r1", "");
    sent["messages"][0]["content"] = json!([{"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}]);
    talk(&stage, "teller", &sent).await;
    let told: Value = serde_json::from_str(&stage.api.answers("t1").await[0]).unwrap();
    assert_eq!(told["text"], "look");
    let image = json!({"type": "image", "data_base64": "iVBORw0KGgo=", "mime_type": "image/png"});
    assert_eq!(told["contents"], json!([{"type": "text", "text": "look"}, image]));
}

#[tokio::test]
async fn a_run_that_fails_or_is_cancelled_ends_as_its_client_can_read_it() {
    let stage = Stage::open("").await;
    let failing =
        json!([["say", "a"], ["result", "run.failed", {"code": "my.code", "message": "why"}]]);
    let events = talk(&stage, "puppet", &steps("t1", "r1", failing)).await;
    assert_eq!(kinds(&events)[events.len() - 2..], ["TEXT_MESSAGE_END", "RUN_ERROR"]);
    let error = json!({"type": "RUN_ERROR", "code": "my.code", "message": "why"});
    assert_eq!(events[events.len() - 1], error);
    for (run, version) in [("r2", Some("1.0")), ("r3", None)] {
        let mut sent = steps(run, run, json!([["say", "a"], ["hang"]]));
        if version.is_none() {
            sent.as_object_mut().unwrap().remove("protocolVersion");
        }
        let mut reader = Reader::open(&stage, request("puppet", &sent)).await;
        let started = reader.next().await.unwrap();
        assert_eq!(started.get("protocolVersion"), version.map(Value::from).as_ref());
        reader.until("TEXT_MESSAGE_CONTENT").await;
        stage.cancel(started["metadata"]["greenroom"]["run_id"].as_str().unwrap()).await;
        let events = reader.rest().await;
        let last = &events[events.len() - 1];
        match version {
            Some(_) => assert_eq!(last["outcome"], json!({"type": "cancelled"}), "{last}"),
            None => assert_eq!(
                (&last["type"], &last["code"]),
                (&json!("RUN_ERROR"), &json!("cancelled"))
            ),
        }
    }
}

#[tokio::test]
async fn a_key_is_for_one_thread_and_one_agent() {
    let stage = Stage::open(CLERK).await;
    talk(&stage, "puppet", &steps("t1", "r1", json!([["end"]]))).await;
    for (agent, thread) in [("puppet", "t2"), ("clerk", "t1")] {
        let sent = steps(thread, "r1", json!([["end"]]));
        let (status, body) = refused(&stage, request(agent, &sent)).await;
        assert_eq!((status, &body["error"]["code"]), (409, &json!("invalid_argument")), "{agent}");
    }
    assert_eq!(stage.api.runs().await.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_taken_is_refused_and_starts_nothing() {
    let stage = Stage::open("").await;
    let nobody = refused(&stage, request("nobody", &input("t", "r", "hi"))).await;
    assert_eq!((nobody.0, &nobody.1["error"]["code"]), (404, &json!("not_found")));
    for sent in [json!([]), json!({}), json!({"threadId": "t", "runId": "r", "messages": []})] {
        assert_eq!(refused(&stage, request("puppet", &sent)).await.0, 400, "{sent}");
    }
    let mut plain = request("puppet", &input("t", "r", "hi"));
    plain.headers.retain(|(name, _)| *name != "content-type");
    let plain = plain.header("content-type", "text/plain");
    assert_eq!(refused(&stage, plain).await.0, 415);
    assert_eq!(stage.api.runs().await.len(), 0);
}

#[tokio::test]
async fn results_of_the_clients_own_tools_start_a_run() {
    let stage = Stage::open(
        "[agents.teller]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n\
         config = { steps = '[[\"tell\", \"event\"], [\"end\"]]' }\n",
    )
    .await;
    let mut sent = input("t1", "r1", "open it");
    sent["messages"].as_array_mut().unwrap().extend([
        json!({"id": "a", "role": "assistant", "toolCalls": []}),
        json!({"id": "b", "role": "tool", "toolCallId": "c1", "content": "it is open"}),
    ]);
    let events = talk(&stage, "teller", &sent).await;
    let told: Value = serde_json::from_str(&text(&events)).unwrap();
    assert_eq!(told["event_type"], "tool.result.received");
    let results = json!([{"tool_call_id": "c1", "content": "it is open", "message_id": "b"}]);
    assert_eq!(told["data"], json!({"results": results}));
    assert_eq!(stage.api.runs().await[0].status, RunStatus::Completed);
}

#[tokio::test]
async fn a_long_thread_and_a_large_picture_come_in_and_a_long_text_does_not() {
    let stage = Stage::open_with(
        "cancel_grace_s = 1\nevent_bytes = 65_536\nagui_bytes = 1_048_576",
        "[agents.teller]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n\
         config = { steps = '[[\"tell\", \"input\"], [\"end\"]]' }\n",
    )
    .await;
    let mut sent = input("t1", "r1", "");
    // A picture of 60 KB: its signature, then nothing.
    let picture = format!("iVBORw0KGgo{}", "A".repeat(80_001));
    sent["messages"][0]["content"] = json!([{"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "data", "value": picture, "mimeType": "image/png"}}]);
    let earlier = json!({"id": "e", "role": "assistant", "content": "x".repeat(200_000)});
    sent["messages"].as_array_mut().unwrap().insert(0, earlier);
    talk(&stage, "teller", &sent).await;
    let told: Value = serde_json::from_str(&stage.api.answers("t1").await[0]).unwrap();
    let kept = &told["contents"][1];
    assert!(kept["artifact_id"].is_string() && kept.get("data_base64").is_none(), "{kept}");
    let long = "x".repeat(70_000);
    assert_eq!(refused(&stage, request("teller", &input("t1", "r2", &long))).await.0, 413);
    let mut large = input("t1", "r3", "hi");
    large["forwardedProps"] = json!({"long": long});
    assert_eq!(refused(&stage, request("teller", &large)).await.0, 413);
    let endless = input("t1", "r4", &"x".repeat(1_100_000));
    assert_eq!(refused(&stage, request("teller", &endless)).await.0, 413);
    assert_eq!(stage.api.runs().await.len(), 1);
}
