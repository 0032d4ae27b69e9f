//! Limited senders among each other: an id of another sender is as one that does not exist (decision 020).

use crate::stage::{ANN, BRIDGE, LIMITED, Reply, SENDER, Stage};
use greenroom_testkit::http::Request;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const TOKENS: &str = r#"
[tokens.ann]
role = "sender"
actors = "ann"
conversations = ["shared", "team-*"]
token = { file = "ann" }

[tokens.bridge]
role = "sender"
actors = "any"
conversations = ["telegram:*"]
token = { file = "bridge" }
"#;

fn message(conversation: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "agent": "echo",
        "conversation_id": conversation, "input": {"text": text}})
}

async fn post(stage: &Stage, token: &str, target: &str, body: &Value) -> Reply {
    stage.ask_as(Some(token), Request::post(target, body.to_string())).await
}

async fn get(stage: &Stage, token: &str, target: &str) -> (u16, Value) {
    let reply = stage.ask_as(Some(token), Request::get(target)).await;
    (reply.status, reply.body)
}

/// Sends a message and waits for the end of its run.
async fn say(stage: &Stage, token: &str, event: &Value) -> String {
    let reply = post(stage, token, "/v1/events", event).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let run_id = reply.body["run_id"].as_str().unwrap().to_owned();
    stage.api().ended_run(&run_id).await;
    run_id
}

fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

