//! A tool that exists but is not granted: the operator learns which line to add, the model learns nothing.

use crate::programs::greenroom;
use crate::scene::Setting;
use serde_json::json;

const SCRIPT: &str = r#"
[[rule]]
when.round = 1
answer = [
  { call = "forge_text", args = {}, id = "ungranted" },
  { call = "forge_text", args = {}, id = "ungranted again" },
  { call = "forge_nothing", args = {}, id = "unknown" },
  { call = "project_cli", args = { module = "calendar", method = "delete", input = { event_id = "e" } }, id = "method" },
]
[[rule]]
answer = "So be it."
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_tool_that_is_not_granted_says_which_line_to_add_and_to_whom() {
    let grant = "tools = [\"forge.add\"], modules = [\"calendar.read\"]";
    let scene = Setting { script: SCRIPT, grant, ..Setting::default() }.open().await;
    let run = scene.say("c1", "go").await;
    let tool = "the tool `forge.text` exists but is not granted; to allow it, write \
                `tools = [\"forge.add\", \"forge.text\"]` in `[agents.agent.grant]`";
    let method = "the method `calendar.delete` exists but is not granted; to allow it, write \
                  `modules = [\"calendar.read\", \"calendar.delete\"]` in `[agents.agent.grant]`";
    let noted =
        greenroom_testkit::wait::wait_for("both notes", crate::stage::PATIENCE, async || {
            let noted = scene.stage.diagnostics(&run.run_id).await;
            (noted.len() >= 2).then_some(noted)
        });
    let mut noted = noted.await;
    noted.sort();
    let kind = "grant.missing".to_owned();
    assert_eq!(noted, [(kind.clone(), method.to_owned()), (kind, tool.to_owned())]);
    assert!(scene.stage.host.log().contains(tool), "{}", scene.stage.host.log());
    let checks = scene.stage.api.get("/v1/checks").await;
    let grants: Vec<_> = checks["items"].as_array().unwrap().iter().collect();
    let grants: Vec<_> = grants.into_iter().filter(|check| check["kind"] == "grant").collect();
    let expected = [method, tool].map(|text| {
        json!({"kind": "grant", "name": "", "ok": false, "message": format!("agent `agent`: {text}")})
    });
    assert_eq!(grants, expected.iter().collect::<Vec<_>>());
    // The model is told the same of a tool that exists and of one that does not.
    let asked = scene.requests()[1].to_string();
    assert!(!asked.contains("not granted") && asked.contains("unknown tool"), "{asked}");
    let args = ["runs", "show", &run.run_id, "--data", "data"];
    let (_, shown, said) = greenroom(&scene.stage.host, &args);
    assert!(shown.contains(tool), "{shown}{said}");
}
