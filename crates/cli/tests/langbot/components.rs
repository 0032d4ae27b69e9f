//! Components that are not runners: tools, commands and listeners of a plugin, under the real host.

use crate::PROGRAM;
use crate::stage::{PATIENCE, Stage, agent, copy, event, greenroom, outcome, plugins_folder};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::path::Path;

fn agents() -> String {
    agent("calls", "reader", "calls", "grant = { tools = [\"kit.*\"] }")
        + &agent("apart", "reader", "calls", "")
        + &agent("plain", "basics", "plain", "")
        + "[agents.commands]\nrunner = \"plugin:greenroom-tests/kit/commands\"\ncommands = [\"weather\", \"none\"]\n\
           [agents.rest]\nrunner = \"plugin:greenroom-tests/basics/plain\"\n"
}

async fn stage() -> Stage {
    Stage::open(&["reader", "kit", "basics"], &agents()).await
}

fn call(tool: &str, parameters: Value) -> Value {
    json!([["call_tool", {"tool_name": tool, "parameters": parameters}]])
}

#[tokio::test]
async fn tools_of_a_plugin_are_granted_called_and_audited_like_any() {
    let stage = stage().await;
    let kit = stage.api.ready_runner("kit").await;
    assert_eq!((&kit["plugin"], &kit["warnings"]), (&json!("greenroom-tests/kit"), &json!([])));
    let listed = stage.api.get("/v1/tools").await;
    let listed = listed["items"].as_array().unwrap();
    let add = listed.iter().find(|tool| tool["tool_name"] == "kit.add").unwrap();
    assert_eq!(add["description"], "Adds two numbers.");
    let told = stage.told("calls", "c1", &call("kit.add", json!({"a": 2, "b": 3}))).await;
    assert_eq!(told, json!([{"ok": {"sum": 5}}]));
    let told = stage.told("calls", "c1", &call("kit.caller", json!({}))).await;
    assert_eq!(told, json!([{"ok": {"text": "person u1 u1"}}]));
    // Arguments are checked against the schema, and a failure is the tool's.
    let told = stage.told("calls", "c1", &call("kit.add", json!({"a": "two"}))).await;
    assert_eq!(told[0]["code"], "invalid_argument", "{told}");
    let told = stage.told("calls", "c1", &call("kit.broken", json!({}))).await;
    assert_eq!(told[0]["details"]["tool_error"]["code"], "TOOL_FAILED", "{told}");
    let message = told[0]["details"]["tool_error"]["message"].as_str().unwrap();
    assert!(message.contains("out of order"), "{message}");
    let told = stage.told("apart", "c2", &call("kit.add", json!({"a": 2, "b": 3}))).await;
    assert_eq!(told[0].get("ok"), None, "{told}");
    let audit = stage.api.get("/v1/audit?method=tools.call").await;
    let calls = audit["items"].as_array().unwrap();
    assert_eq!(calls.len(), 4, "{audit}");
}

#[tokio::test]
async fn a_plugin_lists_its_own_components_outside_of_a_run() {
    let stage = stage().await;
    stage.api.ready_runner("kit").await;
    let told = stage.told("calls", "c1", &call("kit.own", json!({}))).await;
    let own = &told[0]["ok"];
    let add = json!(["add", "Adds two numbers.", "Adds two numbers."]);
    let tools = own["tools"].as_array().unwrap_or_else(|| panic!("{told}"));
    assert!(tools.contains(&add) && tools.len() == 7, "{told}");
    assert_eq!(
        (&own["commands"], &own["plugins"], &own["version"]),
        (&json!(["weather"]), &json!(["kit"]), &json!(true))
    );
}

