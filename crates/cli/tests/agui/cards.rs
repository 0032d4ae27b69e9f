//! Buttons of cards: a press is an event of its own that calls the method of the button.

use crate::reader::{Reader, input, refused, request, talk};
use crate::stage::Stage;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

const OLDER: &str = "https://a2ui.org/specification/v0_9/basic_catalog.json";
const SPECIFIED: &str = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json";
const CREATE: &str = r#"/calendar.create {"title": "Sync", "start_at": "2026-04-21T10:00:00+08:00", "end_at": "2026-04-21T12:00:00+08:00"}"#;
const READ: &str = r#"/calendar.read {"mode": "range", "start_at": "2026-04-21T00:00:00+08:00", "end_at": "2026-04-22T00:00:00+08:00"}"#;

fn find<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{events:#?}"))
}

/// The input of a press, with the messages that a client has by then.
fn press(run: &str, name: &str, context: Value) -> Value {
    let mut pressed = input("t1", run, CREATE);
    let answer = json!({"id": "a1", "role": "assistant", "content": "Event created."});
    pressed["messages"].as_array_mut().unwrap().push(answer);
    pressed["forwardedProps"] = json!({"a2uiAction": {"userAction": {"name": name,
        "surfaceId": "s1", "sourceComponentId": "delete", "context": context}}});
    pressed
}

