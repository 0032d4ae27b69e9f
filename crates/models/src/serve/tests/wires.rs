//! One response with reasoning, text, a call and usage, as each provider would send it.

use super::*;
use serde_json::json;

const SCRIPT: &str = r#"
    [[rule]]
    answer = [
      { reasoning = "hm", signature = "SIG" },
      { text = "Let me see" , piece = 7 },
      { call = "look", id = "call_1", args = { at = "it" }, piece = 8 },
      { usage = { input_tokens = 10, output_tokens = 7, cached_input_tokens = 4, reasoning_tokens = 2 } },
    ]
"#;
const HASH_LENGTH: usize = 24;

fn chat(stream: bool) -> Value {
    json!({
        "model": "m", "stream": stream, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "hi"}],
    })
}

/// Ids are hashes of the request: checks their length and removes them.
fn without_ids(mut value: Value, paths: &[&str]) -> Value {
    for path in paths {
        let id = value.pointer_mut(path).unwrap();
        assert!(id.as_str().unwrap().len() >= HASH_LENGTH, "{id}");
        *id = Value::Null;
    }
    value
}

#[tokio::test]
async fn chat_completions_come_whole() {
    let body = whole(SCRIPT, "/v1/chat/completions", &chat(false)).await;
    let expected = json!({
        "id": null, "object": "chat.completion", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "logprobs": null, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Let me see", "refusal": null, "reasoning_content": "hm",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {
                "name": "look", "arguments": "{\"at\":\"it\"}",
            }}],
        }}],
        "usage": {
            "prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    });
    assert_eq!(without_ids(body, &["/id"]), expected);
}

#[tokio::test]
async fn chat_completions_come_in_chunks() {
    let events = events(SCRIPT, "/v1/chat/completions", &chat(true)).await;
    let deltas: Vec<&Value> =
        events.iter().filter_map(|(_, data)| data.pointer("/choices/0/delta")).collect();
    let expected = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "hm"}),
        json!({"content": "Let me "}),
        json!({"content": "see"}),
        json!({"tool_calls": [{
            "index": 0, "id": "call_1", "type": "function",
            "function": {"name": "look", "arguments": ""},
        }]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"at\":\"i"}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "t\"}"}}]}),
        json!({}),
    ];
    assert_eq!(deltas, expected.iter().collect::<Vec<_>>());
    let [.., finish, usage, done] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(finish.1["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!((&usage.1["choices"], &usage.1["usage"]["total_tokens"]), (&json!([]), &json!(17)));
    assert_eq!(done.1, "[DONE]");
}

#[tokio::test]
async fn a_chat_stream_has_usage_only_if_requested() {
    let mut request = chat(true);
    request["stream_options"] = Value::Null;
    let events = events(SCRIPT, "/v1/chat/completions", &request).await;
    assert!(events.iter().all(|(_, data)| data.get("usage").is_none()));
}

fn responses(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "input": "hi"})
}

#[tokio::test]
async fn responses_come_whole() {
    let body = whole(SCRIPT, "/v1/responses", &responses(false)).await;
    let body = without_ids(body, &["/id", "/output/0/id", "/output/1/id", "/output/2/id"]);
    let output = json!([
        {
            "type": "reasoning", "id": null, "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "SIG",
        },
        {
            "type": "message", "id": null, "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Let me see", "annotations": []}],
        },
        {
            "type": "function_call", "id": null, "call_id": "call_1", "name": "look",
            "arguments": "{\"at\":\"it\"}", "status": "completed",
        },
    ]);
    assert_eq!((&body["status"], &body["output"]), (&json!("completed"), &output));
    let usage = json!({
        "input_tokens": 10, "output_tokens": 7, "total_tokens": 17,
        "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2},
    });
    assert_eq!(body["usage"], usage);
}

#[tokio::test]
async fn responses_come_as_events_in_the_order_of_the_wire() {
    let events = events(SCRIPT, "/v1/responses", &responses(true)).await;
    let names: Vec<&str> =
        events.iter().map(|(name, _)| name.strip_prefix("response.").unwrap()).collect();
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names, expected);
    for (at, (name, data)) in events.iter().enumerate() {
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(at)));
    }
    let indexes: Vec<u64> =
        events.iter().filter_map(|(_, data)| data.get("output_index")?.as_u64()).collect();
    assert!(indexes.is_sorted() && indexes.last() == Some(&2), "{indexes:?}");
    let whole = whole(SCRIPT, "/v1/responses", &responses(false)).await;
    let parts = |response: &Value| {
        let parts = response["output"].as_array().unwrap().iter();
        parts.map(|part| [part["content"].clone(), part["arguments"].clone()]).collect::<Vec<_>>()
    };
    assert_eq!(parts(&events.last().unwrap().1["response"]), parts(&whole));
}

fn messages(stream: bool) -> Value {
    json!({"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}

#[tokio::test]
async fn messages_come_whole() {
    let body = whole(SCRIPT, "/v1/messages", &messages(false)).await;
    let expected = json!({
        "id": null, "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "SIG"},
            {"type": "text", "text": "Let me see"},
            {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "it"}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 6, "output_tokens": 7, "cache_read_input_tokens": 4},
    });
    assert_eq!(without_ids(body, &["/id"]), expected);
}

#[tokio::test]
async fn messages_come_in_blocks() {
    let events = events(SCRIPT, "/v1/messages", &messages(true)).await;
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let expected = [
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "SIG"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Let me "})),
        delta(1, json!({"type": "text_delta", "text": "see"})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "call_1", "name": "look", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"at\":\"i"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "t\"}"})),
        stop(2),
        json!({
            "type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"input_tokens": 6, "output_tokens": 7, "cache_read_input_tokens": 4},
        }),
        json!({"type": "message_stop"}),
    ];
    let [first, ping, rest @ ..] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((first.0.as_str(), ping.0.as_str()), ("message_start", "ping"));
    assert_eq!(first.1["message"]["usage"]["input_tokens"], 6);
    assert_eq!(
        rest.iter().map(|(_, data)| data).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert!(events.iter().all(|(name, data)| data["type"] == *name));
}

fn gemini() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
}