#[tokio::test]
async fn an_answer_of_a_tool_that_is_too_long_ends_its_call_alone() {
    let stage = stage().await;
    let before = stage.api.ready_runner("kit").await["pid"].clone();
    let told = stage.told("calls", "c1", &call("kit.big", json!({"mib": 17}))).await;
    let error = told[0]["details"]["tool_error"]["message"].as_str();
    let error = error.unwrap_or_else(|| panic!("{told}"));
    assert!(error.contains("exceeds 16777216 byte limit"), "{error}");
    let told = stage.told("calls", "c1", &call("kit.big", json!({"mib": 12}))).await;
    let bytes = 12 * 1024 * 1024 + r#"{"text":""}"#.len();
    assert_eq!(told[0]["ok"]["artifact"]["size_bytes"], json!(bytes));
    let told = stage.told("calls", "c1", &call("kit.add", json!({"a": 1, "b": 1}))).await;
    assert_eq!(told, json!([{"ok": {"sum": 2}}]));
    let after = stage.api.ready_runner("kit").await;
    assert_eq!((&after["pid"], &after["restarts"]), (&before, &json!(0)));
}

#[tokio::test]
async fn more_calls_than_a_plugin_serves_at_once_wait_for_their_turn() {
    // Two plugins that call, since each has fewer runs at once than the plugin with the tool takes.
    let second = agent("second", "second", "calls", "grant = { tools = [\"kit.*\"] }");
    let config =
        crate::stage::config(&["reader", "second", "kit", "basics"], &(agents() + &second));
    let host = greenroom_testkit::host::TestHost::prepare(PROGRAM, &config);
    for (plugin, folder) in
        [("reader", "reader"), ("reader", "second"), ("kit", "kit"), ("basics", "basics")]
    {
        copy(&plugins_folder().join(plugin), &host.folder().join(folder));
    }
    let manifest = host.folder().join("second/manifest.yaml");
    let written = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, written.replace("name: reader", "name: second")).unwrap();
    let stage = Stage::start(host).await;
    for runner in ["kit", "reader", "second"] {
        stage.api.ready_runner(runner).await;
    }
    let nap = call("kit.nap", json!({})).to_string();
    let runs = (0..160).map(|number| {
        let (stage, nap) = (&stage, nap.as_str());
        let agent = if number % 2 == 0 { "calls" } else { "second" };
        async move { stage.answer(agent, &format!("c{number}"), nap).await }
    });
    let answers = futures_util::future::join_all(runs).await;
    let other = answers.iter().find(|answer| **answer != r#"[{"ok": {"text": "rested"}}]"#);
    assert_eq!(other, None);
}

#[tokio::test]
async fn a_tool_of_a_plugin_is_cancelled_with_its_run() {
    let stage = stage().await;
    let run_id = stage.send("calls", "c1", &call("kit.slow", json!({})).to_string()).await;
    stage.marked("kit/slow.started").await;
    stage.cancel(&run_id).await;
    assert_eq!(stage.api.ended_run(&run_id).await.status, RunStatus::Cancelled);
    stage.marked("kit/slow.cancelled").await;
    // The process goes on.
    let told = stage.told("calls", "c1", &call("kit.add", json!({"a": 1, "b": 1}))).await;
    assert_eq!(told, json!([{"ok": {"sum": 2}}]));
    assert_eq!(stage.api.ready_runner("kit").await["restarts"], 0);
}

/// Sends a message that names no agent.
async fn message(stage: &Stage, conversation: &str, text: &str) -> greenroom_protocol::RunView {
    let mut event = event("", conversation, text);
    event.as_object_mut().unwrap().remove("agent");
    let run_id = stage.api.send_event(&event).await.run_id.unwrap();
    stage.api.ended_run(&run_id).await
}

