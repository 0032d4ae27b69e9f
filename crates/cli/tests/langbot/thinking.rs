//! A plugin that is an agent: it asks its model, calls tools, and streams what comes.

use crate::stage::{Stage, agent, copy, outcome, plugins_folder};
use greenroom_protocol::{RunStatus, TranscriptRole};
use greenroom_testkit::host::TestHost;
use greenroom_testkit::receiver::{Reaction, Receiver};
use serde_json::json;

const SCRIPT: &str = r#"
[[rule]]
when.text = "once"
answer = [{ text = "Just this." }, { usage = { input_tokens = 5, output_tokens = 2 } }]

[[rule]]
when = { offers = "project_cli", tool_result = false }
answer = [
  { reasoning = "A note is wanted." },
  { text = "Let me see. " },
  { call = "project_cli", args = { module = "memory", method = "read", input = { query = "tea" } } },
]

[[rule]]
when.tool_result = true
answer = "This is a long answer of many small pieces, more than fit into one window, so that the plugin has to acknowledge what it has taken before it gets the rest of it."
"#;

async fn stage(grant: &str) -> Stage {
    let more = format!(
        "[models.main]\nprovider = \"scripted\"\nscript = \"script.toml\"\n{}[agents.agent.grant]\n{grant}\n",
        agent("agent", "thinker", "loop", "")
    );
    let python = crate::stage::python();
    let config = format!(
        "[store]\nsync = \"normal\"\n[limits]\nrunner_start_s = 60\n[runners.thinker]\n\
         command = [\"{}\"]\ndir = \"thinker\"\n{more}",
        python.display()
    );
    let host = TestHost::prepare(crate::PROGRAM, &config);
    copy(&plugins_folder().join("thinker"), &host.folder().join("thinker"));
    std::fs::write(host.folder().join("script.toml"), SCRIPT).unwrap();
    Stage::start(host).await
}

#[tokio::test]
async fn a_model_is_streamed_to_the_plugin_and_its_calls_are_carried_out_once() {
    let stage = stage("models = [\"main\"]\nmodules = [\"memory.*\"]").await;
    let run = stage.play("agent", "c1", "what do you know?").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", stage.host.log());
    let answer = stage.api.answers("c1").await.pop().unwrap();
    assert!(answer.starts_with("This is a long answer"), "{answer}");
    assert!(answer.ends_with("the rest of it."), "{answer}");
    let items = stage.api.history("c1").await;
    let tools: Vec<_> = items.iter().filter(|item| item.role == TranscriptRole::Tool).collect();
    assert_eq!(tools.len(), 1, "{items:?}");
    // What the plugin tells of the call has the id under which the host carried it out.
    let results = stage.results(&run).await;
    let ids: Vec<_> = results
        .iter()
        .filter(|result| result.kind.starts_with("tool.call."))
        .map(|result| result.data["tool_call_id"].clone())
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_eq!(ids[0], ids[1]);
    assert_eq!(run.model_calls.unwrap().calls, 2);
}

#[tokio::test]
async fn a_reasoning_level_reaches_the_provider() {
    // The provider refuses: what it was asked is the point.
    let provider = Receiver::reacting(|_, _| Reaction::Answer(400)).await;
    let model = format!(
        "[models.main]\nprovider = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"{}\"\n\
         api_key = {{ file = \"key\" }}\nallow_private = true\nretries = 0\n",
        provider.url()
    );
    let calls = agent("calls", "reader", "calls", "grant = { models = [\"main\"] }");
    let config = crate::stage::config(&["reader"], &format!("{calls}{model}"));
    let host = TestHost::prepare(crate::PROGRAM, &config);
    copy(&plugins_folder().join("reader"), &host.folder().join("reader"));
    std::fs::write(host.folder().join("key"), "a-key-for-the-provider").unwrap();
    let stage = Stage::start(host).await;
    let messages = json!([{"role": "user", "content": "hello"}]);
    let asked = |level: &str| json!(["invoke_llm", {"llm_model_uuid": "main", "messages": messages, "reasoning_level": level}]);
    let levels = ["disabled", "low", "medium", "max"];
    let asked: Vec<_> = levels.into_iter().map(asked).collect();
    let told = stage.told("calls", "c1", &json!(asked)).await;
    let efforts: Vec<_> = provider
        .received()
        .into_iter()
        .map(|request| request.payload["reasoning_effort"].clone())
        .collect();
    // The SDK asks `get_langbot_version` first, and refuses by itself where the feature is missing.
    assert_eq!(efforts, ["none", "low", "medium", "high"], "{told}");
}

#[tokio::test]
async fn an_answer_of_a_model_comes_with_what_it_took() {
    let stage = stage("models = [\"main\"]").await;
    let run = stage.play("agent", "c1", "once").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", stage.host.log());
    assert_eq!(stage.api.answers("c1").await, ["Just this."]);
    let usage = run.usage.unwrap();
    assert_eq!((&usage["prompt_tokens"], &usage["input_tokens"]), (&json!(5), &json!(5)));
}
