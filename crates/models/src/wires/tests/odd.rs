//! Irregular streams: late, repeated, misplaced or missing data.

use super::*;
use ProviderKind::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};

fn calls(calls: Value) -> Value {
    chat(json!({"tool_calls": calls}))
}

/// Completed calls among the items, and the finish reason.
fn ended(items: &Value) -> Value {
    let items = items.as_array().unwrap().iter();
    let kept = items.filter(|item| item["type"] == "tool_call_end" || item["type"] == "finish");
    let short = |item: &Value| match item["type"] == "finish" {
        true => item["reason"].clone(),
        false => json!([item["id"], item["name"], item["args"]]),
    };
    kept.map(short).collect()
}

#[test]
fn fragments_before_the_name_are_kept() {
    let items = items(
        OpenAiChat,
        &[
            calls(json!([{"index": 0, "function": {"arguments": "{\"pa"}}])),
            calls(json!([{"index": 0, "function": {"arguments": "th\":"}}])),
            calls(
                json!([{"index": 0, "id": "c1", "function": {"name": "fs_read", "arguments": "\"x\"}"}}]),
            ),
            finish("tool_calls"),
        ],
    );
    assert_eq!(
        items,
        json!([
            {"type": "tool_call_start", "id": "c1", "name": "fs.read"},
            {"type": "tool_call_delta", "id": "c1", "args_text": "{\"path\":\"x\"}"},
            {"type": "tool_call_end", "id": "c1", "name": "fs.read", "args": {"path": "x"}},
            {"type": "finish", "reason": "tool_calls"},
        ])
    );
}

#[test]
fn calls_identified_by_index_only_are_assembled() {
    let items = items(
        OpenAiChat,
        &[
            calls(
                json!([{"index": 0, "function": {"name": "fs_read"}}, {"index": 1, "function": {"name": "clock"}}]),
            ),
            calls(
                json!([{"index": 1, "function": {"arguments": "{"}}, {"index": 0, "function": {"arguments": "{\"path\":"}}]),
            ),
            calls(
                json!([{"index": 0, "function": {"arguments": "\"a\"}"}}, {"index": 1, "function": {"arguments": "}"}}]),
            ),
            finish("stop"),
        ],
    );
    assert_eq!(
        ended(&items),
        json!([["call_s01", "fs.read", {"path": "a"}], ["call_s02", "clock", {}], "tool_calls"])
    );
}

#[test]
fn calls_that_all_have_index_zero_stay_separate() {
    let with_ids = items(
        OpenAiChat,
        &[
            calls(
                json!([{"index": 0, "id": "a", "function": {"name": "clock", "arguments": "{}"}}]),
            ),
            calls(
                json!([{"index": 0, "id": "b", "function": {"name": "clock", "arguments": "{}"}}]),
            ),
            finish("tool_calls"),
        ],
    );
    assert_eq!(ended(&with_ids), json!([["a", "clock", {}], ["b", "clock", {}], "tool_calls"]));
    let without = items(
        OpenAiChat,
        &[
            calls(json!([{"function": {"name": "clock", "arguments": "{}"}}])),
            calls(json!([{"function": {"name": "clock", "arguments": "{}"}}])),
            finish("tool_calls"),
        ],
    );
    let expected = json!([["call_s01", "clock", {}], ["call_s02", "clock", {}], "tool_calls"]);
    assert_eq!(ended(&without), expected);
}

#[test]
fn a_server_that_repeats_the_name_in_every_fragment_makes_one_call_even_of_braces_in_texts() {
    let fragments = ["{\"path\":", "\"}\\\"}", "x", "\"}"];
    let call_part = |args: &&str| {
        calls(json!([{"index": 0, "function": {"name": "fs_read", "arguments": args}}]))
    };
    let mut events: Vec<Value> = fragments.iter().map(call_part).collect();
    events.push(finish("tool_calls"));
    let items = items(OpenAiChat, &events);
    assert_eq!(ended(&items), json!([["call_s01", "fs.read", {"path": "}\"}x"}], "tool_calls"]));
}

#[test]
fn a_server_that_repeats_id_and_name_in_every_fragment_makes_one_call() {
    let items = items(
        OpenAiChat,
        &[
            calls(
                json!([{"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "{\"path\":"}}]),
            ),
            calls(
                json!([{"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "\"x\"}"}}]),
            ),
            finish("tool_calls"),
        ],
    );
    assert_eq!(ended(&items), json!([["a", "fs.read", {"path": "x"}], "tool_calls"]));
}

#[test]
fn ids_that_are_missing_repeated_or_already_used_in_the_request_are_replaced() {
    let mut request = question();
    request.messages.extend(
        serde_json::from_value::<Vec<_>>(json!([
            {"role": "assistant", "content": null, "tool_calls": [{"id": "old", "name": "clock", "args": {}}]},
            {"role": "tool", "tool_call_id": "old", "content": "{}"},
        ]))
        .unwrap(),
    );
    let stream = sse(&[
        calls(json!([{"index": 0, "id": "old", "function": {"name": "clock", "arguments": "{}"}}])),
        calls(
            json!([{"index": 1, "id": "twin", "function": {"name": "clock", "arguments": "{}"}}]),
        ),
        calls(
            json!([{"index": 2, "id": "twin", "function": {"name": "clock", "arguments": "{}"}}]),
        ),
        calls(json!([{"index": 3, "id": "", "function": {"name": "clock", "arguments": "{}"}}])),
        finish("tool_calls"),
    ]);
    let items = json!(decode(OpenAiChat, &request, &[stream.as_bytes()]).unwrap());
    let ids: Vec<Value> =
        ended(&items).as_array().unwrap()[..4].iter().map(|call| call[0].clone()).collect();
    assert_eq!(json!(ids), json!(["call_s01", "twin", "call_s02", "call_s03"]));
}

