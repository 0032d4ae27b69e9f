//! The same response through all five wires.

use super::*;
use crate::Fold;
use greenroom_protocol::Object;
use proptest::prelude::*;

const CHAT: &str = include_str!("../../../tests/streams/openai_chat.sse");
const RESPONSES: &str = include_str!("../../../tests/streams/openai_responses.sse");
const ANTHROPIC: &str = include_str!("../../../tests/streams/anthropic.sse");
const GEMINI: &str = include_str!("../../../tests/streams/gemini.sse");
const OLLAMA: &str = include_str!("../../../tests/streams/ollama.ndjson");

const ALL: [(ProviderKind, &str); 5] = [
    (ProviderKind::OpenAiChat, CHAT),
    (ProviderKind::OpenAiResponses, RESPONSES),
    (ProviderKind::Anthropic, ANTHROPIC),
    (ProviderKind::Gemini, GEMINI),
    (ProviderKind::Ollama, OLLAMA),
];

fn folded(provider: ProviderKind, stream: &str) -> (Vec<Object>, Object) {
    let mut fold = Fold::new();
    let items = decode(provider, &question(), &[stream.as_bytes()]).unwrap();
    items.iter().for_each(|item| fold.push(item));
    let answer = fold.finish(Object::new());
    (answer.segments, answer.metadata)
}

#[test]
fn all_wires_give_the_same_segments() {
    let expected = json!([
        {"type": "reasoning", "text": "Two things: 文件 and clock."},
        {"type": "text", "text": "I look, 等一下 🙂."},
        {"type": "tool_call", "tool_call": {"id": "call_a1", "name": "fs.read", "args": {"path": "/tmp/日记.txt"}}},
        {"type": "tool_call", "tool_call": {"id": "call_b2", "name": "clock", "args": {}}},
    ]);
    for (provider, stream) in ALL {
        let (mut segments, metadata) = folded(provider, stream);
        // Opaque data differs per provider.
        segments.iter_mut().for_each(|segment| drop(segment.remove("data")));
        segments.retain(|segment| segment.len() > 1);
        assert_eq!(json!(segments), expected, "{provider:?}");
        assert_eq!(metadata["finish_reason"], "tool_calls", "{provider:?}");
        let usage = &metadata["usage"];
        let counts = [&usage["input_tokens"], &usage["output_tokens"], &usage["total_tokens"]];
        assert_eq!(counts, [&json!(20), &json!(10), &json!(30)], "{provider:?}");
    }
}

#[test]
fn opaque_data_is_kept_with_the_reasoning() {
    for (provider, stream, data) in [
        (
            ProviderKind::OpenAiChat,
            CHAT,
            json!([{"wire": "openai_chat", "field": "reasoning_content"}]),
        ),
        (
            ProviderKind::OpenAiResponses,
            RESPONSES,
            json!([{"wire": "openai_responses", "id": "rs_1", "encrypted_content": "gAAAB"}]),
        ),
        (
            ProviderKind::Anthropic,
            ANTHROPIC,
            json!([{"wire": "anthropic", "signature": "EqQBCg=="}]),
        ),
        (ProviderKind::Gemini, GEMINI, json!([{"wire": "gemini", "signature": "CiQBVK=="}])),
        (ProviderKind::Ollama, OLLAMA, json!([])),
    ] {
        let (segments, _) = folded(provider, stream);
        let kept: Vec<&Value> = segments.iter().filter_map(|segment| segment.get("data")).collect();
        assert_eq!(json!(kept), data, "{provider:?}");
    }
}