#[tokio::test]
async fn gemini_comes_whole() {
    let body = whole(SCRIPT, "/v1beta/models/gemini-x:generateContent", &gemini()).await;
    let expected = json!({
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": "hm", "thought": true},
            {"text": "Let me see", "thoughtSignature": "SIG"},
            {"functionCall": {"id": "call_1", "name": "look", "args": {"at": "it"}}},
        ]}}],
        "usageMetadata": {
            "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 17,
            "cachedContentTokenCount": 4, "thoughtsTokenCount": 2,
        },
        "modelVersion": "gemini-x", "responseId": null,
    });
    assert_eq!(without_ids(body, &["/responseId"]), expected);
}

#[tokio::test]
async fn gemini_comes_in_pieces_as_events_or_as_one_array() {
    let expected = [
        json!({"text": "hm", "thought": true}),
        json!({"text": "Let me ", "thoughtSignature": "SIG"}),
        json!({"text": "see"}),
        json!({"functionCall": {"id": "call_1", "name": "look", "args": {"at": "it"}}}),
        json!({"text": ""}),
    ];
    let address = "/v1beta/models/gemini-x:streamGenerateContent";
    let events = events(SCRIPT, &format!("{address}?alt=sse"), &gemini()).await;
    let part = |chunk: &Value| chunk["candidates"][0]["content"]["parts"][0].clone();
    let parts: Vec<Value> = events.iter().map(|(_, data)| part(data)).collect();
    assert_eq!(parts, expected);
    let finishes: Vec<&Value> =
        events.iter().filter_map(|(_, data)| data.pointer("/candidates/0/finishReason")).collect();
    assert_eq!(finishes, ["STOP"]);
    assert_eq!(events[4].1["usageMetadata"]["totalTokenCount"], 17);
    let Got::Stream { body, end: End::Clean, .. } = send(SCRIPT, "POST", address, &gemini()).await
    else {
        panic!("no stream")
    };
    let array: Vec<Value> = serde_json::from_str(&body).unwrap();
    assert_eq!(array.iter().map(part).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn ollama_comes_in_lines() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let Got::Stream { content_type, body, .. } = send(SCRIPT, "POST", "/api/chat", &request).await
    else {
        panic!("no stream")
    };
    assert_eq!(content_type, "application/x-ndjson");
    let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |fields: Value| {
        let mut message = json!({"role": "assistant", "content": ""});
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        message
    };
    let call = json!({"id": "call_1", "function": {"name": "look", "arguments": {"at": "it"}}});
    let expected = [
        said(json!({"thinking": "hm"})),
        said(json!({"content": "Let me "})),
        said(json!({"content": "see"})),
        said(json!({"tool_calls": [call]})),
        said(json!({})),
    ];
    assert_eq!(lines.iter().map(|line| line["message"].clone()).collect::<Vec<_>>(), expected);
    assert_eq!(
        lines.iter().map(|line| line["done"] == true).collect::<Vec<_>>(),
        [false, false, false, false, true]
    );
    let last = &lines[4];
    assert_eq!(
        [&last["done_reason"], &last["prompt_eval_count"], &last["eval_count"]],
        [&json!("stop"), &json!(10), &json!(7)]
    );
    assert_eq!(last["created_at"], "2023-11-14T22:13:20Z");
}

#[tokio::test]
async fn unknown_usage_is_absent_on_every_wire() {
    let script = "[[rule]]\nanswer = [{ text = 'x' }, { usage = false }]";
    for (address, request) in [
        ("/v1/chat/completions", chat(false)),
        ("/v1/responses", responses(false)),
        ("/v1/messages", messages(false)),
        ("/v1beta/models/g:generateContent", gemini()),
    ] {
        let body = whole(script, address, &request).await.to_string();
        assert!(!body.contains("usage") && !body.contains("okens\""), "{body}");
    }
}

#[tokio::test]
async fn finish_reasons_are_translated_for_the_wire() {
    for (reason, expected) in [
        ("stop", ["stop", "completed", "end_turn", "STOP"]),
        ("length", ["length", "incomplete", "max_tokens", "MAX_TOKENS"]),
        ("content_filter", ["content_filter", "incomplete", "refusal", "SAFETY"]),
    ] {
        let script = format!("[[rule]]\nanswer = [{{ text = 'x' }}, {{ finish = '{reason}' }}]");
        let chat = whole(&script, "/v1/chat/completions", &chat(false)).await;
        let responses = whole(&script, "/v1/responses", &responses(false)).await;
        let messages = whole(&script, "/v1/messages", &messages(false)).await;
        let gemini = whole(&script, "/v1beta/models/g:generateContent", &gemini()).await;
        let said = [
            chat["choices"][0]["finish_reason"].clone(),
            responses["status"].clone(),
            messages["stop_reason"].clone(),
            gemini["candidates"][0]["finishReason"].clone(),
        ];
        assert_eq!(said, expected.map(Value::from), "{reason}");
    }
}
