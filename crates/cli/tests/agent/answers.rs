//! The plain way: a question, perhaps tools, an answer, and what is told of one that is not whole.

use crate::scene::Setting;
use crate::shapes::PROVIDERS;
use crate::stage::outcome;
use greenroom_protocol::{RunStatus, TranscriptRole};
use serde_json::{Value, json};

/// Adds two numbers with a tool, and says what came out.
const SUM: &str = r#"
[[rule]]
when = { text = "add", tool_result = false }
answer = [{ text = "Let me see." }, { call = "forge_add", args = { a = 2, b = 3 }, id = "c1" }]
[[rule]]
when.tool_result = true
answer = "It is {{last_tool_result}}."
[[rule]]
answer = "You said: {{text}}"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_with_a_tool_and_the_transcript_tells_all_of_it() {
    let scene = Setting { script: SUM, ..Setting::default() }.open().await;
    let answer = scene.answer("c1", "add two and three").await;
    assert!(answer.starts_with("It is "), "{answer}");
    let items = scene.history("c1").await;
    let told: Vec<(TranscriptRole, &str)> =
        items.iter().map(|item| (item.role, item.text.as_deref().unwrap_or_default())).collect();
    assert_eq!(told[0], (TranscriptRole::User, "add two and three"));
    assert_eq!(told[1], (TranscriptRole::Assistant, "Let me see."));
    assert_eq!(told[2].0, TranscriptRole::Tool);
    assert_eq!(told[3], (TranscriptRole::Assistant, answer.as_str()));
    assert_eq!(items[3].metadata["rounds"], json!([["c1"]]));
    let asked = scene.asked();
    assert_eq!(asked.len(), 2);
    let last = asked[1].last().unwrap();
    assert_eq!((&last["role"], &last["tool_call_id"]), (&json!("tool"), &json!("c1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_summed_over_the_turns_into_the_terminal() {
    let script = r#"
[[rule]]
when.tool_result = false
answer = [{ call = "forge_add", args = { a = 1, b = 1 } }, { usage = { input_tokens = 10, output_tokens = 5 } }]
[[rule]]
answer = [{ text = "2" }, { usage = { input_tokens = 20, output_tokens = 1 } }]
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    let run = scene.say("c1", "one and one?").await;
    assert_eq!(run.status, RunStatus::Completed);
    let results = scene.stage.api.results(&run.run_id).await;
    let terminal = serde_json::to_value(results.last().unwrap()).unwrap();
    assert_eq!(terminal["type"], "run.completed");
    let usage = &terminal["usage"];
    let told = |key: &str| usage.get(key).and_then(Value::as_u64);
    assert_eq!((told("input_tokens"), told("output_tokens")), (Some(30), Some(6)), "{usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_filtered_is_a_refusal_and_not_asked_for_again() {
    let script = r#"
[[rule]]
answer = [{ finish = "content_filter" }]
"#;
    for provider in PROVIDERS {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        for (conversation, text, sentence) in
            [("c1", "hello", "filtered the answer"), ("c2", "你好", "过滤了本次回答")]
        {
            let run = scene.say(conversation, text).await;
            assert_eq!(outcome(&run), (RunStatus::Failed, "model.refused"), "{provider}");
            assert!(run.error.unwrap().message.contains(sentence), "{provider}");
        }
        assert_eq!(scene.requests().len(), 2, "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_cut_says_so_in_the_terminal_too() {
    let script = r#"
[[rule]]
answer = [{ text = "Once upon" }, { usage = { input_tokens = 10, output_tokens = 2 } }, { finish = "length" }]
"#;
    for provider in PROVIDERS {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        let run = scene.say("c1", "tell me").await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{provider}");
        let items = scene.history("c1").await;
        assert_eq!(items.last().unwrap().metadata["finish_reason"], "length", "{provider}");
        let results = scene.stage.api.results(&run.run_id).await;
        let terminal = serde_json::to_value(results.last().unwrap()).unwrap();
        assert_eq!(terminal["type"], "run.completed", "{provider}");
        assert_eq!(terminal["data"]["finish_reason"], "length", "{provider}");
        assert_eq!(terminal["usage"]["input_tokens"], 10, "{provider}: {terminal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_user_is_told_so_in_their_language() {
    let none = Setting { models: &[], ..Setting::default() };
    let gone = Setting { config: "{ model = \"gone\" }", ..Setting::default() };
    for (setting, english, chinese) in [
        (none, "this agent has no model", "该智能体没有可用的模型"),
        (gone, "is not granted", "未获授权"),
    ] {
        let scene = setting.open().await;
        for (text, sentence) in [("hello", english), ("你好", chinese)] {
            let run = scene.say("c1", text).await;
            assert_eq!(outcome(&run), (RunStatus::Failed, "agent.no_model"));
            assert!(run.error.as_ref().unwrap().message.contains(sentence), "{run:?}");
        }
    }
}