#[test]
fn exactly_the_reported_counts_are_emitted() {
    for (provider, stream, usage) in [
        (
            ProviderKind::OpenAiChat,
            CHAT,
            json!({"input_tokens": 20, "output_tokens": 10, "total_tokens": 30, "cached_input_tokens": 8, "reasoning_tokens": 4}),
        ),
        (
            ProviderKind::OpenAiResponses,
            RESPONSES,
            json!({"input_tokens": 20, "output_tokens": 10, "total_tokens": 30, "cached_input_tokens": 8, "reasoning_tokens": 4}),
        ),
        (
            ProviderKind::Anthropic,
            ANTHROPIC,
            json!({"input_tokens": 20, "output_tokens": 10, "total_tokens": 30, "cached_input_tokens": 8, "cache_write_input_tokens": 2}),
        ),
        (
            ProviderKind::Gemini,
            GEMINI,
            json!({"input_tokens": 20, "output_tokens": 10, "total_tokens": 30, "cached_input_tokens": 8, "reasoning_tokens": 4}),
        ),
        (
            ProviderKind::Ollama,
            OLLAMA,
            json!({"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}),
        ),
    ] {
        assert_eq!(folded(provider, stream).1["usage"], usage, "{provider:?}");
    }
}

#[test]
fn items_of_a_chat_stream() {
    let items = decode(ProviderKind::OpenAiChat, &question(), &[CHAT.as_bytes()]).unwrap();
    let expected = json!([
        {"type": "reasoning_delta", "text": "Two things: "},
        {"type": "reasoning_delta", "text": "文件 and clock."},
        {"type": "media", "segment": {"type": "reasoning", "data": {"wire": "openai_chat", "field": "reasoning_content"}}},
        {"type": "text_delta", "text": "I look, "},
        {"type": "text_delta", "text": "等一下 🙂."},
        {"type": "tool_call_start", "id": "call_a1", "name": "fs.read"},
        {"type": "tool_call_delta", "id": "call_a1", "args_text": "{\"path\":\"/tmp/"},
        {"type": "tool_call_delta", "id": "call_a1", "args_text": "日记.txt\"}"},
        {"type": "tool_call_start", "id": "call_b2", "name": "clock"},
        {"type": "tool_call_end", "id": "call_a1", "name": "fs.read", "args": {"path": "/tmp/日记.txt"}},
        {"type": "tool_call_end", "id": "call_b2", "name": "clock", "args": {}},
        {"type": "usage", "input_tokens": 20, "output_tokens": 10, "total_tokens": 30, "cached_input_tokens": 8, "reasoning_tokens": 4},
        {"type": "finish", "reason": "tool_calls"},
    ]);
    assert_eq!(json!(items), expected);
}

#[test]
fn chunks_of_one_byte_give_the_same_items() {
    let request = question();
    for (provider, stream) in ALL {
        let bytes = stream.as_bytes();
        let whole = decode(provider, &request, &[bytes]).unwrap();
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            let cut = decode(provider, &request, &[first, second]).unwrap();
            assert_eq!(cut, whole, "{provider:?} cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(provider, &request, &single).unwrap(), whole, "{provider:?}");
    }
}

#[test]
fn a_truncated_response_is_an_error_or_a_prefix() {
    let request = question();
    for (provider, stream) in ALL {
        let whole = decode(provider, &request, &[stream.as_bytes()]).unwrap();
        for at in (0..stream.len()).step_by(7) {
            let Ok(items) = decode(provider, &request, &[&stream.as_bytes()[..at]]) else {
                continue;
            };
            let texts = |items: &[ModelStreamItem]| {
                let of = |item: &&ModelStreamItem| matches!(item, ModelStreamItem::ToolCallEnd(_));
                items.iter().filter(of).cloned().collect::<Vec<_>>()
            };
            assert_eq!(texts(&items), texts(&whole), "{provider:?} ended at {at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn chunk_boundaries_make_no_difference(cuts in proptest::collection::vec(1usize..97, 1..40)) {
        let request = question();
        for (provider, stream) in ALL {
            let mut rest = stream.as_bytes();
            let mut pieces: Vec<&[u8]> = Vec::new();
            for size in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (call_part, more) = rest.split_at((*size).min(rest.len()));
                pieces.push(call_part);
                rest = more;
            }
            let whole = decode(provider, &request, &[stream.as_bytes()]).unwrap();
            prop_assert_eq!(decode(provider, &request, &pieces).unwrap(), whole);
        }
    }

    /// No input can panic the host, or leave a started call without an end.
    #[test]
    fn every_started_call_ends(
        garbage in proptest::collection::vec(any::<u8>(), 0..40),
        at in 0usize..4000,
    ) {
        for (provider, stream) in ALL {
            let at = at.min(stream.len());
            let pieces = [&stream.as_bytes()[..at], &garbage, &stream.as_bytes()[at..]];
            let Ok(items) = decode(provider, &question(), &pieces) else { continue };
            let (mut begun, mut ended) = (Vec::new(), Vec::new());
            for item in items {
                match item {
                    ModelStreamItem::ToolCallStart { id, .. } => begun.push(id),
                    ModelStreamItem::ToolCallEnd(call) => ended.push(call.id),
                    _ => {}
                }
            }
            begun.sort();
            ended.sort();
            prop_assert_eq!(begun, ended);
        }
    }
}
