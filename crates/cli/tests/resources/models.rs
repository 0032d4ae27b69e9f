//! `models.*` from a runner's side: answers, streams, counts, vectors and rankings of granted models.

mod checked;
mod faults;
mod media;
mod options;
mod server;
mod wires;

use crate::stage::{Stage, config, event, outcome};
use greenroom_protocol::{RunStatus, RunView};
use greenroom_testkit::host::TestHost;
use serde_json::{Value, json};

pub(crate) use server::Server;

/// An agent that may use these models.
pub(crate) fn agent(name: &str, models: &[&str], more: &str) -> String {
    let grant = format!("grant = {{ models = {models:?} }}");
    format!(
        "[agents.{name}]\nrunner = \"plugin:test/puppet/main\"\nevents = []\ndeadline_s = 60\n{grant}\n{more}\n"
    )
}

/// A host with these files beside its configuration.
pub(crate) async fn host(files: &[(&str, &str)], more: &str) -> Stage {
    let host = TestHost::prepare(crate::PROGRAM, &config("cancel_grace_s = 1", more));
    for (name, text) in files {
        std::fs::write(host.folder().join(name), text).unwrap();
    }
    Stage::with(host).await
}

/// A call as a step of the puppet, told in a file of its name.
pub(crate) fn step(method: &str, params: Value, name: &str) -> Value {
    json!(["call", method, params, name])
}

/// What the user says, to a model.
pub(crate) fn says(model: &str, text: &str) -> Value {
    json!({"model_id": model, "messages": [{"role": "user", "content": text}]})
}

/// Plays steps as an agent in a conversation, to the end of its run.
pub(crate) async fn run(
    stage: &Stage,
    agent: &str,
    conversation: &str,
    mut steps: Vec<Value>,
) -> RunView {
    steps.push(json!(["end"]));
    let steps = Value::Array(steps).to_string();
    let run_id = stage.send(&event(agent, conversation, &steps)).await;
    stage.api.ended_run(&run_id).await
}

/// The answer to a call that must have succeeded.
pub(crate) async fn result(stage: &Stage, name: &str) -> Value {
    let told = stage.told(name).await;
    assert!(told.get("error").is_none(), "{name}: {told}");
    told["result"].clone()
}

/// Why a call was refused.
pub(crate) async fn refusal(stage: &Stage, name: &str) -> Value {
    let told = stage.told(name).await;
    assert_eq!(told["error"]["code"], -32000, "{name}: {told}");
    told["error"]["data"].clone()
}

const SCRIPT: &str = r#"
[[rule]]
when.text = "think"
answer = [
  { reasoning = "Let me see.", signature = "c2ln" },
  { text = "Two words.", piece = 4 },
  { call = "weather.get", args = { city = "Oslo" }, id = "call_1", piece = 6 },
  { usage = { input_tokens = 12, output_tokens = 7, reasoning_tokens = 3 } },
]
[[rule]]
when.text = "broken"
answer = [{ call = "weather.get", args_text = '{"city": ', id = "call_2" }]
[[rule]]
when.text = "secretive"
answer = [{ text = "Nothing is told." }, { usage = false }]
[[rule]]
when.text = "long"
answer = [{ text = "cut off" }, { finish = "length" }]
[[rule]]
answer = "You said: {{text}}"
"#;

const MODELS: &str = r#"
[models.demo]
provider = "scripted"
script = "demo.toml"
context_window = 1000
[models.vectors]
provider = "scripted"
kind = "embedding"
[models.ranks]
provider = "scripted"
kind = "rerank"
[models.hidden]
provider = "scripted"
"#;

async fn scripted() -> Stage {
    let agent = agent("asker", &["demo", "vectors", "ranks"], "");
    host(&[("demo.toml", SCRIPT)], &format!("{MODELS}\n{agent}")).await
}