async fn texts(stage: &Stage, token: &str, conversation: &str) -> Vec<String> {
    let (status, page) =
        get(stage, token, &format!("/v1/conversations/{conversation}/history")).await;
    assert_eq!(status, 200, "{page}");
    each(&page, "text").into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn behind_a_foreign_id_a_limited_sender_has_a_conversation_of_its_own() {
    let stage = Stage::with(TOKENS).await;
    say(&stage, &stage.admin, &message("c1", "the office")).await;
    say(&stage, LIMITED, &message("c1", "the website")).await;
    let run_id = say(&stage, ANN, &message("c1", "this is ann")).await;
    say(&stage, LIMITED, &message("c1", "once more")).await;
    assert_eq!(texts(&stage, &stage.admin, "c1").await, ["the office"; 2]);
    let of_website = ["the website", "the website", "once more", "once more"];
    assert_eq!(texts(&stage, LIMITED, "c1").await, of_website);
    assert_eq!(texts(&stage, ANN, "c1").await, ["this is ann"; 2]);
    // To its sender it has the id that the sender chose, to an operator one of its own.
    for target in [
        "/v1/conversations",
        "/v1/conversations/c1/history",
        "/v1/conversations/c1/search?q=ann",
        "/v1/search?q=ann",
        "/v1/search?q=ann&conversation_id=c1",
        "/v1/runs?conversation_id=c1",
        "/v1/events?conversation_id=c1",
    ] {
        let (status, page) = get(&stage, ANN, target).await;
        assert_eq!(status, 200, "{target}: {page}");
        let ids = each(&page, "conversation_id");
        assert!(!ids.is_empty() && ids.iter().all(|id| *id == "c1"), "{target}: {page}");
        assert!(!page.to_string().contains("c1@"), "{target}: {page}");
        assert!(!page.to_string().contains("office"), "{target}: {page}");
    }
    let (_, run) = get(&stage, ANN, &format!("/v1/runs/{run_id}")).await;
    assert_eq!(run["conversation_id"], "c1");
    assert_eq!(texts(&stage, &stage.admin, "c1@token:ann").await, ["this is ann"; 2]);
    // A replay stays where its run was.
    let again = post(&stage, ANN, &format!("/v1/runs/{run_id}/replay"), &json!({})).await;
    stage.api().ended_run(again.body["run_id"].as_str().unwrap()).await;
    assert_eq!(texts(&stage, ANN, "c1").await, ["this is ann"; 4]);
    assert_eq!(texts(&stage, &stage.admin, "c1").await, ["the office"; 2]);
}

#[tokio::test]
async fn the_id_of_a_conversation_kept_apart_leads_no_one_else_there() {
    let stage = Stage::with(TOKENS).await;
    say(&stage, &stage.admin, &message("c1", "the office")).await;
    say(&stage, ANN, &message("c1", "this is ann")).await;
    for id in ["c1@token:ann", "c1@token:limited", "C1", "c1 ", "с1"] {
        say(&stage, LIMITED, &message(id, "the website")).await;
        let path: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert_eq!(texts(&stage, LIMITED, &path).await, ["the website"; 2], "{id}");
    }
    assert_eq!(texts(&stage, &stage.admin, "c1@token:ann").await, ["this is ann"; 2]);
    // An id that is too long is refused whether it is in use or not.
    let long = "x".repeat(505);
    say(&stage, &stage.admin, &message(&long, "long")).await;
    for id in [&long, &"y".repeat(505)] {
        let refused = post(&stage, LIMITED, "/v1/events", &message(id, "hi")).await;
        let told = refused.refused(400, "invalid_argument");
        assert_eq!(told, "`conversation_id` must have 1 to 498 bytes");
    }
}

#[tokio::test]
async fn runs_of_other_senders_are_not_found() {
    let stage = Stage::with(TOKENS).await;
    let theirs = say(&stage, &stage.admin, &message("c1", "the office")).await;
    let alone = json!({"event_type": "message.received", "agent": "echo", "input": {"text": "x"}});
    let without = say(&stage, &stage.admin, &alone).await;
    let own = say(&stage, LIMITED, &alone).await;
    say(&stage, LIMITED, &message("c1", "the website")).await;
    for token in [LIMITED, ANN] {
        for run_id in [&theirs, &without] {
            for part in ["", "/story", "/results"] {
                let hidden = get(&stage, token, &format!("/v1/runs/{run_id}{part}")).await;
                assert_eq!(hidden, get(&stage, token, &format!("/v1/runs/run_x{part}")).await);
                assert_eq!(hidden.0, 404, "{hidden:?}");
            }
            for part in ["/cancel", "/replay"] {
                let target = format!("/v1/runs/{run_id}{part}");
                post(&stage, token, &target, &json!({})).await.refused(404, "not_found");
            }
        }
    }
    assert_eq!(get(&stage, LIMITED, &format!("/v1/runs/{own}/results")).await.0, 200);
    assert_eq!(get(&stage, ANN, &format!("/v1/runs/{own}")).await.0, 404);
    // A sender without limits follows the runs of all, as ever.
    assert_eq!(get(&stage, SENDER, &format!("/v1/runs/{theirs}")).await.0, 200);
}

#[tokio::test]
async fn event_ids_are_the_senders_own() {
    let stage = Stage::with(TOKENS).await;
    let mut event = message("c1", "the office");
    event["event_id"] = "e1".into();
    let theirs = post(&stage, &stage.admin, "/v1/events", &event).await;
    assert_eq!(theirs.status, 202);
    let mut other = message("c2", "something else");
    other["event_id"] = "e1".into();
    let mut runs = vec![theirs.body["run_id"].clone()];
    for (token, event) in [(LIMITED, &event), (ANN, &other)] {
        let first = post(&stage, token, "/v1/events", event).await;
        assert_eq!(first.status, 202, "{first:?}");
        assert!(!runs.contains(&first.body["run_id"]), "{first:?}");
        let again = post(&stage, token, "/v1/events", event).await;
        assert_eq!((again.status, &again.body["run_id"]), (200, &first.body["run_id"]));
        runs.push(first.body["run_id"].clone());
        let (status, stored) = get(&stage, token, "/v1/events/e1").await;
        assert_eq!((status, &stored["run_id"]), (200, &first.body["run_id"]), "{stored}");
        assert_eq!(stored["source"], "api");
    }
    // Another body of the same sender is a conflict, and so it is for senders without limits.
    post(&stage, LIMITED, "/v1/events", &other).await.refused(409, "invalid_argument");
    post(&stage, SENDER, "/v1/events", &other).await.refused(409, "invalid_argument");
    let (_, stored) = get(&stage, &stage.admin, "/v1/events/e1").await;
    assert_eq!(stored["run_id"], runs[0]);
    let (_, stored) = get(&stage, &stage.admin, "/v1/events/e1?sent_by=token:ann").await;
    assert_eq!((&stored["run_id"], &stored["sent_by"]), (&runs[2], &json!("token:ann")));
}

#[tokio::test]
async fn artifacts_of_other_senders_are_not_found() {
    let stage = Stage::with(TOKENS).await;
    let upload = async |token: &str, target: &str| {
        let request = Request::post(target, "some bytes").header("content-type", "text/plain");
        let kept = stage.ask_as(Some(token), request).await;
        assert_eq!(kept.status, 201, "{kept:?}");
        kept.body["artifact_id"].as_str().unwrap().to_owned()
    };
    say(&stage, &stage.admin, &message("c1", "the office")).await;
    let in_theirs = upload(&stage.admin, "/v1/artifacts?conversation_id=c1").await;
    let of_ann = upload(ANN, "/v1/artifacts?name=ann.txt").await;
    assert_eq!(get(&stage, ANN, &format!("/v1/artifacts/{of_ann}")).await.0, 200);
    for id in [&in_theirs, &of_ann] {
        for part in ["", "/metadata"] {
            let hidden = get(&stage, LIMITED, &format!("/v1/artifacts/{id}{part}")).await;
            assert_eq!(hidden, get(&stage, LIMITED, &format!("/v1/artifacts/art_x{part}")).await);
            assert_eq!(hidden.0, 404);
        }
        // An event that names it gets nothing of it.
        let mut event = message("c1", "look");
        event["input"]["attachments"] = json!([{"artifact_id": id, "artifact_type": "file"}]);
        say(&stage, LIMITED, &event).await;
        assert_eq!(get(&stage, LIMITED, &format!("/v1/artifacts/{id}")).await.0, 404);
        let (_, history) = get(&stage, LIMITED, "/v1/conversations/c1/history").await;
        assert!(!history.to_string().contains("ann.txt"), "{history}");
    }
    // An upload for a foreign conversation does not appear there.
    upload(LIMITED, "/v1/artifacts?conversation_id=c1&name=planted.txt").await;
    let (_, list) = get(&stage, &stage.admin, "/v1/artifacts?conversation_id=c1").await;
    assert_eq!(each(&list, "artifact_id"), [&in_theirs]);
}

#[tokio::test]
async fn a_foreign_thread_of_agui_is_empty() {
    let stage = Stage::with(TOKENS).await;
    let mut held = message("c1", "/hang");
    held["agent"] = "game".into();
    let held = post(&stage, &stage.admin, "/v1/events", &held).await;
    let held = held.body["run_id"].as_str().unwrap();
    let input = json!({"threadId": "c1", "runId": "r1", "messages": [
        {"id": "m1", "role": "user", "content": "the website"}], "tools": [], "context": []});
    say(&stage, &stage.admin, &message("c2", "the office")).await;
    let mut other = input.clone();
    other["threadId"] = "c2".into();
    let connect = post(&stage, LIMITED, "/v1/agui/agent/echo/connect", &other).await;
    assert_eq!(connect.status, 200);
    assert!(!connect.body.to_string().contains("office"), "{connect:?}");
    let stopped = post(&stage, ANN, "/v1/agui/agent/game/stop/c1", &json!({})).await;
    assert_eq!(stopped.body, json!({"stopped": 0}));
    assert_eq!(stage.get(&format!("/v1/runs/{held}")).await.body["status"], "running");
    // A run in the same thread neither waits for the foreign one nor joins it.
    let ran = post(&stage, LIMITED, "/v1/agui/echo", &input).await;
    assert!(ran.body.to_string().contains("RUN_FINISHED"), "{ran:?}");
    let connect = post(&stage, LIMITED, "/v1/agui/agent/echo/connect", &input).await;
    assert!(connect.body.to_string().contains("the website"), "{connect:?}");
    assert!(!connect.body.to_string().contains("c1@"), "{connect:?}");
    // The same `runId` of another sender is a run of its own.
    let ann = post(&stage, ANN, "/v1/agui/echo", &input).await;
    assert!(ann.body.to_string().contains("RUN_FINISHED"), "{ann:?}");
    assert_eq!(texts(&stage, ANN, "c1").await, ["the website"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_senders_that_begin_an_id_at_once_begin_two_conversations() {
    let stage = Stage::with(TOKENS).await;
    let mut sending = JoinSet::new();
    for number in 0..20 {
        for token in [LIMITED, ANN] {
            let said = if token == ANN { "this is ann" } else { "the website" };
            let (address, body) = (stage.address, message(&format!("n{number}"), said));
            sending.spawn(async move {
                let request = Request::post("/v1/events", body.to_string())
                    .header("content-type", "application/json")
                    .header("authorization", format!("Bearer {token}"));
                greenroom_testkit::http::send(address, &request).await.unwrap().status
            });
        }
    }
    assert!(sending.join_all().await.iter().all(|status| *status == 202));
    for number in 0..20 {
        for (token, own) in [(LIMITED, "the website"), (ANN, "this is ann")] {
            let said = texts(&stage, token, &format!("n{number}")).await;
            assert!(!said.is_empty() && said.iter().all(|text| text == own), "{said:?}");
        }
    }
}

#[tokio::test]
async fn an_entry_names_conversations_that_its_token_reaches() {
    let stage = Stage::with(TOKENS).await;
    for id in ["shared", "team-1", "teams"] {
        say(&stage, &stage.admin, &message(id, "the office")).await;
        say(&stage, ANN, &message(id, "this is ann")).await;
    }
    for id in ["shared", "team-1"] {
        let both = ["the office", "the office", "this is ann", "this is ann"];
        assert_eq!(texts(&stage, ANN, id).await, both);
        assert_eq!(texts(&stage, &stage.admin, id).await, both);
    }
    assert_eq!(texts(&stage, ANN, "teams").await, ["this is ann"; 2]);
    let (_, list) = get(&stage, ANN, "/v1/conversations").await;
    assert_eq!(each(&list, "conversation_id"), ["teams", "team-1", "shared"]);
    // What an entry names cannot be begun by another limited token, so that it cannot lie in wait there.
    say(&stage, LIMITED, &message("telegram:5", "waiting")).await;
    say(&stage, BRIDGE, &message("telegram:5", "a private word")).await;
    assert_eq!(texts(&stage, LIMITED, "telegram:5").await, ["waiting"; 2]);
    assert_eq!(texts(&stage, BRIDGE, "telegram:5").await, ["a private word"; 2]);
}

#[tokio::test]
async fn a_limited_sender_names_the_surfaces_of_its_agents_only() {
    let receiver = greenroom_testkit::receiver::Receiver::start().await;
    let more = format!(
        r#"
[agents.desk]
runner = "plugin:greenroom/echo/default"
events = []
delivery = "desk"

[surfaces.desk]
kind = "webhook"
url = "{url}"
allow_private = true

[surfaces.alarm]
kind = "webhook"
url = "{url}"
allow_private = true

[tokens.ann]
role = "sender"
agents = ["desk"]
token = {{ file = "ann" }}
"#,
        url = receiver.url()
    );
    let stage = Stage::with(&more).await;
    let event = |surface: &str| {
        json!({"event_type": "message.received", "agent": "desk", "input": {"text": "hi"},
            "delivery": {"surface": surface}})
    };
    let foreign = post(&stage, ANN, "/v1/events", &event("alarm")).await;
    let missing = post(&stage, ANN, "/v1/events", &event("nowhere")).await;
    let message = foreign.refused(400, "invalid_argument");
    assert_eq!(message.replace("alarm", "nowhere"), missing.refused(400, "invalid_argument"));
    for (token, surface) in [(ANN, "desk"), (ANN, "api"), (stage.admin.as_str(), "alarm")] {
        say(&stage, token, &event(surface)).await;
    }
}
