//! Ends of responses: errors, filters, limits; and what is ignored or kept.

use super::*;
use ProviderKind::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};

#[test]
fn unknown_events_blocks_and_parts_are_ignored() {
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
fn a_blocked_prompt_finishes_by_filter_and_an_image_is_media() {
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
    assert_eq!(error(Anthropic, &[busy]), "the provider returned 529: Overloaded");
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "oops"}}});
    assert_eq!(error(OpenAiResponses, &[failed]), "the provider returned 500: oops");
    let limit = json!({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}});
    assert_eq!(error(Gemini, &[limit]), "rate limited: quota");
    assert_eq!(
        error(OpenAiChat, &[chat(json!({"content": "hi"}))]),
        "the provider cannot be reached: the response broke off"
    );
}

#[test]
fn done_without_a_reason_is_a_finish() {
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
fn a_response_over_the_limit_is_rejected() {
    let text = "x".repeat(5 * 1024 * 1024);
    let events: Vec<Value> = (0..7).map(|_| chat(json!({"content": text}))).collect();
    let error = decode(OpenAiChat, &question(), &[sse(&events).as_bytes()]).unwrap_err();
    assert_eq!(error, ModelError::TooLarge(32 * 1024 * 1024));
}
