//! Media in messages and tool results, and the headers of each wire.

use super::*;
use crate::Secret;
use crate::wires::headers;

fn body(provider: ProviderKind, messages: Value) -> Result<Value, ModelError> {
    let settings = ModelSettings::new("m", provider, "m");
    let decoded = ModelRequest {
        messages: serde_json::from_value(messages).unwrap(),
        ..ModelRequest::default()
    };
    Ok(request(&PreparedRequest::new(&settings, &decoded)?)?.body)
}

fn user(element: Value) -> Value {
    json!([{"role": "user", "content": [element]}])
}

#[test]
fn media_of_results_follow_the_last_result_where_results_are_text() {
    let messages = json!([
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "shot", "args": {}}, {"id": "b", "name": "shot", "args": {}}]},
        {"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": "one"}, {"type": "image", "data_base64": "AAAA", "mime_type": "image/png"}]},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "user", "content": "well?"},
    ]);
    let chat = body(ProviderKind::OpenAiChat, messages.clone()).unwrap();
    assert_eq!(
        chat["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "tool", "tool_call_id": "a", "content": "one"}),
            json!({"role": "tool", "tool_call_id": "b", "content": "two"}),
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}),
            json!({"role": "user", "content": "well?"}),
        ]
    );
    let anthropic = body(ProviderKind::Anthropic, messages.clone()).unwrap();
    assert_eq!(
        anthropic["messages"][1]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "a", "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ]})
    );
    let responses = body(ProviderKind::OpenAiResponses, messages.clone()).unwrap();
    assert_eq!(
        responses["input"][2]["output"],
        json!([
            {"type": "input_text", "text": "one"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        ])
    );
    let gemini = body(ProviderKind::Gemini, messages).unwrap();
    assert_eq!(
        gemini["contents"][1]["parts"],
        json!([
            {"functionResponse": {"id": "a", "name": "shot", "response": {"result": "one"}}},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"functionResponse": {"id": "b", "name": "shot", "response": {"result": "two"}}},
            {"text": "well?"},
        ])
    );
}

#[test]
fn files_audio_and_urls_are_sent_where_supported() {
    let pdf = user(
        json!({"type": "file", "data_base64": "JVBE", "mime_type": "application/pdf", "name": "a.pdf"}),
    );
    let text = user(json!({"type": "file", "data_base64": "aGk=", "mime_type": "text/plain"}));
    let wav = user(json!({"type": "audio", "data_base64": "UklG", "mime_type": "audio/wav"}));
    let far = user(json!({"type": "image", "url": "https://example.com/a.png"}));
    let near = user(json!({"type": "image", "url": "data:image/jpeg;base64,/9j/"}));
    for (provider, messages, at, expected) in [
        (
            ProviderKind::OpenAiChat,
            &pdf,
            "/messages/0/content/0",
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}}),
        ),
        (
            ProviderKind::OpenAiResponses,
            &pdf,
            "/input/0/content/0",
            json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}),
        ),
        (
            ProviderKind::Anthropic,
            &pdf,
            "/messages/0/content/0",
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}}),
        ),
        (
            ProviderKind::Anthropic,
            &text,
            "/messages/0/content/0",
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}),
        ),
        (
            ProviderKind::OpenAiChat,
            &wav,
            "/messages/0/content/0",
            json!({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}),
        ),
        (
            ProviderKind::Gemini,
            &wav,
            "/contents/0/parts/0",
            json!({"inlineData": {"mimeType": "audio/wav", "data": "UklG"}}),
        ),
        (
            ProviderKind::OpenAiChat,
            &far,
            "/messages/0/content/0",
            json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
        ),
        (
            ProviderKind::Anthropic,
            &far,
            "/messages/0/content/0",
            json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
        ),
        (
            ProviderKind::Gemini,
            &near,
            "/contents/0/parts/0",
            json!({"inlineData": {"mimeType": "image/jpeg", "data": "/9j/"}}),
        ),
        (ProviderKind::Ollama, &near, "/messages/0/images/0", json!("/9j/")),
    ] {
        let mut body = body(provider, messages.clone()).unwrap();
        let part = body.pointer_mut(at).unwrap();
        // The mark of the last message.
        part.as_object_mut().into_iter().for_each(|part| drop(part.remove("cache_control")));
        assert_eq!(*part, expected, "{provider:?}");
    }
}

#[test]
fn unsupported_media_are_rejected_with_a_message() {
    let far = user(
        json!({"type": "image", "url": "https://example.com/a.png", "mime_type": "image/png"}),
    );
    let wav = user(json!({"type": "audio", "data_base64": "UklG", "mime_type": "audio/wav"}));
    let kept = user(json!({"type": "image", "artifact_id": "art_1"}));
    for (provider, messages, message) in [
        (ProviderKind::Gemini, &far, "Gemini does not support image (image/png) by URL"),
        (ProviderKind::Ollama, &far, "Ollama does not support image (image/png) by URL"),
        (ProviderKind::Anthropic, &wav, "Anthropic does not support audio (audio/wav)"),
        (ProviderKind::OpenAiResponses, &wav, "Responses does not support audio (audio/wav)"),
        (ProviderKind::OpenAiChat, &kept, "media need `data_base64` or `url`"),
        (
            ProviderKind::Gemini,
            &json!([{"role": "tool", "tool_call_id": "x", "content": "y"}]),
            "no message contains the call `x` that a `tool` message answers",
        ),
        (
            ProviderKind::OpenAiChat,
            &json!([{"role": "tool", "content": "y"}]),
            "a `tool` message needs `tool_call_id`",
        ),
    ] {
        let error = body(provider, messages.clone()).unwrap_err();
        assert_eq!(error, ModelError::InvalidRequest(message.to_owned()));
    }
}

#[test]
fn keys_are_sent_in_the_header_of_each_wire() {
    for (provider, name, expected) in [
        (ProviderKind::OpenAiChat, "groq", vec![("authorization", "Bearer k".to_owned())]),
        (
            ProviderKind::OpenAiResponses,
            "openai-responses",
            vec![("authorization", "Bearer k".to_owned())],
        ),
        (ProviderKind::OpenAiChat, "azure", vec![("api-key", "k".to_owned())]),
        (
            ProviderKind::Anthropic,
            "anthropic",
            vec![("anthropic-version", "2023-06-01".to_owned()), ("x-api-key", "k".to_owned())],
        ),
        (ProviderKind::Gemini, "gemini", vec![("x-goog-api-key", "k".to_owned())]),
    ] {
        let mut settings = ModelSettings::new("m", provider, "m");
        settings.provider_name = name.to_owned();
        settings.api_key = Some(Secret::new("k"));
        assert_eq!(headers(&settings), expected);
    }
    assert_eq!(headers(&ModelSettings::new("m", ProviderKind::Ollama, "m")), vec![]);
}
