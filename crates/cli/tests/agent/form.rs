//! The settings of the reference runner: a form for all of them, and refusals that name the key.

use crate::scene::Setting;
use crate::stage::outcome;
use greenroom_protocol::RunStatus;
use serde_json::Value;
use std::process::Command;

const KEYS: [&str; 19] = [
    "prompt",
    "model",
    "fallback_models",
    "temperature",
    "reasoning",
    "options",
    "tool_calling",
    "max_tool_rounds",
    "tools_in_prompt",
    "commands",
    "context_tokens",
    "compact_at_percent",
    "knowledge_top_k",
    "timezone",
    "sender_names",
    "max_tokens_per_run",
    "max_cost_usd",
    "max_seconds",
    "model_timeout_s",
];

/// The form, as `greenroom runner list` shows it.
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn listed(data: &std::path::Path) -> Vec<Value> {
    let list = Command::new(crate::PROGRAM)
        .args(["runner", "list", "--json", "--data"])
        .arg(data)
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    let mut all = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|plugin| plugin["runners"].as_array().cloned().unwrap_or_default());
    let agent = all.find(|runner| runner["id"] == "plugin:greenroom/local-agent/default");
    agent.unwrap()["config_schema"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_has_a_form_in_two_languages_and_its_defaults_work() {
    let scene = Setting::default().open().await;
    scene.answer("c1", "hi").await;
    let form = listed(&scene.stage.host.data());
    let names: Vec<&str> = form.iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names, KEYS);
    for item in &form {
        for text in ["label", "description"] {
            for locale in ["en_US", "zh_Hans"] {
                let text = item[text][locale].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{item}");
            }
        }
        let options = item["options"].as_array();
        let names = options.into_iter().flatten().map(|option| &option["name"]);
        let names: Vec<&Value> = names.collect();
        assert!(names.is_empty() || names.contains(&&item["default"]), "{item}");
    }
    // A JSON value of such a kind is a TOML value as well.
    let defaults = form.iter().filter(|item| !item["default"].is_null());
    let defaults: Vec<String> = defaults
        .map(|item| format!("{} = {}", item["name"].as_str().unwrap(), item["default"]))
        .collect();
    let config = format!("{{ {} }}", defaults.join(", "));
    let scene = Setting { config: &config, ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "hi").await, "You said: hi");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_options_reach_the_provider() {
    let config = "{ temperature = 0.25, reasoning = \"low\", options = { top_p = 0.5 } }";
    let scene = Setting { config, ..Setting::default() }.open().await;
    scene.answer("c1", "hi").await;
    let request = &scene.requests()[0];
    assert_eq!(request["temperature"], 0.25);
    assert_eq!(request["top_p"], 0.5);
    assert_eq!(request["reasoning_effort"], "low");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_cannot_be_used_ends_the_run_with_the_name_of_the_key() {
    for (config, expected) in [
        ("{ promt = \"hi\" }", "unknown field `promt`"),
        (
            "{ prompt = \"hi\", max_tool_rounds = \"eight\" }",
            "`max_tool_rounds`: expected an integer",
        ),
        ("{ reasoning = \"wild\" }", "`reasoning`: expected one of `default`, `none`"),
        ("{ max_cost_usd = -1 }", "`max_cost_usd`: expected 0 or more"),
        ("{ context_tokens = 10 }", "`context_tokens`: expected at least 1000"),
    ] {
        let scene = Setting { config, ..Setting::default() }.open().await;
        for text in ["hi", "/help"] {
            let run = scene.say("c1", text).await;
            assert_eq!(outcome(&run), (RunStatus::Failed, "config.invalid"), "{config}");
            let message = run.error.unwrap().message;
            assert!(message.contains(expected), "{message}");
        }
        assert_eq!(scene.requests(), Vec::<Value>::new());
    }
}
