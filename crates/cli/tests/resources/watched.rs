//! What a configuration refers to is read anew when it changes, and misspelt tools are told once they can be.

use crate::programs::{greenroom, method, module, prepared, python};
use crate::stage::{PATIENCE, Stage};
use greenroom_testkit::wait::wait_for;
use serde_json::json;

const MODEL: &str = r#"
[models.demo]
provider = "scripted"
script = "demo.toml"
[tools.lab]
kind = "module"
manifest = "lab/module.toml"
[agents.talker]
runner = "plugin:greenroom/local-agent/default"
events = []
grant = { models = ["demo"], modules = ["lab.*"] }
"#;

/// The smallest server that lists one tool.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "box", "version": "1"}},
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    }
    if asked.get("method") in answers:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}
        print(json.dumps(answer), flush=True)
"#;

fn script(stage_folder: &std::path::Path, answer: &str) {
    std::fs::write(stage_folder.join("demo.toml"), format!("[[rule]]\nanswer = '{answer}'\n"))
        .unwrap();
}

async fn says(stage: &Stage, conversation: &str) -> String {
    let event = json!({"event_type": "message.received", "conversation_id": conversation,
        "agent": "talker", "actor": {"actor_type": "user", "actor_id": "ann"}, "input": {"text": "hi"}});
    let run_id = stage.send(&event).await;
    stage.api.ended_run(&run_id).await;
    stage.api.answers(conversation).await.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_of_a_model_and_a_manifest_are_read_anew_when_they_change() {
    let host = prepared(MODEL);
    script(host.folder(), "first");
    module(&host, "lab", &method("echo", ""));
    let stage = Stage::with(host).await;
    assert_eq!(says(&stage, "c0").await, "first");
    script(stage.host.folder(), "second");
    let mut turn = 0;
    wait_for("the new script", PATIENCE, async || {
        turn += 1;
        (says(&stage, &format!("c{turn}")).await == "second").then_some(())
    })
    .await;
    // One that is broken changes nothing, and is told.
    let manifest = stage.host.folder().join("lab/module.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("[methods.echo]", "[methods.Echo]")).unwrap();
    wait_for("a complaint", PATIENCE, async || {
        stage.host.log().contains("unchanged").then_some(())
    })
    .await;
    std::fs::write(&manifest, text + &method("keep", "")).unwrap();
    wait_for("the second reload", PATIENCE, async || {
        (stage.host.log().matches("reloaded the configuration").count() >= 2).then_some(())
    })
    .await;
    assert_eq!(says(&stage, "last").await, "second");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_check_would_warn_of_is_told_at_the_start_and_when_the_file_is_read_anew() {
    let gone = |name: &str| {
        format!("[runners.{name}]\ncommand = [\"./{name}\"]\nplugin = \"acme/{name}\"\n")
    };
    let stage = Stage::with(prepared(&gone("first"))).await;
    let log = stage.host.log();
    assert!(log.contains("warning: runner `first`: ") && log.contains("greenroom.toml:"), "{log}");
    let file = stage.host.folder().join("greenroom.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + &gone("second")).unwrap();
    wait_for("the new warning", PATIENCE, async || {
        stage.host.log().contains("warning: runner `second`: ").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_of_ones_own_are_listed_and_run_by_hand() {
    let host = prepared(MODEL);
    script(host.folder(), "hi");
    let place = "input_schema = { type = \"object\", properties = { place = { type = \"string\" } }, \
                 required = [\"place\"] }";
    module(&host, "lab", &(method("echo", place) + &method("crash", "")));
    let (code, stdout, _) = greenroom(&host, &["tool"]);
    assert_eq!(code, 0);
    let line = stdout.lines().find(|line| line.starts_with("lab")).unwrap();
    assert!(line.contains("crash"), "{stdout}");
    let (code, stdout, _) = greenroom(&host, &["tool", "lab"]);
    assert!(code == 0 && stdout.contains("lab echo: Does echo (read)"), "{stdout}");
    let input = r#"{"place":"台北"}"#;
    let (code, stdout, stderr) =
        greenroom(&host, &["tool", "lab", "echo", "--input", input, "--json"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["data"]["payload"], json!({"place": "台北"}));
    let names = told["data"]["environment"].to_string();
    assert!(!names.contains("GREENROOM_CREDENTIAL"), "{names}");
    let (code, _, stderr) = greenroom(&host, &["tool", "lab", "echo", "--input", "{}"]);
    assert!(code == 1 && stderr.contains("INVALID_ACTION_INPUT"), "{stderr}");
    let (code, _, stderr) = greenroom(&host, &["tool", "lab", "crash"]);
    assert!(code == 1 && stderr.contains("METHOD_CRASHED"), "{stderr}");
    let (code, _, stderr) = greenroom(&host, &["tool", "lab", "ehco"]);
    assert!(code == 2 && stderr.contains("did you mean `lab echo`?"), "{stderr}");
    let (code, _, stderr) = greenroom(&host, &["tool", "labb"]);
    assert!(code == 2 && stderr.contains("did you mean `lab`?"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_a_grant_or_a_server_misspells_are_told_with_the_nearest_one() {
    let config = format!(
        "[tools.box]\ncommand = [\"{}\", \"server.py\"]\ndir = \"box\"\nallow = [\"eho\", \"*\"]\n\
         [agents.clerk]\nrunner = \"plugin:test/puppet/main\"\nevents = []\ngrant = {{ tools = [\"box.ehco\"] }}\n",
        python()
    );
    let host = prepared(&config);
    std::fs::create_dir(host.folder().join("box")).unwrap();
    std::fs::write(host.folder().join("box/server.py"), SERVER).unwrap();
    let stage = Stage::with(host).await;
    let log = wait_for("a warning", PATIENCE, async || {
        Some(stage.host.log()).filter(|log| log.contains("box.ehco"))
    })
    .await;
    assert!(log.contains("did you mean `box.echo`?"), "{log}");
    assert!(log.contains("`allow` names `eho`"), "{log}");
    let data = stage.host.data().display().to_string();
    let (code, stdout, _) = greenroom(&stage.host, &["doctor", "--data", &data]);
    assert_eq!(code, 1, "{stdout}");
    assert!(stdout.contains("there is no tool `box.ehco`; did you mean `box.echo`?"), "{stdout}");
    assert!(stdout.contains("`allow` names `eho`"), "{stdout}");
}
