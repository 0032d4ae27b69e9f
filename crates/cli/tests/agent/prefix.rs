//! Byte-stable requests (seed 003 §6, seed 002 §4A): a request begins with all of the request before.

use crate::scene::{Scene, Setting};
use crate::server::WIRES;
use serde_json::{Value, json};

const SCRIPT: &str = r#"
[[rule]]
when = { text = "think", tool_result = false }
answer = [{ reasoning = "I must look.", signature = "sig-{{turn}}" }, { text = "Let me look." }, { call = "forge_add", args = { b = 2, a = "{{turn | json}}" } }]
[[rule]]
when = { text = "broken", round = 1 }
answer = [{ reasoning = "Quickly.", signature = "sig-q" }, { call = "forge_add", args_text = '{"a": 1, ' }]
[[rule]]
when = { text = "stubborn", round = 1 }
answer = [{ call = "forge_fail", args = {} }, { call = "forge_text", args = {} }]
[[rule]]
when = { text = "stubborn", round = 2 }
answer = [{ call = "forge_fail", args = {} }]
[[rule]]
when = { text = "stubborn", round = 3 }
answer = [{ text = "Once more." }, { call = "forge_fail", args = {} }]
[[rule]]
when = { text = "recall", round = 1 }
answer = [{ call = "search_history", args = { query = "zebra" } }, { call = "forge_nothing", args = { x = 1 } }]
[[rule]]
when = { text = "limit", round = 5 }
answer = "Enough."
[[rule]]
when = { text = "limit" }
answer = [{ reasoning = "On and on.", signature = "sig-l{{round}}" }, { call = "forge_add", args = { a = 1, b = "{{round | json}}" } }]
[[rule]]
answer = [{ reasoning = "Done.", signature = "sig-end" }, { text = "Answer {{turn}}." }]
"#;

const KINDS: [&str; 6] = ["think", "broken", "plain", "stubborn", "recall", "limit"];

/// A request without the marks of caches, as its parts: what comes before the messages, and the messages.
fn parts(provider: &str, mut request: Value) -> (Value, Vec<Value>) {
    fn without_marks(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(without_marks);
            }
            Value::Array(items) => items.iter_mut().for_each(without_marks),
            _ => {}
        }
    }
    without_marks(&mut request);
    let messages = match provider {
        "openai-responses" => "input",
        "gemini" => "contents",
        _ => "messages",
    };
    let messages = request[messages].as_array().unwrap().clone();
    let before = ["model", "system", "systemInstruction", "tools", "prompt_cache_key"];
    (before.iter().map(|key| request[*key].clone()).collect(), messages)
}

/// Twenty turns of every kind; gives the requests of the agent, and nothing where the conversation was compacted.
async fn twenty_turns(scene: &Scene, provider: &str) -> Vec<Option<Value>> {
    for turn in 0..20 {
        let kind = KINDS[turn % KINDS.len()];
        let text = format!("{kind} {turn} {}", "and a zebra ".repeat(200));
        scene.answer("c1", &text).await;
    }
    let is_summary = |request: &Value| request.to_string().contains("You keep the record");
    // Tokens are counted with requests of their own.
    let is_answered = |request: &Value| match provider {
        "anthropic" => request["stream"] == true,
        _ => !request["tools"].is_null(),
    };
    let requests = scene.requests().into_iter();
    let requests = requests.filter(|request| is_summary(request) || is_answered(request));
    let mut kept: Vec<Option<Value>> =
        requests.map(|request| Some(request).filter(|request| !is_summary(request))).collect();
    kept.dedup_by(|one, before| one.is_none() && before.is_none());
    kept
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_begins_with_all_of_the_request_before_on_every_wire() {
    for (_, provider) in WIRES {
        let setting = Setting {
            script: SCRIPT,
            provider,
            model: "context_window = 14000\nretries = 0",
            config: "{ max_tool_rounds = 4 }",
            ..Setting::default()
        };
        let scene = setting.open().await;
        let requests = twenty_turns(&scene, provider).await;
        let (mut compared, mut compactions) = (0, 0);
        for pair in requests.windows(2) {
            let [Some(first), Some(second)] = pair else {
                compactions += usize::from(pair[1].is_none());
                continue;
            };
            let (head, messages) = parts(provider, first.clone());
            let (next_head, next) = parts(provider, second.clone());
            assert_eq!(head, next_head, "{provider}");
            let shared = messages.iter().zip(&next).take_while(|(one, other)| one == other).count();
            assert_eq!(
                shared,
                messages.len(),
                "{provider}: {:#}\n-- became --\n{:#}",
                messages[shared],
                next[shared]
            );
            assert!(next.len() > messages.len(), "{provider}");
            compared += 1;
        }
        assert!(compared >= 40, "{provider}: {compared}");
        assert!((1..=3).contains(&compactions), "{provider}: {compactions}");
        marks(provider, &requests);
    }
}

/// The marks that a provider's cache needs, and the last round.
fn marks(provider: &str, requests: &[Option<Value>]) {
    let last_rounds = requests.iter().flatten().filter(|request| match provider {
        "anthropic" => request["tool_choice"] == json!({"type": "none"}),
        "gemini" => request["toolConfig"]["functionCallingConfig"]["mode"] == "NONE",
        _ => request["tool_choice"] == "none",
    });
    assert_eq!(last_rounds.count(), 3, "{provider}");
    for request in requests.iter().flatten() {
        match provider {
            "openai" | "openai-responses" => {
                let key = request["prompt_cache_key"].as_str().unwrap();
                assert_eq!(key.len(), 32, "{key}");
            }
            "anthropic" => {
                let last = request["messages"].as_array().unwrap().last().unwrap();
                let block = last["content"].as_array().unwrap().last().unwrap();
                assert_eq!(block["cache_control"], json!({"type": "ephemeral"}), "{last}");
                assert_eq!(request.to_string().matches("cache_control").count(), 3);
            }
            _ => assert!(!request.to_string().contains("cache"), "{provider}"),
        }
    }
}
