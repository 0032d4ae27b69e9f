//! Every request gets a response: no input can stop the server.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const PATHS: [&str; 14] = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1beta/models/m:generateContent",
    "/v1beta/models/m:streamGenerateContent",
    "/v1beta/models/m:countTokens",
    "/v1beta/models/m:embedContent",
    "/v1beta/models/m:batchEmbedContents",
    "/api/chat",
    "/api/embed",
    "/v1/embeddings",
    "/v2/embed",
    "/v1/rerank",
];

/// Words that mean something on a wire, so that the decoders are reached.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "model",
        "messages",
        "input",
        "contents",
        "role",
        "user",
        "assistant",
        "tool",
        "content",
        "parts",
        "text",
        "type",
        "tools",
        "function",
        "name",
        "arguments",
        "tool_calls",
        "id",
        "tool_use",
        "tool_result",
        "functionCall",
        "functionResponse",
        "response",
        "image_url",
        "url",
        "source",
        "data",
        "stream",
        "namespace",
        "custom",
        "call_id",
        "output",
        "function_call",
        "function_call_output",
        "system",
        "query",
        "documents",
        "requests",
        "data:image/png;base64,",
        "generationConfig",
        "responseSchema",
        "format",
        "json_schema",
        "schema",
        "response_format",
        "$ref",
        "#",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn script_part() -> impl Strategy<Value = String> {
    let known = [
        "[[rule]]\n",
        "when.",
        "when = ",
        "regex = ",
        "answer = ",
        "text = ",
        "call = ",
        "args = ",
        "usage = ",
        "error = ",
        "times = ",
        "{",
        "}",
        "[",
        "]",
        "'",
        "\"",
        "{{",
        "}}",
        "match.1",
        ", ",
        "\n",
        "429",
        "true",
        "(",
        ")",
        "你",
        "1979-05-27",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,3}"]
}

fn answered(path: &str, body: &Value) -> Got {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let script = "[[rule]]\nwhen.wants_json = true\nanswer = [{ sample = true }]\n[[rule]]\nanswer = '{{text}}'";
    runtime.block_on(send(script, "POST", path, body))
}

fn is_good(got: &Got) -> bool {
    match got {
        Got::Whole { status, body, .. } => {
            [200, 400].contains(status) && serde_json::from_str::<Value>(body).is_ok()
        }
        Got::Stream { end, .. } => *end == End::Clean,
        Got::Cut | Got::Silence => false,
    }
}

proptest! {
    #[test]
    fn any_body_gets_an_answer(path in prop::sample::select(PATHS.to_vec()), body in value()) {
        let got = answered(path, &body);
        prop_assert!(is_good(&got), "{path} {body} {got:?}");
    }

    #[test]
    fn any_messages_get_an_answer(list in prop::collection::vec(value(), 0..4), tools in value()) {
        let keys = json!({"messages": list, "input": list, "contents": list, "tools": tools});
        for path in &PATHS[..10] {
            let got = answered(path, &keys);
            prop_assert!(is_good(&got), "{path} {keys} {got:?}");
        }
    }

    #[test]
    fn any_text_is_a_script_or_refused(parts in prop::collection::vec(script_part(), 0..40)) {
        let _ = Script::parse(&parts.concat());
    }
}
