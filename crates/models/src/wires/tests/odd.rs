//! The odd streams of servers: what comes late, twice, in the wrong place or not at all.

use super::*;
use ProviderKind::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};

fn chat(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn calls(calls: Value) -> Value {
    chat(json!({"tool_calls": calls}))
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The ended calls among items, and the reason.
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
fn fragments_that_come_before_the_name_are_kept_for_it() {
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
fn calls_that_are_told_apart_by_index_only_are_put_together() {
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
fn calls_that_all_have_the_index_zero_stay_apart() {
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
fn events_without_a_position_are_told_apart_by_their_items() {
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
fn a_response_that_comes_only_whole_is_told_once() {
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
fn usage_that_is_missing_is_not_told() {
    assert_eq!(
        items(OpenAiChat, &[chat(json!({"content": "hi"})), finish("stop")]),
        json!([{"type": "text_delta", "text": "hi"}, {"type": "finish", "reason": "stop"}])
    );
}

#[test]
fn calls_of_wires_without_ids_get_some_and_missing_arguments_mean_none() {
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

#[test]
fn unknown_events_blocks_and_parts_are_passed_over() {
    let anthropic = items(
        Anthropic,
        &[
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"q\":1}"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "from_the_future", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "Ev4="}}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "hi"}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}}),
        ],
    );
    assert_eq!(
        anthropic,
        json!([
            {"type": "media", "segment": {"type": "reasoning", "data": {"wire": "anthropic", "redacted": "Ev4="}}},
            {"type": "text_delta", "text": "hi"},
            {"type": "finish", "reason": "content_filter"},
        ])
    );
    let responses = items(
        OpenAiResponses,
        &[
            json!({"type": "response.web_search_call.searching", "output_index": 0}),
            json!({"type": "response.refusal.delta", "output_index": 1, "delta": "I cannot"}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [{"type": "web_search_call"}]}}),
        ],
    );
    assert_eq!(
        responses,
        json!([{"type": "text_delta", "text": "I cannot"}, {"type": "finish", "reason": "stop"}])
    );
}

#[test]
fn a_prompt_that_was_blocked_is_a_finish_by_filter_and_an_image_is_media() {
    let blocked = items(
        Gemini,
        &[
            json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}),
        ],
    );
    assert_eq!(
        blocked,
        json!([{"type": "usage", "input_tokens": 3}, {"type": "finish", "reason": "content_filter"}])
    );
    let image = items(
        Gemini,
        &[
            json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}]}}]}),
        ],
    );
    assert_eq!(
        image,
        json!([
            {"type": "media", "segment": {"type": "image", "mime_type": "image/png", "data": "iVBO"}},
            {"type": "finish", "reason": "stop"},
        ])
    );
}

#[test]
fn an_error_in_the_stream_ends_it_with_that_error() {
    let error = |provider, events: &[Value]| {
        decode(provider, &question(), &[sse(events).as_bytes()]).unwrap_err().to_string()
    };
    let busy =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(error(Anthropic, &[busy]), "the provider answered 529: Overloaded");
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "oops"}}});
    assert_eq!(error(OpenAiResponses, &[failed]), "the provider answered 500: oops");
    let limit = json!({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}});
    assert_eq!(error(Gemini, &[limit]), "the provider takes no more requests now: quota");
    assert_eq!(
        error(OpenAiChat, &[chat(json!({"content": "hi"}))]),
        "the provider is not there: the answer broke off"
    );
}

#[test]
fn a_server_that_says_done_without_a_reason_has_finished() {
    let stream = format!("{}data: [DONE]\n\n", sse(&[chat(json!({"content": "hi"}))]));
    let items = decode(OpenAiChat, &question(), &[stream.as_bytes()]).unwrap();
    assert_eq!(
        json!(items),
        json!([{"type": "text_delta", "text": "hi"}, {"type": "finish", "reason": "stop"}])
    );
}

#[test]
fn opaque_details_of_reasoning_are_kept() {
    let items = items(
        OpenAiChat,
        &[
            chat(
                json!({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}),
            ),
            chat(json!({"content": "hi"})),
            finish("stop"),
        ],
    );
    assert_eq!(
        items,
        json!([
            {"type": "reasoning_delta", "text": "hm"},
            {"type": "media", "segment": {"type": "reasoning", "data": {"wire": "openai_chat", "details": [{"type": "reasoning.encrypted", "data": "x"}]}}},
            {"type": "text_delta", "text": "hi"},
            {"type": "finish", "reason": "stop"},
        ])
    );
}

#[test]
fn an_answer_larger_than_the_limit_is_refused() {
    let text = "x".repeat(5 * 1024 * 1024);
    let events: Vec<Value> = (0..7).map(|_| chat(json!({"content": text}))).collect();
    let error = decode(OpenAiChat, &question(), &[sse(&events).as_bytes()]).unwrap_err();
    assert_eq!(error, ModelError::TooLarge(32 * 1024 * 1024));
}