#[test]
fn arguments_that_are_no_json_are_kept_as_text_and_never_become_an_empty_object() {
    let items = items(
        OpenAiChat,
        &[
            calls(
                json!([{"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "{\"path\": /tmp}"}}]),
            ),
            calls(
                json!([{"index": 1, "id": "b", "function": {"name": "fs_read", "arguments": ""}}]),
            ),
            calls(json!([{"index": 2, "id": "c", "function": {"name": "clock", "arguments": ""}}])),
            finish("tool_calls"),
        ],
    );
    let ends: Vec<&Value> =
        items.as_array().unwrap().iter().filter(|item| item["type"] == "tool_call_end").collect();
    assert_eq!(
        json!(ends),
        json!([
            {"type": "tool_call_end", "id": "a", "name": "fs.read", "args": null, "args_text": "{\"path\": /tmp}", "args_error": "not JSON: expected value at line 1 column 10"},
            {"type": "tool_call_end", "id": "b", "name": "fs.read", "args": null, "args_text": "", "args_error": "the arguments are missing"},
            {"type": "tool_call_end", "id": "c", "name": "clock", "args": {}},
        ])
    );
}

#[test]
fn arguments_that_come_only_with_the_end_are_kept() {
    let responses = items(
        OpenAiResponses,
        &[
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "function_call", "call_id": "a", "name": "fs_read", "arguments": "{\"path\":\"x\"}"}}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
        ],
    );
    assert_eq!(ended(&responses), json!([["a", "fs.read", {"path": "x"}], "tool_calls"]));
    let anthropic = items(
        Anthropic,
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "fs_read", "input": {"path": "x"}}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(ended(&anthropic), json!([["a", "fs.read", {"path": "x"}], "tool_calls"]));
}

#[test]
fn events_without_an_index_are_identified_by_item() {
    let items = items(
        OpenAiResponses,
        &[
            json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{\"path\":"}),
            json!({"type": "response.output_item.added", "item": {"id": "fc_1", "type": "function_call", "call_id": "a", "name": "fs_read"}}),
            json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "\"x\"}"}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [
            {"id": "fc_1", "type": "function_call", "call_id": "a", "name": "fs_read", "arguments": "{\"path\":\"x\"}"}]}}),
        ],
    );
    assert_eq!(ended(&items), json!([["a", "fs.read", {"path": "x"}], "tool_calls"]));
}

#[test]
fn a_response_without_deltas_is_emitted_once() {
    let items = items(
        OpenAiResponses,
        &[json!({"type": "response.completed", "response": {
        "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"id": "m", "type": "message", "content": [{"type": "output_text", "text": "Hel"}]}]}})],
    );
    assert_eq!(
        items,
        json!([{"type": "text_delta", "text": "Hel"}, {"type": "finish", "reason": "length"}])
    );
}

#[test]
fn a_finish_by_length_keeps_its_reason_and_every_call_ends() {
    let chat = items(
        OpenAiChat,
        &[
            calls(
                json!([{"index": 0, "id": "a", "function": {"name": "fs_read", "arguments": "{\"path\":\"/t"}}]),
            ),
            finish("length"),
        ],
    );
    assert_eq!(ended(&chat), json!([["a", "fs.read", null], "length"]));
    let anthropic = items(
        Anthropic,
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "fs_read", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"pa"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(ended(&anthropic), json!([["a", "fs.read", null], "length"]));
}

#[test]
fn missing_usage_is_not_emitted() {
    assert_eq!(
        items(OpenAiChat, &[chat(json!({"content": "hi"})), finish("stop")]),
        json!([{"type": "text_delta", "text": "hi"}, {"type": "finish", "reason": "stop"}])
    );
}

#[test]
fn calls_without_ids_get_ids_and_missing_arguments_are_empty() {
    let gemini = items(
        Gemini,
        &[json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"functionCall": {"name": "fs_read", "args": {"path": "a"}}}, {"functionCall": {"name": "clock"}}]}}]})],
    );
    let expected =
        json!([["call_s01", "fs.read", {"path": "a"}], ["call_s02", "clock", {}], "tool_calls"]);
    assert_eq!(ended(&gemini), expected);
    let lines = format!(
        "{}\n{}\n",
        json!({"message": {"tool_calls": [{"function": {"name": "fs_read", "arguments": {"path": "a"}}}, {"function": {"name": "clock"}}]}, "done": false}),
        json!({"message": {"content": ""}, "done": true, "done_reason": "stop"})
    );
    let ollama = json!(decode(Ollama, &question(), &[lines.as_bytes()]).unwrap());
    assert_eq!(ended(&ollama), expected);
}
