//! The loop: one result per call, checked arguments, rounds that end, calls side by side and in order.

use crate::checks::{is_paired, kinds, offered, results};
use crate::programs::{greenroom, method, module, prepared};
use crate::scene::{Scene, Setting};
use crate::server::{KEY, Server, WIRES};
use crate::stage::{Stage, outcome};
use crate::yard::{FOLDER, notes, yard};
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};
use std::path::Path;

/// How often the plugin `forge` was called.
fn forged(scene: &Scene) -> usize {
    let log = std::fs::read_to_string(scene.stage.host.folder().join("other/wire.log"));
    log.unwrap_or_default().lines().filter(|line| line.starts_with("call ")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_gets_exactly_one_result_whatever_becomes_of_it() {
    let script = r#"
[[rule]]
when.round = 1
answer = [
  { text = "All at once." },
  { call = "forge_nothing", args = {}, id = "unknown" },
  { call = "forge_add", args = { a = "two", b = 3 }, id = "invalid" },
  { call = "forge_add", args_text = "{oops", id = "broken" },
  { call = "forge_wait", args = {}, id = "denied" },
  { call = "forge_hang", args = {}, id = "timed out" },
  { call = "forge_fail", args = {}, id = "failed" },
  { call = "forge_add", args = { a = 2, b = 3 }, id = "fine" },
]
[[rule]]
when.round = 2
answer = [{ call = "forge_crash", args = {}, id = "crashed" }]
[[rule]]
answer = "So be it."
"#;
    let grant = "tools = [\"forge.*\"], risk = { write = \"never\" }";
    let scene = Setting { script, grant, ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "go").await, "So be it.");
    let asked = scene.asked();
    asked.iter().for_each(|messages| is_paired(messages));
    let first = results(&asked[1]);
    let codes: Vec<&str> =
        first.iter().map(|told| told["error"]["code"].as_str().unwrap_or("fine")).collect();
    let expected = [
        "unknown_tool",
        "INVALID_ARGUMENT",
        "invalid_arguments",
        "unauthorized",
        "TIMEOUT",
        "NO_INK",
        "fine",
    ];
    assert_eq!(codes, expected);
    let second = results(&asked[2]);
    assert_eq!(second[0]["error"]["code"], "CRASHED");
    for told in first.iter().chain(&second).filter(|told| told.get("error").is_some()) {
        let error = &told["error"];
        for key in ["message", "hint"] {
            assert!(error[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {told}");
        }
    }
    let run = scene.stage.api.runs().await.remove(0);
    let kinds = kinds(&scene, &run).await;
    for kind in ["tool.call.started", "tool.call.completed"] {
        assert_eq!(kinds.iter().filter(|one| *one == kind).count(), 8, "{kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_comes_back_with_close_names_and_the_corrected_call_works() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "forge_ad", args = { a = 2, b = 3 } }]
[[rule]]
when = { round = 2, result_text = "forge.add" }
answer = [{ call = "forge_add", args = { a = 2, b = 3 } }]
[[rule]]
when.round = 3
answer = "It is {{last_tool_result}}."
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "add").await, r#"It is {"sum":5}."#);
    let asked = scene.asked();
    let error = &results(&asked[1])[0]["error"];
    assert_eq!(error["close_matches"][0], "forge.add", "{error}");
    assert_eq!(forged(&scene), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_checked_and_the_error_names_the_field_and_carries_the_schema() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "forge_add", args = { a = 2 } }, { call = "forge_add", args = { a = 2, b = "3" } }]
[[rule]]
answer = "I see."
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "add").await, "I see.");
    let told = results(&scene.asked()[1]);
    for one in &told {
        let error = &one["error"];
        assert!(error["message"].as_str().unwrap().contains('b'), "{error}");
        assert!(error.to_string().contains("\"additionalProperties\":false"), "{error}");
    }
    assert_eq!(told[1]["error"]["field"], "b");
    assert_eq!(forged(&scene), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_last_round_the_model_is_asked_once_and_may_call_nothing() {
    let script = r#"
[[rule]]
when.round = 3
answer = "Enough."
[[rule]]
answer = [{ call = "forge_add", args = { a = 1, b = "{{round | json}}" } }]
"#;
    for (_, provider) in WIRES {
        let config = "{ max_tool_rounds = 2 }";
        let scene = Setting { script, config, provider, ..Setting::default() }.open().await;
        let run = scene.say("c1", "add for ever").await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{provider}");
        assert_eq!(scene.stage.api.answers("c1").await, ["Enough."], "{provider}");
        assert_eq!((scene.requests().len(), forged(&scene)), (3, 2), "{provider}");
        let kinds = kinds(&scene, &run).await;
        assert_eq!(kinds.last().unwrap(), "run.completed");
        let requests = scene.requests();
        let last = &requests[2];
        assert_eq!(last["tools"], requests[0]["tools"], "{provider}");
        match provider {
            "anthropic" => assert_eq!(last["tool_choice"], json!({"type": "none"})),
            "gemini" => {
                let calling = &last["toolConfig"]["functionCallingConfig"];
                assert_eq!(calling, &json!({"mode": "NONE"}));
            }
            _ => assert_eq!(last["tool_choice"], "none", "{provider}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_without_end_has_one_terminal_all_the_same() {
    let script = r#"
[[rule]]
answer = [{ call = "forge_add", args = { a = 1, b = "{{round | json}}" } }]
"#;
    let config = "{ max_tool_rounds = 1 }";
    let scene = Setting { script, config, ..Setting::default() }.open().await;
    let run = scene.say("c1", "add").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "loop.max_rounds"));
    kinds(&scene, &run).await;
    assert_eq!((scene.requests().len(), forged(&scene)), (2, 1));
    let none = Setting { script, config: "{ max_tool_rounds = 0 }", ..Setting::default() };
    let scene = none.open().await;
    scene.say("c1", "add").await;
    assert_eq!(offered(&scene.requests()[0]), [""; 0]);
    assert_eq!(forged(&scene), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_outside_the_grant_is_refused_at_the_call() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "forge.text", args = {} }, { call = "forge_text", args = {} }, { call = "forge_add", args = { a = 1, b = 1 } }]
[[rule]]
answer = "I see."
"#;
    let grant = "tools = [\"forge.add\"]";
    let scene = Setting { script, grant, ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "say it").await, "I see.");
    assert_eq!(forged(&scene), 1);
    let asked = scene.asked();
    is_paired(&asked[1]);
    let told = results(&asked[1]);
    for one in &told[..2] {
        assert_eq!(one["error"]["code"], "unknown_tool");
        assert!(!one["error"]["close_matches"].to_string().contains("forge.text"), "{one}");
    }
    assert_eq!(told[2], json!({"sum": 2}));
}

#[test]
fn two_tools_with_one_name_are_a_mistake_that_names_both_sources() {
    let tables = yard(0).replace("yard", "forge") + "[tools.forge]\ncommand = [\"node\"]\n";
    let host = prepared(&tables);
    for folder in ["puppet", "forge"] {
        std::fs::create_dir(host.folder().join(folder)).unwrap();
    }
    let (code, _, stderr) = greenroom(&host, &["check"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("`tools.forge` and `runners.forge`"), "{stderr}");
}

/// The schema of `yard.typed`, as its author wrote it.
fn typed() -> Value {
    let id = json!({"type": "object", "properties": {"id": {"const": 7}}, "required": ["id"],
        "additionalProperties": false});
    json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
            "color": {"type": "string", "enum": ["red", "green"]},
            "note": {"type": ["string", "null"], "maxLength": 20, "pattern": "^[a-z ]*$"},
            "target": {"oneOf": [{"type": "string", "format": "email"}, id]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true},
        },
        "required": ["count"],
        "additionalProperties": false,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_reach_the_model_unchanged() {
    for (_, provider) in WIRES {
        let (more, grant) = (yard(0), "tools = [\"yard.typed\"]");
        let setting =
            Setting { provider, more: &more, grant, files: &[FOLDER], ..Setting::default() };
        let scene = setting.open().await;
        scene.answer("c1", "hello").await;
        let request = scene.requests().remove(0);
        let tools = match provider {
            "gemini" => &request["tools"][0]["functionDeclarations"],
            _ => &request["tools"],
        };
        let (name, schema) = match provider {
            "openai" => ("/function/name", "/function/parameters"),
            "anthropic" => ("/name", "/input_schema"),
            "gemini" => ("/name", "/parametersJsonSchema"),
            _ => ("/name", "/parameters"),
        };
        let is_it = |tool: &&Value| tool.pointer(name) == Some(&json!("yard_typed"));
        let tool = tools.as_array().unwrap().iter().find(is_it).unwrap();
        assert_eq!(tool.pointer(schema), Some(&typed()), "{provider}");
    }
}

async fn in_the_yard(script: &str) -> Scene {
    let (more, grant) = (yard(0), "tools = [\"yard.*\"]");
    Setting { script, more: &more, grant, files: &[FOLDER], ..Setting::default() }.open().await
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_only_read_run_side_by_side() {
    let script = r#"
[[rule]]
when.round = 1
answer = [
  { call = "yard_meet", args = { name = "ann", other = "ben" }, id = "ann" },
  { call = "yard_meet", args = { name = "ben", other = "ann" }, id = "ben" },
]
[[rule]]
answer = "They met."
"#;
    let scene = in_the_yard(script).await;
    assert_eq!(scene.answer("c1", "meet").await, "They met.");
    let asked = scene.asked();
    is_paired(&asked[1]);
    assert_eq!(results(&asked[1]), [json!({"met": true}), json!({"met": true})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_change_something_run_one_after_the_other_in_their_order() {
    let script = r#"
[[rule]]
when.round = 1
answer = [
  { call = "yard_write", args = { name = "one" } },
  { call = "yard_write", args = { name = "two" } },
  { call = "yard_typed", args = { count = 1 } },
  { call = "yard_write", args = { name = "three" } },
]
[[rule]]
answer = "Written."
"#;
    let scene = in_the_yard(script).await;
    assert_eq!(scene.answer("c1", "write").await, "Written.");
    let expected = ["begin one", "end one", "begin two", "end two", "begin three", "end three"];
    assert_eq!(notes(&scene), expected);
    is_paired(&scene.asked()[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_runs_out_of_time_leaves_no_process_behind() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "project_cli", args = { module = "lab", method = "slow", input = {} } }]
[[rule]]
when.result_text = "TIMEOUT"
answer = "It took too long."
"#;
    let server = Server::start(script);
    let tables = server.model("main", "openai", "")
        + "[tools.lab]\nkind = \"module\"\nmanifest = \"lab/module.toml\"\n\
           [agents.agent]\nrunner = \"plugin:greenroom/local-agent/default\"\nevents = []\n\
           grant = { models = [\"main\"], modules = [\"lab.*\"] }\n";
    let host = prepared(&tables);
    std::fs::write(host.folder().join("key"), KEY).unwrap();
    module(&host, "lab", &method("slow", "timeout_s = 5\nrisk = \"read\""));
    let scene = Scene { stage: Stage::with(host).await, server };
    assert_eq!(scene.answer("c1", "be slow").await, "It took too long.");
    let pids = std::fs::read_to_string(scene.stage.host.folder().join("lab/out/pids")).unwrap();
    for pid in serde_json::from_str::<Vec<u32>>(&pids).unwrap() {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is still there");
    }
}
