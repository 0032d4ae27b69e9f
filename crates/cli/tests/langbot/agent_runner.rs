//! The older dialect, `AgentRunner` and `run_agent`, by a plugin that writes its frames by hand.

use crate::PROGRAM;
use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::path::Path;

async fn stage() -> Stage {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/langbot/runners/agent_runner.py");
    let config = format!(
        "[store]\nsync = \"normal\"\n[limits]\ncancel_grace_s = 1\n[runners.older]\nwire = \"langbot\"\n\
         command = [\"python3\", \"{}\"]\ndir = \"older\"\n\
         listens = [\"older\"]\n[runners.older.config]\ntone = \"short\"\n\
         [models.main]\nprovider = \"scripted\"\n\
         [agents.older]\nrunner = \"plugin:greenroom-tests/older/main\"\nevents = []\n\
         grant = {{ models = [\"main\"], tools = [\"older.*\"] }}\n\
         [agents.commands]\nrunner = \"plugin:greenroom-tests/older/commands\"\ncommands = [\"weather\"]\n",
        script.display()
    );
    let host = TestHost::prepare(PROGRAM, &config);
    std::fs::create_dir(host.folder().join("older")).unwrap();
    Stage::start(host).await
}

#[tokio::test]
async fn the_older_dialect_is_told_from_the_container_and_spoken() {
    let stage = stage().await;
    let runner = stage.api.ready_runner("older").await;
    assert_eq!(runner["runners"][0]["metadata"]["dialect"], "AgentRunner");
    assert_eq!(runner["runners"][0]["permissions"]["artifacts"], json!(["metadata", "read"]));
    assert_eq!(stage.answer("older", "c1", "hello").await, "greenroom 1 said hello");
    let long = stage.answer("older", "c1", "long").await;
    assert_eq!(long.len(), "long ü ".len() * 10_000);
    // A long event reaches it in pieces.
    let text = "ö\\".repeat(40_000);
    assert_eq!(stage.answer("older", "c1", &text).await, format!("greenroom 1 said {text}"));
}

#[tokio::test]
async fn streams_that_end_otherwise_than_they_should_are_told_so() {
    let stage = stage().await;
    let run = stage.play("older", "c1", "no terminal").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.no_terminal"));
    assert_eq!(stage.api.answers("c1").await, ["that was it"]);

    let run = stage.play("older", "c2", "after").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    assert_eq!(stage.api.answers("c2").await, Vec::<String>::new());
    let notes = wait_for("a note", PATIENCE, async || {
        Some(stage.diagnostics(&run.run_id).await).filter(|notes| !notes.is_empty())
    });
    assert_eq!(notes.await, ["after_terminal"]);

    let run = stage.play("older", "c3", "seed failure").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "older.no"));
    assert_eq!(run.error.unwrap().message, "it cannot be done");

    let run = stage.play("older", "c4", "not a result").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    assert_eq!(stage.api.answers("c4").await, Vec::<String>::new());
    assert_eq!(stage.diagnostics(&run.run_id).await, ["invalid_result", "invalid_result"]);

    let run = stage.play("older", "c5", "error").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.error"));
    assert!(run.error.unwrap().message.contains("ValueError: no"));
}

#[tokio::test]
async fn a_runner_that_cannot_be_told_to_stop_finds_out_by_asking() {
    let stage = stage().await;
    let pid = stage.api.ready_runner("older").await["pid"].clone();
    let run_id = stage.send("older", "c1", "poll").await;
    stage.marked("older/polls").await;
    let run = stage.cancel(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Cancelled, "cancelled"));
    stage.marked("older/polled").await;
    let polled = stage.host.folder().join("older/polled");
    let told = wait_for("what it was told", PATIENCE, async || {
        serde_json::from_str::<Value>(&std::fs::read_to_string(&polled).unwrap()).ok()
    });
    assert_eq!(told.await["status"], "cancelled");
    assert_eq!(stage.answer("older", "c1", "still").await, "greenroom 1 said still");
    assert_eq!(stage.api.runner("older").await["pid"], pid);
}

