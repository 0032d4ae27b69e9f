//! What a sender may read: the conversations that it began, and nothing of those of others.

use crate::stage::{ANN, BRIDGE, LIMITED, SENDER, Stage};
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

const TOKENS: &str = r#"
[tokens.ann]
role = "sender"
actors = "ann"
token = { file = "ann" }

[tokens.bridge]
role = "sender"
actors = "any"
token = { file = "bridge" }
"#;

fn message(conversation: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "event_id": format!("e-{conversation}"), "agent": "echo",
        "conversation_id": conversation, "input": {"text": text}})
}

/// Sends a message and waits for the end of its run.
async fn say(stage: &Stage, token: &str, event: &Value) -> String {
    let request = Request::post("/v1/events", event.to_string());
    let reply = stage.ask_as(Some(token), request).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let run_id = reply.body["run_id"].as_str().unwrap().to_owned();
    stage.api().ended_run(&run_id).await;
    run_id
}

async fn read(stage: &Stage, token: &str, target: &str) -> (u16, Value) {
    let reply = stage.ask_as(Some(token), Request::get(target)).await;
    (reply.status, reply.body)
}

/// One field of the items of a list.
fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

/// What there is to read of a conversation.
fn targets(conversation: &str) -> [String; 6] {
    [
        format!("/v1/conversations/{conversation}/history"),
        format!("/v1/conversations/{conversation}/search?q=hello"),
        format!("/v1/events?conversation_id={conversation}"),
        format!("/v1/runs?conversation_id={conversation}"),
        format!("/v1/artifacts?conversation_id={conversation}"),
        format!("/v1/search?q=hello&conversation_id={conversation}"),
    ]
}

#[tokio::test]
async fn a_sender_reads_the_conversations_that_it_began() {
    let stage = Stage::start().await;
    let run_id = say(&stage, LIMITED, &message("mine", "hello from the website")).await;
    say(&stage, &stage.admin, &message("theirs", "hello from the office")).await;
    // Whoever joins later began nothing.
    let joined = json!({"event_type": "message.received", "agent": "echo",
        "conversation_id": "mine", "input": {"text": "hello as well"}});
    say(&stage, SENDER, &joined).await;
    let list = async |token| read(&stage, token, "/v1/conversations").await.1;
    assert_eq!(each(&list(LIMITED).await, "conversation_id"), ["mine"]);
    assert_eq!(list(SENDER).await["items"], json!([]));
    assert_eq!(list(&stage.admin).await["items"].as_array().unwrap().len(), 2);
    let [history, search, events, runs, _, _] = targets("mine");
    let (status, page) = read(&stage, LIMITED, &history).await;
    assert_eq!(status, 200, "{page}");
    let said =
        ["hello from the website", "hello from the website", "hello as well", "hello as well"];
    assert_eq!(each(&page, "text"), said);
    assert_eq!(read(&stage, LIMITED, &search).await.1["items"].as_array().unwrap().len(), 4);
    assert_eq!(each(&read(&stage, LIMITED, &events).await.1, "event_id").len(), 2);
    assert!(each(&read(&stage, LIMITED, &runs).await.1, "run_id").contains(&run_id.as_str()));
    let found = read(&stage, LIMITED, "/v1/search?q=hello").await.1;
    assert_eq!(each(&found, "conversation_id"), ["mine"; 4]);
    assert_eq!(read(&stage, LIMITED, "/v1/events/e-mine").await.0, 200);
    for target in ["/v1/runs", "/v1/events", "/v1/artifacts", "/v1/state", "/v1/audit"] {
        assert_eq!(read(&stage, LIMITED, target).await.0, 403, "{target}");
    }
}

#[tokio::test]
async fn a_conversation_of_others_looks_like_one_that_does_not_exist() {
    let stage = Stage::start().await;
    say(&stage, &stage.admin, &message("theirs", "hello from the office")).await;
    let upload = Request::post("/v1/artifacts?name=a.txt&conversation_id=theirs", "hello");
    assert_eq!(stage.ask(upload).await.status, 201);
    for (theirs, nowhere) in targets("theirs").iter().zip(&targets("nowhere")) {
        for token in [SENDER, LIMITED] {
            let hidden = read(&stage, token, theirs).await;
            assert_eq!(hidden, read(&stage, token, nowhere).await, "{theirs}");
            assert!(!hidden.1.to_string().contains("office"), "{hidden:?}");
        }
        assert_ne!(read(&stage, &stage.admin, theirs).await.1["items"], json!([]), "{theirs}");
    }
    for token in [SENDER, LIMITED] {
        let hidden = read(&stage, token, "/v1/events/e-theirs").await;
        assert_eq!(hidden, read(&stage, token, "/v1/events/e-nowhere").await);
        assert_eq!(read(&stage, token, "/v1/search?q=hello").await.1["items"], json!([]));
    }
}

