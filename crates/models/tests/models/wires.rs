//! One answer over all five wires, from a socket: what was asked for, and the same segments each time.

use crate::kit::*;
use greenroom_models::{Model, ProviderKind};
use greenroom_protocol::Object;
use serde_json::{Value, json};

const ALL: [(ProviderKind, &str, &str, &str); 5] = [
    (
        ProviderKind::OpenAiChat,
        "/chat/completions",
        "authorization",
        include_str!("../streams/openai_chat.sse"),
    ),
    (
        ProviderKind::OpenAiResponses,
        "/responses",
        "authorization",
        include_str!("../streams/openai_responses.sse"),
    ),
    (
        ProviderKind::Anthropic,
        "/v1/messages",
        "x-api-key",
        include_str!("../streams/anthropic.sse"),
    ),
    (
        ProviderKind::Gemini,
        "/v1beta/models/m-2025:streamGenerateContent?alt=sse",
        "x-goog-api-key",
        include_str!("../streams/gemini.sse"),
    ),
    (ProviderKind::Ollama, "/api/chat", "authorization", include_str!("../streams/ollama.ndjson")),
];

/// Chunks of a few bytes, so that events and characters are cut.
fn in_chunks(stream: &str) -> Vec<Step> {
    let mut steps = vec![head()];
    for bytes in stream.as_bytes().chunks(61) {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        steps.push(Step::Write(chunk));
    }
    steps.push(last_chunk());
    steps
}

/// Without what only the provider can read.
fn plain(mut segments: Vec<Object>) -> Value {
    segments.iter_mut().for_each(|segment| drop(segment.remove("data")));
    segments.retain(|segment| segment.len() > 1);
    json!(segments)
}

#[tokio::test]
async fn the_same_answer_gives_the_same_segments_over_every_wire() {
    let expected = json!([
        {"type": "reasoning", "text": "Two things: 文件 and clock."},
        {"type": "text", "text": "I look, 等一下 🙂."},
        {"type": "tool_call", "tool_call": {"id": "call_a1", "name": "fs.read", "args": {"path": "/tmp/日记.txt"}}},
        {"type": "tool_call", "tool_call": {"id": "call_b2", "name": "clock", "args": {}}},
    ]);
    for (provider, path, header, stream) in ALL {
        let server = Server::start(vec![in_chunks(stream)]).await;
        let mut settings = settings(&server);
        settings.provider = provider;
        settings.headers.insert("x-team".to_owned(), greenroom_models::Secret::new("blue"));
        let model = Model::new(settings).unwrap();
        let answer = model.invoke(question(), soon()).await.unwrap();
        assert_eq!(plain(answer.segments), expected, "{provider:?}");
        assert_eq!(answer.metadata["model"], "m");
        assert_eq!(answer.metadata["provider_model"], "m-2025", "{provider:?}");
        assert_eq!(answer.metadata["finish_reason"], "tool_calls");
        let request = &server.requests()[0];
        assert_eq!(request.path, path);
        assert!(request.headers[header].ends_with(KEY));
        assert_eq!(request.headers["x-team"], "blue");
        assert_eq!(request.headers["content-type"], "application/json");
    }
}

#[tokio::test]
async fn an_answer_can_be_handed_back_to_the_wire_that_it_came_from() {
    for (provider, _, _, stream) in ALL {
        let server = Server::start(vec![in_chunks(stream)]).await;
        let mut settings = settings(&server);
        settings.provider = provider;
        let model = Model::new(settings).unwrap();
        let answer = model.invoke(question(), soon()).await.unwrap();
        let mut next = question();
        next.messages.extend(
            serde_json::from_value::<Vec<_>>(json!([
                {"role": "assistant", "content": null, "segments": answer.segments},
                {"role": "tool", "tool_call_id": "call_a1", "content": "{}"},
                {"role": "tool", "tool_call_id": "call_b2", "content": "{}"},
            ]))
            .unwrap(),
        );
        let again = model.invoke(next, soon()).await.unwrap();
        let sent = server.requests()[1].body.to_string();
        for kept in ["I look, 等一下 🙂.", "call_a1", "call_b2"] {
            assert!(sent.contains(kept), "{provider:?}: {kept}");
        }
        let opaque = match provider {
            ProviderKind::OpenAiResponses => "gAAAB",
            ProviderKind::Anthropic => "EqQBCg==",
            ProviderKind::Gemini => "CiQBVK==",
            _ => "Two things: 文件 and clock.",
        };
        assert!(sent.contains(opaque), "{provider:?}: {sent}");
        // The provider repeats ids that are taken now: others are made.
        let ids: Vec<&Value> =
            again.segments.iter().filter_map(|s| s.get("tool_call")?.get("id")).collect();
        assert!(ids.len() == 2 && !ids.contains(&&json!("call_a1")) && ids[0] != ids[1]);
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood_too() {
    let body = json!({"id": "x", "model": "m-2025", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "hello", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let steps = answer(200, &[("content-type", "application/json")], &body.to_string());
    let server = Server::start(vec![steps]).await;
    let expected = json!([
        {"type": "text_delta", "text": "hello"},
        {"type": "tool_call_start", "id": "a", "name": "clock"},
        {"type": "tool_call_delta", "id": "a", "args_text": "{}"},
        {"type": "tool_call_end", "id": "a", "name": "clock", "args": {}},
        {"type": "usage", "input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        {"type": "finish", "reason": "tool_calls"},
    ]);
    assert_eq!(ask_once(&model(&server)).await, Ok((expected, None)));
}

#[tokio::test]
async fn a_message_that_comes_whole_is_understood_too() {
    let body = json!({"id": "x", "type": "message", "role": "assistant", "model": "m-2025", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "S"},
            {"type": "text", "text": "hello"},
            {"type": "tool_use", "id": "a", "name": "fs_read", "input": {"path": "x"}},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let steps = answer(200, &[("content-type", "application/json")], &body.to_string());
    let server = Server::start(vec![steps]).await;
    let mut settings = settings(&server);
    settings.provider = ProviderKind::Anthropic;
    let answer = Model::new(settings).unwrap().invoke(question(), soon()).await.unwrap();
    let expected = json!([
        {"type": "reasoning", "text": "hm", "data": {"wire": "anthropic", "signature": "S"}},
        {"type": "text", "text": "hello"},
        {"type": "tool_call", "tool_call": {"id": "a", "name": "fs.read", "args": {"path": "x"}}},
    ]);
    assert_eq!(json!(answer.segments), expected);
}