#[tokio::test]
async fn a_slash_command_is_answered_by_its_command() {
    let stage = stage().await;
    stage.api.ready_runner("kit").await;
    let run = message(&stage, "c1", "/weather in New York").await;
    assert_eq!(
        (run.agent.as_str(), outcome(&run)),
        ("commands", (RunStatus::Completed, "")),
        "{run:?}"
    );
    assert_eq!(stage.api.answers("c1").await, ["looking it up", "sunny in New York for u1", "see"]);
    let history = stage.api.history("c1").await;
    let picture = serde_json::to_value(history.last().unwrap()).unwrap();
    assert!(picture.to_string().contains("https://example.com/sun.png"), "{picture}");
    message(&stage, "c2", "/weather").await;
    assert_eq!(stage.api.answers("c2").await, ["fair everywhere"]);
    // What fails or does not exist fails its run, and nothing else.
    let run = message(&stage, "c3", "/weather storm").await;
    assert_eq!(run.status, RunStatus::Failed);
    assert!(run.error.unwrap().message.contains("no forecast"));
    let run = message(&stage, "c4", "/none").await;
    assert!(run.error.unwrap().message.contains("Command none not found"));
    // Other messages and commands go to others.
    for text in ["weather in Rome", "/help"] {
        assert_eq!(message(&stage, "c5", text).await.agent, "rest", "{text}");
    }
}

fn heard(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("kit/heard.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_listener_hears_the_events_of_its_agents_after_their_runs_and_is_never_in_their_way() {
    let stage = listening().await;
    stage.api.ready_runner("kit").await;
    let folder = stage.host.folder().to_owned();
    assert_eq!(stage.answer("plain", "c1", "hello").await, "Received: hello");
    stage.play("calls", "c2", "[]").await;
    for text in ["fail", "again"] {
        assert_eq!(stage.answer("plain", "c1", text).await, format!("Received: {text}"));
    }
    let expected = [
        json!(["received", "u1", "hello"]),
        json!(["responded", "Received: hello"]),
        json!(["received", "u1", "fail"]),
        json!(["responded", "Received: fail"]),
        json!(["received", "u1", "again"]),
        json!(["responded", "Received: again"]),
    ];
    wait_for("what was heard", PATIENCE, async || {
        (heard(&folder).len() >= expected.len()).then_some(())
    })
    .await;
    assert_eq!(heard(&folder), expected);
    // A listener that hangs keeps no run waiting.
    for text in ["hang", "one", "two"] {
        assert_eq!(stage.answer("plain", "c3", text).await, format!("Received: {text}"));
    }
    assert_eq!(stage.api.ready_runner("kit").await["restarts"], 0);
}

/// A stage with `kit` listening to the agent `plain`.
async fn listening() -> Stage {
    let config = crate::stage::config(&["reader", "kit", "basics"], &agents());
    let config = config.replace("dir = \"kit\"\n", "dir = \"kit\"\nlistens = [\"plain\"]\n");
    let host = greenroom_testkit::host::TestHost::prepare(PROGRAM, &config);
    for plugin in ["reader", "kit", "basics"] {
        copy(&plugins_folder().join(plugin), &host.folder().join(plugin));
    }
    Stage::start(host).await
}

#[tokio::test]
async fn a_listener_is_told_later_of_what_was_handled_while_its_plugin_was_down() {
    let stage = listening().await;
    let pid = stage.api.ready_runner("kit").await["pid"].as_i64().unwrap();
    let folder = stage.host.folder().to_owned();
    // Its new code does not load, so that it stays down once its process has ended.
    let main = folder.join("kit/main.py");
    let code = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, "raise RuntimeError('not now')\n").unwrap();
    let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    wait_for("the plugin to be down", PATIENCE, async || {
        (stage.api.runner("kit").await["status"] != "ready").then_some(())
    })
    .await;
    for text in ["one", "two"] {
        assert_eq!(stage.answer("plain", "c1", text).await, format!("Received: {text}"));
    }
    std::fs::write(&main, code).unwrap();
    let expected = [
        json!(["received", "u1", "one"]),
        json!(["responded", "Received: one"]),
        json!(["received", "u1", "two"]),
        json!(["responded", "Received: two"]),
    ];
    wait_for("what it missed", PATIENCE, async || (heard(&folder).len() >= 4).then_some(())).await;
    assert_eq!(heard(&folder), expected);
}

