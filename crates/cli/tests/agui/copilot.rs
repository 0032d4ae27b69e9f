//! The routes of CopilotKit: what there is, a thread as it is kept, and its end.

use crate::reader::{Reader, find, input, kinds, request, steps, talk, text, with_token};
use crate::stage::{Stage, TOKEN, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

fn connect(thread: &str) -> Request {
    let mut sent = input(thread, "connecting", "");
    sent["messages"] = json!([]);
    Request::post("/v1/agui/agent/puppet/connect", sent.to_string())
}

#[tokio::test]
async fn a_token_is_told_the_agents_that_it_reaches() {
    let token =
        "[tokens.web]\nrole = \"sender\"\nagents = [\"puppet\"]\ntoken = { file = \"token\" }\n";
    let stage = Stage::open(token).await;
    let info = stage.api.get("/v1/agui/info").await;
    assert_eq!((&info["mode"], &info["a2uiEnabled"]), (&json!("sse"), &json!(true)));
    let names =
        |info: &Value| info["agents"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&info), ["assistant", "echo", "puppet"]);
    let limited = with_token(Request::get("/v1/agui/info"), TOKEN);
    assert_eq!(names(&stage.api.json(limited).await.unwrap().1), ["puppet"]);
}

#[tokio::test]
async fn a_thread_is_told_as_it_is_kept() {
    let stage = Stage::open("").await;
    let nothing = Reader::open(&stage, connect("new")).await.rest().await;
    assert_eq!(kinds(&nothing), ["RUN_STARTED", "RUN_FINISHED"]);
    let call = json!({"tool_call_id": "c1", "tool_name": "look", "result": {"found": 1}});
    let played = json!([["result", "tool.call.completed", call], ["message", "here"], ["end"]]);
    let sent = steps("t", "r", played);
    Reader::open(&stage, Request::post("/v1/agui/agent/puppet/run", sent.to_string()))
        .await
        .rest()
        .await;
    let events = Reader::open(&stage, connect("t")).await.rest().await;
    assert_eq!(kinds(&events), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    let messages = events[1]["messages"].as_array().unwrap();
    let told: Vec<(&str, &Value)> =
        messages.iter().map(|one| (one["role"].as_str().unwrap(), &one["content"])).collect();
    let null = Value::Null;
    assert_eq!(
        told,
        [
            ("user", &sent["messages"][0]["content"]),
            ("assistant", &null),
            ("tool", &json!("{\"found\":1}")),
            ("assistant", &json!("here"))
        ]
    );
    assert_eq!(messages[1]["toolCalls"][0]["id"], messages[2]["toolCallId"]);
    assert_eq!(messages[2]["metadata"]["tool_agent_output"]["result"], json!({"found": 1}));
    let types = &events[1]["metadata"]["@ag-ui/client"]["authoritativeActivityTypes"];
    assert_eq!(*types, json!(["a2ui-surface"]));
}

#[tokio::test]
async fn who_connects_to_a_run_under_way_sees_it_go_on() {
    let stage = Stage::open("").await;
    let before = steps("t", "r1", json!([["message", "hello"], ["end"]]));
    talk(&stage, "puppet", &before).await;
    let live = steps(
        "t",
        "r2",
        json!([["say", "one "], ["mark", "said"], ["gate", "go"], ["say", "two"], ["end"]]),
    );
    let running = Reader::open(&stage, request("puppet", &live)).await;
    stage.marked("said").await;
    let mut reader = Reader::open(&stage, connect("t")).await;
    let snapshot = reader.until("MESSAGES_SNAPSHOT").await;
    let roles: Vec<&str> = snapshot["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(reader.until("TEXT_MESSAGE_CONTENT").await["delta"], "one ");
    stage.pass("go");
    let rest = reader.rest().await;
    assert_eq!(
        (text(&rest).as_str(), &find(&rest, "RUN_FINISHED")["runId"]),
        ("two", &json!("connecting"))
    );
    assert_eq!(text(&running.rest().await), "one two");
}

#[tokio::test]
async fn a_thread_is_stopped() {
    let stage = Stage::open("").await;
    let mut reader =
        Reader::open(&stage, request("puppet", &steps("t", "r", json!([["say", "a"], ["hang"]]))))
            .await;
    reader.until("TEXT_MESSAGE_CONTENT").await;
    let stop = || Request::post("/v1/agui/agent/puppet/stop/t", "");
    assert_eq!(stage.api.json(stop()).await.unwrap().1, json!({"stopped": 1}));
    let rest = reader.rest().await;
    assert_eq!(find(&rest, "RUN_FINISHED")["outcome"], json!({"type": "cancelled"}));
    let run = stage.api.runs().await.remove(0);
    assert_eq!(outcome(&run), (RunStatus::Cancelled, "cancelled"));
    assert_eq!(stage.api.json(stop()).await.unwrap().1, json!({"stopped": 0}));
}

const WEB: &str =
    "[tokens.web]\nrole = \"sender\"\nagents = [\"puppet\"]\ntoken = { file = \"token\" }\n";

#[tokio::test]
async fn a_thread_of_others_looks_like_one_that_does_not_exist() {
    let stage = Stage::open(WEB).await;
    let kept = steps("theirs", "r1", json!([["message", "a secret"], ["end"]]));
    let theirs = talk(&stage, "puppet", &kept).await;
    let live = steps("theirs", "r2", json!([["say", "another"], ["hang"]]));
    let mut running = Reader::open(&stage, request("puppet", &live)).await;
    running.until("TEXT_MESSAGE_CONTENT").await;
    for thread in ["theirs", "nowhere"] {
        let told = Reader::open(&stage, with_token(connect(thread), TOKEN)).await.rest().await;
        assert_eq!(kinds(&told), ["RUN_STARTED", "RUN_FINISHED"], "{thread}");
        let stop = Request::post(format!("/v1/agui/agent/puppet/stop/{thread}"), "");
        let stopped = stage.api.json(with_token(stop, TOKEN)).await.unwrap().1;
        assert_eq!(stopped, json!({"stopped": 0}), "{thread}");
    }
    // The key of a run of others attaches to nothing: it is a key of its own here, and so is the thread.
    let own = Reader::open(&stage, with_token(request("puppet", &kept), TOKEN)).await.rest().await;
    assert_eq!(text(&own), "a secret");
    let run_id = |events: &[Value]| events[0]["metadata"]["greenroom"]["run_id"].clone();
    assert_ne!(run_id(&own), run_id(&theirs));
    let stop = Request::post("/v1/agui/agent/puppet/stop/theirs", "");
    assert_eq!(stage.api.json(stop).await.unwrap().1, json!({"stopped": 1}));
    // Its own thread is told, and its own key attaches.
    let own = steps("mine", "r3", json!([["message", "hello"], ["end"]]));
    let first = Reader::open(&stage, with_token(request("puppet", &own), TOKEN)).await.rest().await;
    let again = Reader::open(&stage, with_token(request("puppet", &own), TOKEN)).await.rest().await;
    assert_eq!((text(&first), text(&again)), ("hello".to_owned(), "hello".to_owned()));
    let told = Reader::open(&stage, with_token(connect("mine"), TOKEN)).await.rest().await;
    assert_eq!(kinds(&told), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
}
