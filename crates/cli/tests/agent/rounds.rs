//! One answer's calls as a round: their order, and how their failures count.

use crate::checks::{is_paired, kinds, results};
use crate::scene::Setting;
use crate::stage::outcome;
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};

/// One method of the project CLI as a step of a script.
fn method(module: &str, method: &str, input: &str) -> String {
    format!(
        "{{ call = \"project_cli\", args = {{ module = \"{module}\", method = \"{method}\", input = {input} }} }},\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_ordered_writes_of_one_answer_end_in_their_order() {
    let set = |value: usize| method("memory", "update", &format!("{{ set = {{ k = {value} }} }}"));
    let writes: String = (1..=8).map(set).collect();
    let read = method("memory", "read", "{ keys = [\"k\"] }");
    let script = format!(
        "[[rule]]\nwhen.round = 1\nanswer = [{read}{writes}{read}]\n[[rule]]\nanswer = \"Written.\"\n"
    );
    let grant = "modules = [\"memory.*\"], risk = { write = \"always\" }";
    let scene = Setting { script: &script, grant, ..Setting::default() }.open().await;
    for round in 0..3 {
        let conversation = format!("c{round}");
        assert_eq!(scene.answer(&conversation, "write").await, "Written.");
        let told = results(scene.asked().last().unwrap());
        let versions: Vec<Value> =
            told[1..9].iter().map(|told| told["data"]["set"][0]["version"].clone()).collect();
        let expected: Vec<Value> = (1..=8).map(|at| json!(round * 8 + at)).collect();
        assert_eq!(versions, expected, "{told:#?}");
        assert_eq!(told[9]["data"]["items"][0]["value"], 8, "{told:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_calls_with_the_same_mistake_are_one_failure_that_the_model_sees() {
    let wrong = method("memory", "read", "{ key = \"k\" }").repeat(10);
    let script = format!(
        "[[rule]]\nwhen.result_text = \"INVALID_ACTION_INPUT\"\nanswer = \"I see what was wrong.\"\n\
         [[rule]]\nanswer = [{wrong}]\n"
    );
    let grant = "modules = [\"memory.*\"]";
    let scene = Setting { script: &script, grant, ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "go").await, "I see what was wrong.");
    let asked = scene.asked();
    is_paired(&asked[1]);
    let told = results(&asked[1]);
    assert_eq!(told.len(), 10);
    assert!(told.iter().all(|told| told["error"]["code"] == "INVALID_ACTION_INPUT"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_answer_of_the_provider_is_told_and_written_again() {
    let script = r#"
[[rule]]
when.context = "stubborn"
answer = [{ finish = "error" }]
[[rule]]
when.context = "model.malformed_call"
answer = "Now it is well formed."
[[rule]]
answer = [{ finish = "error" }]
"#;
    for provider in ["gemini", "openai"] {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        assert_eq!(scene.answer("c1", "go").await, "Now it is well formed.", "{provider}");
        assert_eq!(scene.requests().len(), 2, "{provider}");
        assert!(!scene.requests()[0].to_string().contains("malformed"), "{provider}");
        let run = scene.say("c2", "be stubborn").await;
        assert_eq!(outcome(&run), (RunStatus::Failed, "model.malformed_call"), "{provider}");
        assert_eq!(kinds(&scene, &run).await.len(), 1, "{provider}");
    }
}
