//! Workspace, bot, conversation and thread make a session (seed 000 §11, seed 003 §6; issue 23, point 2): state of the
//! scope conversation, history, events, artifacts, search and steering follow it.

use crate::stage::{ALL, Stage, agent, event, on_both_databases};
use crate::wire::{Run, Wire};
use greenroom_protocol::ErrorCode;
use serde_json::{Value, json};

on_both_databases!(a_thread_is_a_border, a_grant_may_reach_the_whole_conversation);

/// A session of the conversation `c`, as fields of an event.
type Session = (Option<&'static str>, Option<&'static str>);

const FIRST: Session = (None, Some("t1"));
/// Every other session of the conversation, the one without bot and thread too.
const OTHERS: [Session; 4] =
    [(Some("b"), Some("t1")), (None, Some("t2")), (None, None), (Some("b"), None)];

fn event_in(agent: &str, (bot, thread): Session, text: &str) -> Value {
    let mut event = event(agent, "c");
    event["input"]["text"] = text.into();
    for (key, value) in [("bot_id", bot), ("thread_id", thread)] {
        if let Some(value) = value {
            event[key] = value.into();
        }
    }
    event
}

/// What a run left behind: its event, an artifact, and what it said.
struct Left {
    event_id: String,
    artifact_id: String,
}

/// A run that leaves state, an artifact, a message and a tool call in its session.
async fn leave(stage: &Stage, wire: &Wire, agent: &str, session: Session) -> Left {
    let run = stage.start(wire, &event_in(agent, session, "about whales")).await;
    let state = json!({"scope": "conversation", "key": "external.session_id", "value": "abc"});
    wire.call_for(&run.id, "state.set", state).await.unwrap();
    let file = json!({"name": "whales.txt", "content_base64": "d2hhbGVz"});
    let artifact = wire.call_for(&run.id, "artifacts.create", file).await.unwrap();
    let call = json!({"tool_call_id": "t", "tool_name": "look", "result": "whales here"});
    wire.result(&run, "tool.call.completed", call).await;
    let message = json!({"message": {"role": "assistant", "content": "whales are large"}});
    wire.result(&run, "message.completed", message).await;
    stage.end(wire, &run).await;
    Left {
        event_id: run.context["event"]["event_id"].as_str().unwrap().to_owned(),
        artifact_id: artifact["artifact_id"].as_str().unwrap().to_owned(),
    }
}

/// Everything of `left` that a run sees, by the way it looks.
async fn seen(wire: &Wire, run: &Run, left: &Left) -> Vec<&'static str> {
    let mut seen = Vec::new();
    let mut look = |way, found: bool| seen.extend(found.then_some(way));
    look("state", run.context["state"]["conversation"] != json!({}));
    look("has_history_before", run.context["context"]["has_history_before"] == true);
    let texts = |page: &Value| page["items"].as_array().unwrap().len();
    let page = wire.call_for(&run.id, "history.page", json!({})).await.unwrap();
    look("history.page", texts(&page) > 0);
    let params = json!({"query": "whales", "top_k": 9});
    let page = wire.call_for(&run.id, "history.search", params).await.unwrap();
    look("history.search", texts(&page) > 0);
    let page = wire.call_for(&run.id, "events.page", json!({})).await.unwrap();
    // Its own event is in the log.
    look("events.page", texts(&page) > 1);
    let calls = [
        ("events.get", json!({"event_id": left.event_id})),
        ("artifacts.metadata", json!({"artifact_id": left.artifact_id})),
        ("artifacts.read_range", json!({"artifact_id": left.artifact_id})),
        ("artifacts.open_stream", json!({"artifact_id": left.artifact_id})),
    ];
    for (method, params) in calls {
        let answer = wire.call_for(&run.id, method, params).await;
        if let Err(error) = &answer {
            assert_eq!(error.code, ErrorCode::NotFound, "{method}: {error:?}");
        }
        look(method, answer.is_ok());
    }
    let params = json!({"scope": "conversation", "key": "external.session_id"});
    let value = wire.call_for(&run.id, "state.get", params).await.unwrap();
    look("state.get", !value["value"].is_null());
    seen
}

const WAYS: [&str; 10] = [
    "state",
    "has_history_before",
    "history.page",
    "history.search",
    "events.page",
    "events.get",
    "artifacts.metadata",
    "artifacts.read_range",
    "artifacts.open_stream",
    "state.get",
];

async fn a_thread_is_a_border(postgres: Option<&str>) {
    let agents = agent("all", "plugin:test/first/main", "", ALL);
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let left = leave(&stage, &wire, "all", FIRST).await;
    for session in OTHERS {
        let run = stage.start(&wire, &event_in("all", session, "anything?")).await;
        assert_eq!(seen(&wire, &run, &left).await, [""; 0], "{session:?}");
        // Nor does it steer or name its way in.
        let params = json!({"query": "whales", "filters": {"thread_id": "t1"}});
        let found = wire.call_for(&run.id, "history.search", params).await;
        let is_empty = |page: &Value| page["items"] == json!([]);
        assert!(found.as_ref().map_or(true, is_empty), "{session:?}: {found:?}");
        stage.end(&wire, &run).await;
    }
    let again = stage.start(&wire, &event_in("all", FIRST, "and now?")).await;
    assert_eq!(seen(&wire, &again, &left).await, WAYS);
    stage.end(&wire, &again).await;
}

async fn a_grant_may_reach_the_whole_conversation(postgres: Option<&str>) {
    let together = format!("{ALL}, threads = \"together\"");
    let agents = agent("wide", "plugin:test/first/main", "", &together);
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let left = leave(&stage, &wire, "wide", FIRST).await;
    for session in OTHERS {
        let run = stage.start(&wire, &event_in("wide", session, "anything?")).await;
        assert_eq!(seen(&wire, &run, &left).await, WAYS, "{session:?}");
        stage.end(&wire, &run).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_another_session_does_not_steer() {
    let agents = agent("steered", "plugin:test/first/main", "queue = \"steer\"", ALL);
    let stage = Stage::open(&["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let run = stage.start(&wire, &event_in("steered", FIRST, "first")).await;
    let same = stage.api.send_event(&event_in("steered", FIRST, "more")).await;
    assert_eq!(same.status, "steered");
    for session in OTHERS {
        let other = stage.api.send_event(&event_in("steered", session, "else")).await;
        assert_eq!(other.status, "queued", "{session:?}");
    }
    wire.finish(&run).await;
}
