//! Tools of a plugin, called by the runs of another: known by its name in the configuration, and fenced like a runner.

use crate::play;
use crate::stage::{PATIENCE, Stage, event, outcome, runners};
use greenroom_protocol::{RunStatus, TranscriptRole};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

async fn stage() -> Stage {
    let smith = runners().join("smith.py");
    let config = format!(
        r#"
[runners.forge]
command = ["python3", "{}"]
dir = "other"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = {{ tools = ["forge.*"] }}
[agents.bare]
runner = "plugin:test/puppet/main"
events = []
grant = {{ tools = ["forge.add"] }}
"#,
        smith.display()
    );
    Stage::open(&config).await
}

fn use_tool(name: &str, tool: &str, parameters: Value) -> Value {
    let params = json!({"tool_name": tool, "parameters": parameters, "tool_call_id": name});
    json!(["call", "tools.call", params, name])
}

fn wire_log(stage: &Stage) -> Vec<String> {
    let log = std::fs::read_to_string(stage.host.folder().join("other/wire.log"));
    log.unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugins_tools_are_called_by_the_runs_of_others() {
    // The first run comes before the plugin has said what it offers.
    let stage = stage().await;
    let steps = vec![
        json!(["tell", "resources"]),
        use_tool("sum", "forge.add", json!({"a": 2, "b": 3})),
        use_tool("text", "forge.text", json!({})),
        use_tool("wrong", "forge.add", json!({"a": "two", "b": 3})),
        use_tool("large", "forge.large", json!({})),
        json!(["call", "tools.get_detail", {"tool_name": "forge.add"}, "detail"]),
        json!(["call", "tools.search", {"query": "add numbers", "top_k": 1}, "found"]),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let resources: Value = serde_json::from_str(&stage.answers_of(&run).await[0]).unwrap();
    let tools = resources["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["tool_name"].as_str().unwrap()).collect();
    // Neither the one whose schema leads elsewhere nor the one with an odd name.
    assert_eq!(
        names,
        [
            "forge.add",
            "forge.crash",
            "forge.fail",
            "forge.garbage",
            "forge.hang",
            "forge.large",
            "forge.refuse",
            "forge.text",
            "forge.wait"
        ]
    );
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"},
        "b": {"type": "number"}}, "required": ["a", "b"], "additionalProperties": false});
    assert_eq!(tools[0]["parameters"], schema);
    assert_eq!(tools[0]["metadata"]["risk"], "read");
    assert_eq!(stage.told("detail").await["result"], tools[0]);
    assert_eq!(stage.told("found").await["result"]["items"], json!([tools[0]]));
    let sum = stage.told("sum").await;
    assert_eq!(sum["result"]["result"], json!({"sum": 5}));
    assert_eq!(sum["result"]["content"], r#"{"sum":5}"#);
    assert_eq!(stage.told("text").await["result"]["result"], json!({"text": "only words"}));
    let wrong = stage.told("wrong").await["result"]["error"].clone();
    assert_eq!((&wrong["code"], &wrong["field"]), (&json!("INVALID_ARGUMENT"), &json!("a")));
    let large = stage.told("large").await["result"]["result"].clone();
    assert_eq!(large["truncated"], true);
    assert!(large["artifact"]["artifact_id"].is_string(), "{large}");
    let calls: Vec<String> =
        wire_log(&stage).into_iter().filter(|line| line.starts_with("call")).collect();
    // The plugin hears its own name of the tool, and of no call that does not fit.
    assert!(calls[0].ends_with(&format!("add sum {}", run.run_id)), "{calls:?}");
    assert_eq!(calls.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_was_not_granted_is_not_there() {
    let stage = stage().await;
    let steps = json!([
        use_tool("other", "forge.fail", json!({})),
        use_tool("none", "forge.nothing", json!({})),
        ["call", "tools.get_detail", {"tool_name": "forge.fail"}, "detail"],
        ["call", "tools.search", {"query": "Misbehaves", "top_k": 10}, "found"],
        ["end"]
    ]);
    let run_id = stage.send(&event("bare", "c1", &steps.to_string())).await;
    stage.api.ended_run(&run_id).await;
    for name in ["other", "none", "detail"] {
        let told = stage.told(name).await;
        assert_eq!(told["error"]["data"]["code"], "not_found", "{told}");
    }
    let told = stage.told("other").await;
    // Only what was granted is told as near to it.
    assert_eq!(told["error"]["data"]["details"]["close_matches"], json!(["forge.add"]), "{told}");
    assert_eq!(stage.told("found").await["result"]["items"], json!([]));
    assert_eq!(wire_log(&stage), ["start"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_plugin_does_a_call_has_one_output() {
    let stage = stage().await;
    let ways = [
        ("fail", "NO_INK"),
        ("refuse", "TOOL_FAILED"),
        ("garbage", "INVALID_OUTPUT"),
        ("hang", "TIMEOUT"),
        ("crash", "CRASHED"),
    ];
    let mut steps: Vec<Value> =
        ways.iter().map(|(way, _)| use_tool(way, &format!("forge.{way}"), json!({}))).collect();
    // After the crash it is started again.
    steps.push(use_tool("after", "forge.add", json!({"a": 1, "b": 1})));
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    for (way, code) in ways {
        let told = stage.told(way).await;
        assert_eq!(told["result"]["error"]["code"], code, "{told}");
        assert_eq!(told["result"]["metadata"]["status"], "failure");
    }
    let failed = stage.told("fail").await["result"]["error"].clone();
    assert_eq!(failed, json!({"code": "NO_INK", "message": "the pen is empty", "pen": 7}));
    assert_eq!(stage.told("after").await["result"]["result"], json!({"sum": 2}));
    let items = stage.api.history("c1").await;
    assert_eq!(items.iter().filter(|item| item.role == TranscriptRole::Tool).count(), 6);
    assert_eq!(wire_log(&stage).iter().filter(|line| *line == "start").count(), 2);
    // The call that hung was called off.
    let log = wire_log(&stage);
    let hung = log.iter().find_map(|line| line.strip_prefix("call ")?.split_once(" hang "));
    let cancelled = format!("cancel {}", hung.unwrap().0);
    assert!(log.contains(&cancelled), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_is_called_off_when_its_run_is_cancelled() {
    let stage = stage().await;
    let steps = json!([use_tool("wait", "forge.wait", json!({})), ["end"]]);
    let run_id = stage.send(&event("clerk", "c1", &steps.to_string())).await;
    let mark = stage.host.folder().join("other/waits");
    wait_for("the call", PATIENCE, async || mark.exists().then_some(())).await;
    let run = stage.cancel(&run_id).await;
    assert_eq!(run.status, RunStatus::Cancelled);
    let log = wire_log(&stage);
    let number = log.iter().find_map(|line| line.strip_prefix("call ")?.split_once(" wait "));
    let cancelled = format!("cancel {}", number.unwrap().0);
    wait_for("word of it", PATIENCE, async || wire_log(&stage).contains(&cancelled).then_some(()))
        .await;
    // It may have acted: its output says that it was called off.
    let item = wait_for("an output", PATIENCE, async || {
        let items = stage.api.history("c1").await;
        items.into_iter().find(|item| item.role == TranscriptRole::Tool)
    })
    .await;
    let output = &item.metadata["tool_agent_output"];
    assert_eq!(
        (&output["tool_call_id"], &output["error"]["code"]),
        (&json!("wait"), &json!("CANCELLED"))
    );
    let types = stage.log("tool.call").await;
    assert_eq!(types, ["tool.call.started", "tool.call.completed"]);
}