#[tokio::test]
async fn an_answer_has_its_segments_in_order_and_its_usage() {
    let stage = scripted().await;
    let steps = vec![
        step("models.invoke", says("demo", "think"), "whole"),
        step("models.stream", says("demo", "think"), "stream"),
        step("models.invoke", says("demo", "secretive"), "secretive"),
        step("models.stream", says("demo", "secretive"), "secretive_stream"),
        step("models.invoke", says("demo", "long"), "long"),
        step("models.invoke", says("demo", "hello"), "counted"),
    ];
    let run = run(&stage, "asker", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let usage =
        json!({"input_tokens": 12, "output_tokens": 7, "total_tokens": 19, "reasoning_tokens": 3});
    let metadata = json!({"model": "demo", "finish_reason": "tool_calls", "usage": usage});
    let call = json!({"id": "call_1", "name": "weather.get", "args": {"city": "Oslo"}});
    let whole = result(&stage, "whole").await;
    let mut segments = whole["segments"].clone();
    // What a provider wants back with its reasoning is its own affair.
    assert!(!segments[0].as_object_mut().unwrap().remove("data").unwrap().is_null());
    let expected = json!([{"type": "reasoning", "text": "Let me see."},
        {"type": "text", "text": "Two words."}, {"type": "tool_call", "tool_call": call}]);
    assert_eq!((segments, &whole["metadata"]), (expected, &metadata));
    // The stream's own answer is the same, after its items.
    assert_eq!(result(&stage, "stream").await, whole);
    let items = stage.told("stream").await["items"].as_array().unwrap().clone();
    let (deltas, rest) = items.split_at(items.len() - 3);
    let mut end = call.clone();
    end["type"] = "tool_call_end".into();
    let mut told = usage.clone();
    told["type"] = "usage".into();
    assert_eq!(rest, [end, told, json!({"type": "finish", "reason": "tool_calls"})]);
    let mut kinds: Vec<&Value> = deltas.iter().map(|item| &item["type"]).collect();
    kinds.dedup();
    let order = ["reasoning_delta", "media", "text_delta", "tool_call_start", "tool_call_delta"];
    assert_eq!(kinds, order);
    let texts = |kind: &str, field: &str| -> Vec<String> {
        let found = deltas.iter().filter(|item| item["type"] == kind);
        found.map(|item| item[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("text_delta", "text"), ["Two ", "word", "s."]);
    assert_eq!(texts("reasoning_delta", "text").concat(), "Let me see.");
    assert_eq!(texts("tool_call_delta", "args_text").concat(), r#"{"city":"Oslo"}"#);
    // What is not known is absent.
    for name in ["secretive", "secretive_stream"] {
        let metadata = &result(&stage, name).await["metadata"];
        assert_eq!(*metadata, json!({"model": "demo", "finish_reason": "stop"}), "{name}");
    }
    let items = stage.told("secretive_stream").await["items"].as_array().unwrap().clone();
    assert!(items.iter().all(|item| item["type"] != "usage"));
    assert_eq!(result(&stage, "long").await["metadata"]["finish_reason"], "length");
    // Five characters of ASCII are two tokens, the frame of a message is four.
    assert_eq!(result(&stage, "counted").await["metadata"]["usage"]["input_tokens"], 6);
}

#[tokio::test]
async fn arguments_that_are_no_json_are_told_as_they_came() {
    let stage = scripted().await;
    let steps = vec![
        step("models.invoke", says("demo", "broken"), "whole"),
        step("models.stream", says("demo", "broken"), "stream"),
    ];
    run(&stage, "asker", "c1", steps).await;
    let whole = result(&stage, "whole").await;
    let call = &whole["segments"][0]["tool_call"];
    let error = call["args_error"].as_str().unwrap();
    assert!(!error.is_empty());
    let expected = json!({"id": "call_2", "name": "weather.get", "args": null,
        "args_text": "{\"city\": ", "args_error": error});
    assert_eq!(*call, expected);
    assert_eq!(whole["metadata"]["finish_reason"], "tool_calls");
    assert_eq!(result(&stage, "stream").await, whole);
    let items = stage.told("stream").await["items"].as_array().unwrap().clone();
    let end = items.iter().find(|item| item["type"] == "tool_call_end").unwrap();
    let mut expected = expected;
    expected["type"] = "tool_call_end".into();
    assert_eq!(*end, expected);
}

#[tokio::test]
async fn tokens_are_counted_texts_become_vectors_and_documents_are_ranked() {
    let stage = scripted().await;
    let rank = json!({"model_id": "ranks", "query": "red fox", "top_k": 2,
        "documents": ["a dog", "a red fox", "red"]});
    let embed = json!({"model_id": "vectors", "inputs": ["a red fox", "今天", "a red fox"]});
    let text = json!({"model_id": "demo", "text": "12345678"});
    let steps = vec![
        step("models.count_tokens", says("demo", "12345678"), "message"),
        step("models.count_tokens", text, "text"),
        step("models.embed", embed, "vectors"),
        step("models.rerank", rank, "ranked"),
    ];
    let run = run(&stage, "asker", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    assert_eq!(result(&stage, "message").await, json!({"tokens": 6}));
    assert_eq!(result(&stage, "text").await, json!({"tokens": 2}));
    let vectors = result(&stage, "vectors").await["vectors"].clone();
    let vectors: Vec<Vec<f64>> = serde_json::from_value(vectors).unwrap();
    assert_eq!(vectors.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 256]);
    assert_eq!(vectors[0], vectors[2]);
    assert_ne!(vectors[0], vectors[1]);
    let expected = json!({"results": [{"index": 1, "relevance_score": 1.0},
        {"index": 2, "relevance_score": 0.5}]});
    assert_eq!(result(&stage, "ranked").await, expected);
    // Vectors and rankings are calls of models as well, counting is none.
    assert_eq!(run.model_calls.unwrap().calls, 2);
}

fn embeds(model: &str) -> Value {
    json!({"model_id": model, "inputs": ["x"]})
}

fn ranks(model: &str) -> Value {
    json!({"model_id": model, "query": "x", "documents": ["x"]})
}

#[tokio::test]
async fn a_model_that_is_not_granted_looks_like_none() {
    let stage = scripted().await;
    let mut steps = vec![json!(["tell", "resources"])];
    for model in ["hidden", "invented"] {
        for (method, params) in [
            ("models.invoke", says(model, "x")),
            ("models.stream", says(model, "x")),
            ("models.count_tokens", says(model, "x")),
            ("models.embed", embeds(model)),
            ("models.rerank", ranks(model)),
        ] {
            steps.push(step(method, params, &format!("{method} {model}")));
        }
    }
    let run = run(&stage, "asker", "c1", steps).await;
    let expected = json!({"code": "not_found", "message": "there is no such model",
        "retryable": false, "details": {}});
    for model in ["hidden", "invented"] {
        for method in ["invoke", "stream", "count_tokens", "embed", "rerank"] {
            let name = format!("models.{method} {model}");
            assert_eq!(refusal(&stage, &name).await, expected, "{name}");
        }
    }
    assert_eq!(run.model_calls.unwrap().calls, 0);
    let resources: Value = serde_json::from_str(&stage.api.answers("c1").await[0]).unwrap();
    let model = |id: &str, kind: &str, operations: Value, metadata: Value| {
        json!({"model_id": id, "model_type": kind, "provider": "scripted",
            "operations": operations, "metadata": metadata})
    };
    let plain = json!({"model": "scripted"});
    let windowed = json!({"model": "scripted", "context_window": 1000});
    // In the order of the grant.
    let expected = json!([
        model("demo", "chat", json!(["invoke", "stream"]), windowed),
        model("vectors", "embedding", json!(["embed"]), plain.clone()),
        model("ranks", "rerank", json!(["rerank"]), plain),
    ]);
    assert_eq!(resources["models"], expected);
}

#[tokio::test]
async fn a_kind_of_model_is_not_mistaken_for_another() {
    let stage = scripted().await;
    let cases = [
        ("models.invoke", says("vectors", "x"), "chat", "vectors", "embedding"),
        ("models.stream", says("ranks", "x"), "chat", "ranks", "rerank"),
        ("models.embed", embeds("demo"), "embedding", "demo", "chat"),
        ("models.rerank", ranks("vectors"), "rerank", "vectors", "embedding"),
    ];
    let steps = cases.iter().map(|(method, params, ..)| step(method, params.clone(), method));
    let run = run(&stage, "asker", "c1", steps.collect()).await;
    for (method, _, wanted, model, kind) in cases {
        let told = refusal(&stage, method).await;
        let message = format!(
            "`{method}` takes a model of kind `{wanted}`, and `{model}` is of kind `{kind}`"
        );
        assert_eq!(told["code"], "invalid_argument");
        assert_eq!(told["message"], message);
    }
    assert_eq!(run.model_calls.unwrap().calls, 0);
}