#[tokio::test]
async fn attachments_are_artifacts_that_it_reads_in_parts() {
    let stage = stage().await;
    let upload = Request::post("/v1/artifacts?name=a.txt&conversation_id=c1", "hello")
        .header("content-type", "text/plain");
    let (status, artifact) = stage.api.json(upload).await.unwrap();
    assert!(status < 300, "{status} {artifact}");
    let id = artifact["artifact_id"].as_str().unwrap();
    let mut message = event("older", "c1", "files");
    message["input"]["attachments"] = json!([{"artifact_id": id}]);
    let run_id = stage.api.send_event(&message).await.run_id.unwrap();
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{}", stage.host.log());
    let told: Value = serde_json::from_str(&stage.api.answers("c1").await.pop().unwrap()).unwrap();
    assert_eq!(
        told[0],
        json!({"id": id, "type": "file", "mime_type": told[1]["mime_type"], "size": 5, "name": "a.txt",
            "url": null, "source": "base64",
            "content": format!("data:{};base64,aGVsbG8=", told[1]["mime_type"].as_str().unwrap())})
    );
    assert_eq!((&told[1]["name"], &told[1]["size_bytes"]), (&json!("a.txt"), &json!(5)));
    assert_eq!(
        told[2],
        json!({"artifact_id": id, "mime_type": told[1]["mime_type"], "size_bytes": 5, "offset": 1,
            "length": 3, "content_base64": "ZWxs", "has_more": true})
    );
    assert_eq!(told[3]["refused"]["code"], "not_found");
}

/// What it has of its settings and models.
async fn shown_settings(stage: &Stage) -> Value {
    serde_json::from_str(&stage.answer("older", "c1", "settings").await).unwrap()
}

#[tokio::test]
async fn its_permissions_are_translated_and_an_unknown_one_is_only_a_warning() {
    let stage = stage().await;
    let runner = stage.api.ready_runner("older").await;
    let warning = "`main` asks for `models: dream`, which this host does not know";
    assert_eq!(runner["warnings"], json!([warning]));
    let told = shown_settings(&stage).await;
    let [model, operations] = told["models"][0].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!(model, "main");
    let operations = operations.as_array().unwrap();
    assert!(operations.contains(&json!("count_tokens")) && operations.contains(&json!("stream")));
}

#[tokio::test]
async fn it_gets_its_settings_and_the_only_model_of_its_grant() {
    let stage = stage().await;
    let told = shown_settings(&stage).await;
    assert_eq!(told["plugin"], json!({"region": "eu", "tone": "short"}));
    assert_eq!(told["runner"], json!({"model": "main", "rounds": 5}));
}

#[tokio::test]
async fn its_question_is_shown_and_the_answer_comes_back() {
    let stage = stage().await;
    let run = stage.play("older", "c1", "ask").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{}", stage.host.log());
    let answers = stage.api.answers("c1").await;
    let forms: Value = serde_json::from_str(&answers[0]).unwrap();
    assert_eq!(forms["action_styles"], json!(["default", "primary", "danger"]));
    assert_eq!(answers[1], "Reply with a drink.");
    let path = format!("/v1/runs/{}/interactions", run.run_id);
    let given =
        json!({"interaction_id": "order-1", "action_id": "order", "values": {"drink": "tea"}});
    let request = Request::post(path, given.to_string());
    let (status, answered) = stage.api.json(request).await.unwrap();
    assert_eq!(status, 202, "{answered}");
    stage.api.ended_run(answered["run_id"].as_str().unwrap()).await;
    let answer = stage.api.answers("c1").await.pop().unwrap();
    let mut back: Value = serde_json::from_str(&answer).unwrap();
    assert!(back.as_object_mut().unwrap().remove("submitted_at").unwrap().is_i64());
    assert_eq!(back, given);
}

#[tokio::test]
async fn its_tools_commands_and_listeners_are_used() {
    let stage = stage().await;
    stage.api.ready_runner("older").await;
    let listed = stage.api.get("/v1/tools").await;
    let tools = listed["items"].as_array().unwrap();
    let add = tools.iter().find(|tool| tool["tool_name"] == "older.add").unwrap();
    assert_eq!(add["description"], "Adds two numbers.");
    assert_eq!(stage.answer("older", "c1", "add").await, "{\"sum\": 5}");
    // The command is taken from the agent that the message names.
    assert_eq!(stage.answer("older", "c2", "/weather in Rome").await, "weather of in Rome");
    let heard = stage.host.folder().join("older/heard");
    let names =
        ["PersonMessageReceived", "PersonNormalMessageReceived", "NormalMessageResponded", ""];
    wait_for("what it heard", PATIENCE, async || {
        let heard = std::fs::read_to_string(&heard).unwrap_or_default();
        (heard == names.join("\n")).then_some(())
    })
    .await;
}