#[tokio::test]
async fn attachments_of_its_own_conversation_are_found_again() {
    let stage = Stage::start().await;
    let upload = Request::post("/v1/artifacts?name=a.txt", "some bytes");
    let kept = stage.ask_as(Some(LIMITED), upload.header("content-type", "text/plain")).await;
    assert_eq!(kept.status, 201, "{kept:?}");
    let id = kept.body["artifact_id"].as_str().unwrap();
    let mut event = message("mine", "look");
    event["input"]["attachments"] = json!([{"artifact_id": id, "artifact_type": "file"}]);
    say(&stage, LIMITED, &event).await;
    let (_, list) = read(&stage, LIMITED, "/v1/artifacts?conversation_id=mine").await;
    assert_eq!(each(&list, "artifact_id"), [id]);
    let (status, bytes) = read(&stage, LIMITED, &format!("/v1/artifacts/{id}")).await;
    assert_eq!((status, bytes), (200, json!("some bytes")));
}

#[tokio::test]
async fn a_token_of_one_actor_speaks_for_that_actor_alone() {
    let stage = Stage::with(TOKENS).await;
    let actor_of = async |event_id: &str| {
        stage.get(&format!("/v1/events/{event_id}")).await.body["event"]["actor"].clone()
    };
    say(&stage, ANN, &message("none", "nobody is named")).await;
    let actor = actor_of("e-none").await;
    assert_eq!((&actor["actor_type"], &actor["actor_id"]), (&json!("user"), &json!("ann")));
    let mut event = message("named", "hi");
    event["actor"] = json!({"actor_type": "bot", "actor_id": "ann"});
    say(&stage, ANN, &event).await;
    assert_eq!(actor_of("e-named").await["actor_type"], "bot");
    event = message("kind", "hi");
    event["actor"] = json!({"actor_type": "bot"});
    say(&stage, ANN, &event).await;
    assert_eq!(actor_of("e-kind").await["actor_id"], "ann");
    event = message("other", "hi");
    event["actor"] = json!({"actor_type": "user", "actor_id": "bob"});
    let refused = stage.ask_as(Some(ANN), Request::post("/v1/events", event.to_string())).await;
    let told = refused.refused(403, "unauthorized");
    assert!(told.contains("`bob`"), "{told}");
    stage.get("/v1/events/e-other").await.refused(404, "not_found");
    let (_, list) = read(&stage, ANN, "/v1/conversations").await;
    assert_eq!(each(&list, "conversation_id"), ["kind", "named", "none"]);
    say(&stage, &stage.admin, &event).await;
    let hidden = read(&stage, ANN, "/v1/conversations/other/history").await;
    assert_eq!(hidden.0, 404, "{hidden:?}");
}

#[tokio::test]
async fn a_trusted_bridge_reads_every_conversation() {
    let stage = Stage::with(TOKENS).await;
    say(&stage, &stage.admin, &message("office", "hello")).await;
    say(&stage, ANN, &message("home", "hello")).await;
    let (_, list) = read(&stage, BRIDGE, "/v1/conversations").await;
    assert_eq!(each(&list, "conversation_id"), ["home", "office"]);
    assert_eq!(
        read(&stage, BRIDGE, "/v1/search?q=hello").await.1["items"].as_array().unwrap().len(),
        4
    );
    for target in targets("office").iter().map(String::as_str).chain(["/v1/runs", "/v1/events"]) {
        assert_eq!(read(&stage, BRIDGE, target).await.0, 200, "{target}");
    }
    assert_eq!(read(&stage, BRIDGE, "/v1/audit").await.0, 403, "and is no reader");
}

#[tokio::test]
async fn who_began_a_conversation_is_known_after_a_restart() {
    let mut stage = Stage::start().await;
    say(&stage, LIMITED, &message("mine", "hello")).await;
    stage.host.kill();
    let stage = stage.restart().await;
    let (_, list) = read(&stage, LIMITED, "/v1/conversations").await;
    assert_eq!(each(&list, "conversation_id"), ["mine"]);
    assert_eq!(read(&stage, LIMITED, "/v1/conversations/mine/history").await.0, 200);
}