/// The titles of the events on the day.
async fn titles(stage: &Stage, run: &str) -> Vec<String> {
    let events = talk(stage, "assistant", &input("t2", run, READ)).await;
    let content = find(&events, "TOOL_CALL_RESULT")["content"].as_str().unwrap();
    let read: Value = serde_json::from_str(content).unwrap();
    let items = read["data"]["items"].as_array().unwrap().iter();
    items.map(|item| item["title"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_pressed_button_calls_its_method_with_approval_and_repeats_no_message() {
    let stage = Stage::open("").await;
    let events = talk(&stage, "assistant", &input("t1", "r1", CREATE)).await;
    let card = find(&events, "ACTIVITY_SNAPSHOT")["content"].to_string();
    assert!(card.contains("\"name\":\"calendar.delete\""), "{card}");
    let content = find(&events, "TOOL_CALL_RESULT")["content"].as_str().unwrap();
    let made: Value = serde_json::from_str(content).unwrap();
    let id = made["data"]["id"].as_str().unwrap();
    assert_eq!(titles(&stage, "q1").await, ["Sync"]);
    // Deleting needs an approval, as the command does.
    let pressed = press("r2", "calendar.delete", json!({"event_id": id}));
    let events = talk(&stage, "assistant", &pressed).await;
    let finished = find(&events, "RUN_FINISHED");
    assert_eq!(finished["outcome"]["type"], "interrupt", "{events:#?}");
    let interrupt = finished["outcome"]["interrupts"][0]["id"].as_str().unwrap();
    assert_eq!(titles(&stage, "q2").await, ["Sync"]);
    let mut resumed = press("r3", "calendar.delete", json!({"event_id": id}));
    resumed["forwardedProps"] = json!({});
    resumed["resume"] = json!([{"interruptId": interrupt, "status": "resolved",
        "payload": {"approved": true}}]);
    let events = talk(&stage, "assistant", &resumed).await;
    let result = find(&events, "TOOL_CALL_RESULT")["content"].to_string();
    assert!(result.contains("deleted"), "{result}");
    assert_eq!(titles(&stage, "q3").await, [""; 0]);
    // The same press again is the same run.
    let again = Reader::open(&stage, request("assistant", &pressed)).await.rest().await;
    assert_eq!(find(&again, "RUN_FINISHED")["outcome"]["type"], "success", "{again:#?}");
    let log = stage.api.json(Request::get("/v1/events?conversation_id=t1")).await.unwrap().1;
    let types: Vec<&str> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["source"] == "agui")
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(types.len(), 2, "{log}");
    assert!(types.contains(&"card.action") && types.contains(&"message.received"), "{types:?}");
}

#[tokio::test]
async fn a_button_of_an_unknown_action_is_for_the_model() {
    let stage = Stage::open("").await;
    let pressed = press("r1", "shop.order", json!({"item": 7}));
    let events = talk(&stage, "assistant", &pressed).await;
    assert_eq!(find(&events, "RUN_FINISHED")["outcome"]["type"], "success", "{events:#?}");
    let calls = events.iter().filter(|event| event["type"] == "TOOL_CALL_START").count();
    assert_eq!(calls, 0, "{events:#?}");
    assert!(events.iter().any(|event| event["type"] == "TEXT_MESSAGE_CONTENT"), "{events:#?}");
    let mut nameless = pressed.clone();
    nameless["runId"] = "r2".into();
    nameless["forwardedProps"]["a2uiAction"]["userAction"] = json!({"context": {}});
    let (status, body) = refused(&stage, request("assistant", &nameless)).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_argument")), "{body}");
}

#[tokio::test]
async fn an_answered_message_is_not_answered_again() {
    let stage = Stage::open("").await;
    talk(&stage, "assistant", &input("t1", "r1", CREATE)).await;
    let mut empty = press("r2", "x", json!({}));
    empty["forwardedProps"] = json!({});
    let (status, body) = refused(&stage, request("assistant", &empty)).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_argument")), "{body}");
    assert_eq!(titles(&stage, "q1").await, ["Sync"]);
}

#[tokio::test]
async fn cards_have_the_catalogue_that_the_client_knows() {
    let stage = Stage::open("").await;
    let declared =
        |ids: Value| json!({"a2uiClientCapabilities": {"v0.9": {"supportedCatalogIds": ids}}});
    let cases = [
        ("r1", Some("1.0"), json!({}), SPECIFIED),
        ("r2", None, json!({}), OLDER),
        ("r3", Some("1.0"), declared(json!([OLDER])), OLDER),
        ("r4", None, declared(json!(["https://example.com/own.json", SPECIFIED])), SPECIFIED),
    ];
    for (run, version, props, expected) in cases {
        let mut sent = input(run, run, READ);
        match version {
            Some(version) => sent["protocolVersion"] = version.into(),
            None => drop(sent.as_object_mut().unwrap().remove("protocolVersion")),
        }
        sent["forwardedProps"] = props;
        let events = talk(&stage, "assistant", &sent).await;
        let surface = |event: &Value, at: &str| {
            event.pointer(at).unwrap_or_else(|| panic!("{event}"))["createSurface"]["catalogId"]
                .clone()
        };
        let card = find(&events, "ACTIVITY_SNAPSHOT");
        assert_eq!(surface(card, "/content/a2ui_operations/0"), expected, "{run}");
        let result = find(&events, "TOOL_CALL_RESULT");
        assert_eq!(surface(result, "/metadata/ui_schema/operations/0"), expected, "{run}");
        // And in the stored thread.
        let target = "/v1/agui/agent/assistant/connect";
        let connect = Request::post(target, sent.to_string()).header("accept", "text/event-stream");
        let events = Reader::open(&stage, connect).await.rest().await;
        let messages = find(&events, "MESSAGES_SNAPSHOT")["messages"].to_string();
        assert!(messages.contains(&format!("\"catalogId\":\"{expected}\"")), "{messages}");
    }
}

#[tokio::test]
async fn the_results_of_a_run_have_the_card_of_a_completed_call() {
    let stage = Stage::open("").await;
    talk(&stage, "assistant", &input("t1", "r1", CREATE)).await;
    let runs = stage.api.json(Request::get("/v1/runs?conversation_id=t1")).await.unwrap().1;
    let run_id = runs["items"][0]["run_id"].as_str().unwrap();
    let path = format!("/v1/runs/{run_id}/results");
    let page = stage.api.json(Request::get(path.as_str())).await.unwrap().1;
    let items = page["items"].as_array().unwrap();
    let called = items.iter().find(|item| item["type"] == "tool.call.completed").unwrap();
    let card = &called["data"]["ui_schema"];
    assert!(card["operations"].is_array(), "{called}");
    assert!(card.to_string().contains("calendar.delete"), "{card}");
    assert!(!page.to_string().contains("ui_hints"), "{page}");
    // The same in the stream of a reader, in the language that it asks for.
    let streamed = async |language: &str| {
        let request = Request::get(path.as_str())
            .header("accept", "text/event-stream")
            .header("accept-language", language);
        let body = stage.api.send(request).await.unwrap().body().await.unwrap();
        let text = String::from_utf8(body).unwrap();
        let of_call = text.split("\n\n").find(|it| it.starts_with("event: tool.call.completed"));
        let data = of_call.unwrap().lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str::<Value>(data).unwrap()["data"]["ui_schema"].clone()
    };
    assert_eq!(streamed("en").await, *card);
    let chinese = streamed("zh-CN").await;
    assert_ne!(chinese, *card);
    assert!(chinese.to_string().contains("calendar.delete"), "{chinese}");
}