#[tokio::test]
async fn a_slash_command_is_answered_where_the_message_names_another_agent() {
    let token =
        "[tokens.ann]\nrole = \"sender\"\nagents = [\"plain\"]\ntoken = { file = \"ann\" }\n";
    let config = crate::stage::config(&["reader", "kit", "basics"], &(agents() + token));
    let host = greenroom_testkit::host::TestHost::prepare(PROGRAM, &config);
    std::fs::write(host.folder().join("ann"), "ann".repeat(12)).unwrap();
    for plugin in ["reader", "kit", "basics"] {
        copy(&plugins_folder().join(plugin), &host.folder().join(plugin));
    }
    let stage = Stage::start(host).await;
    stage.api.ready_runner("kit").await;
    let run = stage.play("plain", "c1", "/weather").await;
    assert_eq!((run.agent.as_str(), outcome(&run).0), ("commands", RunStatus::Completed));
    assert_eq!(stage.api.answers("c1").await, ["fair everywhere"]);
    // What no agent lists is for the named agent.
    assert_eq!(stage.answer("plain", "c1", "/help").await, "Received: /help");
    // Who may not use the agent for commands does not reach it.
    let request = Request::post("/v1/events", event("plain", "c2", "/weather").to_string());
    let request = request.header("authorization", format!("Bearer {}", "ann".repeat(12)));
    let (_, sent) = stage.api.json(request).await.unwrap();
    let run = stage.api.ended_run(sent["run_id"].as_str().unwrap()).await;
    assert_eq!((run.agent.as_str(), outcome(&run).0), ("plain", RunStatus::Completed));
    // A client of AG-UI that connects to the thread of its agent gets the answer of the command.
    let input = json!({"threadId": "c1", "runId": "r1", "state": {}, "tools": [], "context": [],
        "messages": [], "forwardedProps": {}});
    let request = Request::post("/v1/agui/agent/plain/connect", input.to_string());
    let request = request.header("accept", "text/event-stream");
    let body = stage.api.send(request).await.unwrap().body().await.unwrap();
    let shown = String::from_utf8(body).unwrap();
    assert!(shown.contains("fair everywhere") && shown.contains("Received: /help"), "{shown}");
}

#[test]
fn what_a_plugin_has_is_told_before_anything_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("engine");
    copy(&plugins_folder().join("kit"), &plugin);
    let manifest = plugin.join("manifest.yaml");
    let written = std::fs::read_to_string(&manifest).unwrap();
    let engine = "apiVersion: v1\nkind: KnowledgeEngine\nmetadata: {name: engine}\n";
    std::fs::create_dir(plugin.join("components/engines")).unwrap();
    std::fs::write(plugin.join("components/engines/engine.yaml"), engine).unwrap();
    let start = written.find("    Tool:").unwrap();
    let end = written.find("execution:").unwrap();
    let group = "    KnowledgeEngine:\n      fromDirs:\n        - path: components/engines/\n";
    let only = format!("{}{group}{}", &written[..start], &written[end..]);
    std::fs::write(&manifest, only).unwrap();
    let added = greenroom(folder.path(), &["runner", "add", "engine"]);
    let said = String::from_utf8_lossy(&added.stderr).into_owned();
    assert_eq!(added.status.code(), Some(2), "{said}");
    assert!(said.contains("has only `KnowledgeEngine`"), "{said}");
    assert!(!plugin.join(".venv").exists() && !folder.path().join("greenroom.toml").exists());
    // Beside others it is only named, first.
    std::fs::write(&manifest, format!("{}{group}{}", &written[..start], &written[start..]))
        .unwrap();
    let added = greenroom(folder.path(), &["runner", "add", "engine", "--name", "kit"]);
    let said = String::from_utf8_lossy(&added.stderr).into_owned();
    assert!(added.status.success(), "{said}");
    let told = said.find("kinds `KnowledgeEngine` are not used").unwrap();
    assert!(told < said.find("virtual environment").unwrap(), "{said}");
    for note in ["tools = [\"kit.*\"]", "plugin:greenroom-tests/kit/commands", "listens = "] {
        assert!(said.contains(note), "{note}\n{said}");
    }
}
