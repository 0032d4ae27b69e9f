//! What ends a run that does not end by itself.

use crate::checks::{is_paired, kinds};
use crate::scene::{Scene, Setting};
use crate::stage::outcome;
use crate::yard::{FOLDER, at_gate, yard};
use greenroom_protocol::{RunStatus, RunView};
use serde_json::Value;

/// The sentence that a failed run has for its user.
fn sentence(run: &RunView) -> String {
    run.error.as_ref().map(|error| error.message.clone()).unwrap_or_default()
}

/// How many calls of a run have an outcome.
async fn calls(scene: &Scene, run: &RunView) -> usize {
    let kinds = kinds(scene, run).await;
    let count = |kind: &str| kinds.iter().filter(|one| *one == kind).count();
    assert_eq!(count("tool.call.started"), count("tool.call.completed"), "{kinds:?}");
    count("tool.call.completed")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_failing_call_is_told_once_and_then_ends_the_run() {
    let script = r#"
[[rule]]
when.text = "stubborn"
answer = [{ call = "forge_fail", args = {} }]
[[rule]]
when = { text = "wise", result_text = "failed 3 times" }
answer = "I do without."
[[rule]]
answer = [{ call = "forge_fail", args = {} }]
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    let run = scene.say("c1", "be stubborn").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "loop.repeated_failure"));
    assert!(sentence(&run).contains("forge.fail"), "{run:?}");
    assert_eq!(calls(&scene, &run).await, 4);
    let asked = scene.asked();
    asked.iter().for_each(|messages| is_paired(messages));
    let warned = |message: &&Value| message.to_string().contains("failed 3 times");
    let last: Vec<bool> =
        asked[3].iter().filter(|m| m["role"] == "tool").map(|m| warned(&m)).collect();
    assert_eq!(last, [false, false, true], "told once, in the result itself");
    // A run of its own begins anew, whatever the last one did.
    assert_eq!(scene.answer("c1", "be wise").await, "I do without.");
    let run = scene.say("c3", "再来一次 stubborn").await;
    assert!(sentence(&run).contains("反复失败"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_only_fails_is_named_as_it_is_called() {
    let script = r#"
[[rule]]
answer = [{ call = "project_cli", args = { module = "calendar", method = "read", input = { mode = "never" } } }]
"#;
    let grant = "modules = [\"calendar.read\"]";
    let scene = Setting { script, grant, ..Setting::default() }.open().await;
    let run = scene.say("c1", "go").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "loop.repeated_failure"));
    assert!(sentence(&run).contains("`calendar.read`"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_nearly_all_fail_end_the_run() {
    let script = r#"
[[rule]]
answer = [{ call = "forge_add", args = { a = "{{round}}", b = 1 } }]
"#;
    let config = "{ max_tool_rounds = 100 }";
    let scene = Setting { script, config, ..Setting::default() }.open().await;
    let run = scene.say("c1", "go").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "loop.error_cascade"));
    assert!(!sentence(&run).is_empty());
    assert_eq!(calls(&scene, &run).await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_failing_calls_always_halt() {
    let same = "{ call = \"forge_fail\", args = {} },\n".repeat(40);
    let mixed: String = (0..40)
        .map(|n| format!("{{ call = \"forge_fail\", args = {{ n = {} }} }},\n", n / 2))
        .collect();
    let script = format!(
        "[[rule]]\nwhen.text = \"same\"\nanswer = [{same}]\n[[rule]]\nanswer = [{mixed}]\n"
    );
    let scene = Setting { script: &script, ..Setting::default() }.open().await;
    // The model sees the errors of its first answer; the second one ends the run.
    for (conversation, text) in [("c1", "all the same"), ("c2", "mixed")] {
        let run = scene.say(conversation, text).await;
        assert_eq!(outcome(&run), (RunStatus::Failed, "loop.error_cascade"), "{text}");
        assert_eq!(calls(&scene, &run).await, 80, "{text}");
    }
    assert_eq!(scene.requests().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_money_are_limited_per_run() {
    let script = r#"
[[rule]]
when.text = "much"
answer = [{ call = "forge_add", args = { a = 1, b = "{{round | json}}" } }, { usage = { input_tokens = 600, output_tokens = 10 } }]
[[rule]]
answer = [{ text = "little" }, { usage = { input_tokens = 600, output_tokens = 10 } }]
"#;
    let price = "price = { input = 1, output = 1 }";
    for (config, code) in [
        ("{ max_tokens_per_run = 1000 }", "limit.tokens"),
        ("{ max_cost_usd = 0.001 }", "limit.cost"),
    ] {
        let setting = Setting { script, config, model: price, ..Setting::default() };
        let scene = setting.open().await;
        let run = scene.say("c1", "much").await;
        assert_eq!(outcome(&run), (RunStatus::Failed, code));
        assert!(!sentence(&run).is_empty());
        assert_eq!(scene.requests().len(), 2, "{code}");
        // What one conversation has used up is nothing to another, nor to the next run.
        for conversation in ["c2", "c1"] {
            assert_eq!(scene.answer(conversation, "a bit").await, "little");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_limited_per_run_also_while_a_tool_or_the_model_takes_long() {
    let script = r#"
[[rule]]
when.text = "tool"
answer = [{ call = "yard_gate", args = { name = "g" } }]
[[rule]]
answer = [{ text = "so far" }, { silence = true }]
"#;
    let more = yard(0);
    let setting = Setting {
        script,
        more: &more,
        config: "{ max_seconds = 2 }",
        grant: "tools = [\"yard.*\"]",
        files: &[FOLDER],
        ..Setting::default()
    };
    let scene = setting.open().await;
    let run = scene.say("c1", "tool").await;
    at_gate(&scene, "g").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "limit.time"));
    let run = scene.say("c2", "model").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "limit.time"));
    assert!(!sentence(&run).is_empty());
    kinds(&scene, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_arguments_and_too_many_calls_end_a_call_and_not_the_run() {
    let nested = format!("{}1{}", "{\"a\":".repeat(110), "}".repeat(110));
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(1_500_000));
    let calls = "{ call = \"forge_add\", args = { a = 1, b = 1 } },".repeat(70);
    let script = format!(
        "[[rule]]\nwhen.tool_result = true\nanswer = \"I go on.\"\n\
         [[rule]]\nwhen.text = \"deep\"\nanswer = [{{ call = \"forge_add\", args_text = '{nested}' }}]\n\
         [[rule]]\nwhen.text = \"large\"\nanswer = [{{ call = \"forge_add\", args_text = '{large}' }}]\n\
         [[rule]]\nanswer = [{calls}]\n"
    );
    let scene = Setting { script: &script, ..Setting::default() }.open().await;
    for (conversation, text) in [("c1", "deep"), ("c2", "large")] {
        assert_eq!(scene.answer(conversation, text).await, "I go on.");
        let asked = scene.asked().pop().unwrap();
        is_paired(&asked);
        let told = Value::from(asked).to_string();
        assert!(told.contains("left_out") && told.contains("invalid_arguments"), "{text}");
        assert!(told.len() < 100_000, "{text}");
        // The conversation goes on as well.
        assert_eq!(scene.answer(conversation, text).await, "I go on.");
    }
    assert_eq!(scene.answer("c3", "many").await, "I go on.");
    let asked = scene.asked().pop().unwrap();
    is_paired(&asked);
    let results: Vec<&Value> = asked.iter().filter(|message| message["role"] == "tool").collect();
    let refused = results.iter().filter(|one| one.to_string().contains("too many calls at once"));
    assert_eq!((results.len(), refused.count()), (70, 6));
}
