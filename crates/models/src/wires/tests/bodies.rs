//! Complete requests: one conversation with an image, reasoning, calls and results, for each wire.

use super::*;

/// `data`: opaque data of the earlier reasoning.
fn conversation(data: Value, options: Value) -> ModelRequest {
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this, and how late is it?"},
            {"type": "image", "data_base64": "iVBORw0=", "mime_type": "image/png"},
        ]},
        {"role": "assistant", "content": "I look.",
         "tool_calls": [{"id": "c1", "name": "fs.read", "args": {"path": "a"}}, {"id": "c2", "name": "clock", "args": {}}],
         "segments": [
            {"type": "reasoning", "text": "Hm.", "data": data},
            {"type": "text", "text": "I look."},
            {"type": "tool_call", "tool_call": {"id": "c1", "name": "fs.read", "args": {"path": "a"}}},
            {"type": "tool_call", "tool_call": {"id": "c2", "name": "clock", "args": null, "args_text": "{oops", "args_error": "not JSON"}},
            {"type": "ui", "ui": {"kind": "card"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "{\"lines\":3}"},
        {"role": "tool", "tool_call_id": "c2", "content": "noon"},
        {"role": "user", "content": "Thanks"},
    ]);
    ModelRequest {
        messages: serde_json::from_value(messages).unwrap(),
        options: options.as_object().unwrap().clone(),
        ..question()
    }
}

fn written(
    provider: ProviderKind,
    provider_name: &str,
    model: &str,
    input: &ModelRequest,
) -> Value {
    let mut settings = ModelSettings::new("m", provider, model);
    settings.provider_name = provider_name.to_owned();
    settings.options = json!({"temperature": 0.5, "max_tokens": 100}).as_object().unwrap().clone();
    let made = request(&PreparedRequest::new(&settings, input).unwrap()).unwrap();
    json!({"url": made.url, "body": made.body})
}

fn read_schema() -> Value {
    question().tools[0].parameters.clone()
}

fn options() -> Value {
    json!({
        "stop": ["END"], "seed": 7, "tool_choice": {"name": "fs.read"}, "parallel_tool_calls": false,
        "response_format": {"type": "json_schema", "name": "reply", "schema": {"type": "object"}},
        "reasoning": "low", "messages": [], "user": "u1",
    })
}

#[test]
fn chat_completions_request() {
    let data = json!({"wire": "openai_chat", "field": "reasoning_content"});
    let made = written(ProviderKind::OpenAiChat, "openai", "gpt-5", &conversation(data, options()));
    assert_eq!(
        made,
        json!({
            "url": "https://api.openai.com/v1/chat/completions",
            "body": {
                "model": "gpt-5", "stream": true, "stream_options": {"include_usage": true},
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": [
                        {"type": "text", "text": "What is this, and how late is it?"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
                    ]},
                    {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "fs_read", "arguments": "{\"path\":\"a\"}"}},
                        {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{\"invalid_json\":\"{oops\"}"}},
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "content": "{\"lines\":3}"},
                    {"role": "tool", "tool_call_id": "c2", "content": "noon"},
                    {"role": "user", "content": "Thanks"},
                ],
                "tools": [
                    {"type": "function", "function": {"name": "fs_read", "description": "Reads a file", "parameters": read_schema()}},
                    {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}},
                ],
                "tool_choice": {"type": "function", "function": {"name": "fs_read"}},
                "parallel_tool_calls": false,
                "temperature": 0.5, "max_completion_tokens": 100, "stop": ["END"], "seed": 7,
                "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}},
                "reasoning_effort": "low", "user": "u1",
            },
        })
    );
}

#[test]
fn responses_request() {
    let data = json!({"wire": "openai_responses", "id": "rs_1", "encrypted_content": "gAAA"});
    let mut options = options();
    options["stop"] = Value::Null;
    let made = written(
        ProviderKind::OpenAiResponses,
        "openai-responses",
        "gpt-5",
        &conversation(data, options),
    );
    assert_eq!(
        made,
        json!({
            "url": "https://api.openai.com/v1/responses",
            "body": {
                "model": "gpt-5", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
                "input": [
                    {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
                    {"type": "message", "role": "user", "content": [
                        {"type": "input_text", "text": "What is this, and how late is it?"},
                        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0="},
                    ]},
                    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                    {"type": "function_call", "call_id": "c1", "name": "fs_read", "arguments": "{\"path\":\"a\"}"},
                    {"type": "function_call", "call_id": "c2", "name": "clock", "arguments": "{\"invalid_json\":\"{oops\"}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "{\"lines\":3}"},
                    {"type": "function_call_output", "call_id": "c2", "output": "noon"},
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks"}]},
                ],
                "tools": [
                    {"type": "function", "name": "fs_read", "description": "Reads a file", "parameters": read_schema(), "strict": false},
                    {"type": "function", "name": "clock", "parameters": {"type": "object", "properties": {}}, "strict": false},
                ],
                "tool_choice": {"type": "function", "name": "fs_read"}, "parallel_tool_calls": false,
                "temperature": 0.5, "max_output_tokens": 100,
                "text": {"format": {"type": "json_schema", "name": "reply", "schema": {"type": "object"}}},
                "reasoning": {"effort": "low", "summary": "auto"}, "user": "u1",
            },
        })
    );
}

#[test]
fn messages_request() {
    let data = json!({"wire": "anthropic", "signature": "EqQB"});
    let made = written(
        ProviderKind::Anthropic,
        "anthropic",
        "claude-opus-4-6",
        &conversation(data, options()),
    );
    assert_eq!(
        made,
        json!({
            "url": "https://api.anthropic.com/v1/messages",
            "body": {
                "model": "claude-opus-4-6", "stream": true, "max_tokens": 100,
                "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
                "messages": [
                    {"role": "user", "content": [
                        {"type": "text", "text": "What is this, and how late is it?"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}},
                    ]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
                        {"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "c1", "name": "fs_read", "input": {"path": "a"}},
                        {"type": "tool_use", "id": "c2", "name": "clock", "input": {"invalid_json": "{oops"}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "{\"lines\":3}"},
                        {"type": "tool_result", "tool_use_id": "c2", "content": "noon"},
                        {"type": "text", "text": "Thanks", "cache_control": {"type": "ephemeral"}},
                    ]},
                ],
                "tools": [
                    {"name": "fs_read", "description": "Reads a file", "input_schema": read_schema()},
                    {"name": "clock", "input_schema": {"type": "object", "properties": {}}, "cache_control": {"type": "ephemeral"}},
                ],
                "tool_choice": {"type": "tool", "name": "fs_read", "disable_parallel_tool_use": true},
                "temperature": 0.5, "stop_sequences": ["END"],
                "thinking": {"type": "adaptive"},
                "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "low"},
                "user": "u1",
            },
        })
    );
}

#[test]
fn messages_with_calls_define_their_tools_even_without_offered_tools() {
    let mut decoded = conversation(Value::Null, json!({"tool_choice": "auto"}));
    decoded.tools.clear();
    let made =
        written(ProviderKind::Anthropic, "anthropic", "claude-opus-4-6", &decoded)["body"].clone();
    let schema = json!({"type": "object"});
    let expected = json!([
        {"name": "clock", "input_schema": schema},
        {"name": "fs_read", "input_schema": schema, "cache_control": {"type": "ephemeral"}},
    ]);
    assert_eq!((&made["tools"], &made["tool_choice"]), (&expected, &json!({"type": "none"})));
    decoded.messages.truncate(2);
    let made =
        written(ProviderKind::Anthropic, "anthropic", "claude-opus-4-6", &decoded)["body"].clone();
    assert_eq!((made.get("tools"), made.get("tool_choice")), (None, None));
    // The others accept calls without definitions.
    for provider in [ProviderKind::OpenAiChat, ProviderKind::OpenAiResponses, ProviderKind::Gemini]
    {
        let mut decoded = conversation(Value::Null, json!({}));
        decoded.tools.clear();
        assert_eq!(written(provider, "openai", "m", &decoded)["body"].get("tools"), None);
    }
}

#[test]
fn gemini_request() {
    let data = json!({"wire": "gemini", "signature": "CiQB"});
    let made =
        written(ProviderKind::Gemini, "gemini", "gemini-2.5-pro", &conversation(data, options()));
    assert_eq!(
        made,
        json!({
            "url": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            "body": {
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "contents": [
                    {"role": "user", "parts": [
                        {"text": "What is this, and how late is it?"},
                        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}},
                    ]},
                    {"role": "model", "parts": [
                        {"text": "I look.", "thoughtSignature": "CiQB"},
                        {"functionCall": {"id": "c1", "name": "fs_read", "args": {"path": "a"}}},
                        {"functionCall": {"id": "c2", "name": "clock", "args": {"invalid_json": "{oops"}}},
                    ]},
                    {"role": "user", "parts": [
                        {"functionResponse": {"id": "c1", "name": "fs_read", "response": {"lines": 3}}},
                        {"functionResponse": {"id": "c2", "name": "clock", "response": {"result": "noon"}}},
                        {"text": "Thanks"},
                    ]},
                ],
                "tools": [{"functionDeclarations": [
                    {"name": "fs_read", "description": "Reads a file", "parametersJsonSchema": read_schema()},
                    {"name": "clock", "parametersJsonSchema": {"type": "object", "properties": {}}},
                ]}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["fs_read"]}},
                "generationConfig": {
                    "temperature": 0.5, "maxOutputTokens": 100, "stopSequences": ["END"], "seed": 7,
                    "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
                    "thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": true},
                },
                "user": "u1",
            },
        })
    );
}

#[test]
fn ollama_request() {
    let mut options = options();
    options["tool_choice"] = "auto".into();
    options["options"] = json!({"num_gpu": 1});
    let made =
        written(ProviderKind::Ollama, "ollama", "qwen3", &conversation(Value::Null, options));
    assert_eq!(
        made,
        json!({
            "url": "http://localhost:11434/api/chat",
            "body": {
                "model": "qwen3", "stream": true,
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "What is this, and how late is it?", "images": ["iVBORw0="]},
                    {"role": "assistant", "content": "I look.", "thinking": "Hm.", "tool_calls": [
                        {"id": "c1", "function": {"name": "fs_read", "arguments": {"path": "a"}}},
                        {"id": "c2", "function": {"name": "clock", "arguments": {"invalid_json": "{oops"}}},
                    ]},
                    {"role": "tool", "content": "{\"lines\":3}", "tool_call_id": "c1", "tool_name": "fs_read"},
                    {"role": "tool", "content": "noon", "tool_call_id": "c2", "tool_name": "clock"},
                    {"role": "user", "content": "Thanks"},
                ],
                "tools": [
                    {"type": "function", "function": {"name": "fs_read", "description": "Reads a file", "parameters": read_schema()}},
                    {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}},
                ],
                "format": {"type": "object"}, "think": true,
                "options": {"temperature": 0.5, "num_predict": 100, "stop": ["END"], "seed": 7, "num_gpu": 1},
                "user": "u1",
            },
        })
    );
}

#[test]
fn reasoning_of_another_wire_is_not_sent_and_content_replaces_missing_segments() {
    let foreign = json!({"wire": "elsewhere", "signature": "x", "encrypted_content": "x"});
    let decoded = conversation(foreign, json!({}));
    let anthropic = written(ProviderKind::Anthropic, "", "claude-haiku-4-5", &decoded);
    assert_eq!(
        anthropic["body"]["messages"][1]["content"][0],
        json!({"type": "text", "text": "I look."})
    );
    let responses = written(ProviderKind::OpenAiResponses, "", "gpt-4.1", &decoded);
    assert_eq!(responses["body"]["input"][2]["content"][0]["text"], "I look.");
    assert_eq!(responses["body"].get("include"), None);
    let mut plain = decoded.clone();
    plain.messages[2].segments = None;
    let chat = written(ProviderKind::OpenAiChat, "groq", "llama", &plain);
    assert_eq!(
        chat["body"]["messages"][2],
        json!({"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "fs_read", "arguments": "{\"path\":\"a\"}"}},
            {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
        ]})
    );
    assert_eq!(chat["body"]["max_tokens"], 100);
}

#[test]
fn calls_of_another_model_have_the_placeholder_signature_of_newer_gemini_models() {
    let made = written(
        ProviderKind::Gemini,
        "gemini",
        "gemini-3-pro",
        &conversation(Value::Null, json!({"reasoning": "high"})),
    );
    let parts = &made["body"]["contents"][1]["parts"];
    assert_eq!(parts[1]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(parts[2].get("thoughtSignature"), None);
    assert_eq!(
        made["body"]["generationConfig"]["thinkingConfig"],
        json!({"thinkingLevel": "high", "includeThoughts": true})
    );
}

#[test]
fn an_effort_becomes_a_budget_for_older_claude_models_and_caching_can_be_off() {
    let decoded = conversation(
        Value::Null,
        json!({"reasoning": "medium", "cache": "off", "max_tokens": null}),
    );
    let made = written(ProviderKind::Anthropic, "anthropic", "claude-sonnet-4-5", &decoded)["body"]
        .clone();
    assert_eq!(made["thinking"], json!({"type": "enabled", "budget_tokens": 8192}));
    assert_eq!(made["max_tokens"], 16384);
    assert!(!made.to_string().contains("cache_control"));
}

#[test]
fn mistral_gets_valid_ids_on_calls_and_results() {
    let made = written(
        ProviderKind::OpenAiChat,
        "mistral",
        "mistral-large",
        &conversation(Value::Null, json!({})),
    );
    let messages = &made["body"]["messages"];
    let id = messages[2]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    assert_eq!(messages[3]["tool_call_id"], id);
    assert_eq!(made["body"].get("stream_options"), None);
}

#[test]
fn unsupported_options_are_rejected_with_a_message() {
    for (provider, options, message) in [
        (
            ProviderKind::OpenAiResponses,
            json!({"stop": "END"}),
            "Responses does not support `stop`",
        ),
        (
            ProviderKind::Ollama,
            json!({"tool_choice": "required"}),
            "Ollama supports only `auto` and `none` for `tool_choice`",
        ),
        (
            ProviderKind::Anthropic,
            json!({"response_format": {"type": "json"}}),
            "Anthropic supports `response_format` only with a schema",
        ),
        (
            ProviderKind::OpenAiChat,
            json!({"reasoning": {"budget_tokens": 10}}),
            "this provider supports an effort for `reasoning`, not a budget",
        ),
    ] {
        let decoded = conversation(Value::Null, options);
        let settings = ModelSettings::new("m", provider, "m");
        let error = request(&PreparedRequest::new(&settings, &decoded).unwrap()).unwrap_err();
        assert_eq!(error, ModelError::InvalidRequest(message.to_owned()));
    }
}

#[test]
fn a_wire_that_knows_failed_calls_is_told_of_one() {
    let conversation = |content: &str, is_error: bool| ModelRequest {
        messages: serde_json::from_value(json!([
            {"role": "user", "content": "How late is it?"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "name": "clock", "args": {}}]},
            {"role": "tool", "tool_call_id": "c1", "content": content, "is_error": is_error},
        ]))
        .unwrap(),
        ..question()
    };
    let gemini = |content: &str, is_error: bool| {
        let input = conversation(content, is_error);
        let made = written(ProviderKind::Gemini, "gemini", "gemini-2.5-flash", &input);
        made["body"]["contents"][2]["parts"][0]["functionResponse"]["response"].clone()
    };
    assert_eq!(gemini("stopped", false), json!({"result": "stopped"}));
    assert_eq!(gemini("stopped", true), json!({"error": {"result": "stopped"}}));
    assert_eq!(gemini(r#"{"error": "stopped"}"#, true), json!({"error": "stopped"}));
    let anthropic = |is_error: bool| {
        let input = conversation("stopped", is_error);
        let made = written(ProviderKind::Anthropic, "anthropic", "claude-sonnet-4-5", &input);
        made["body"]["messages"][2]["content"][0]["is_error"].clone()
    };
    assert_eq!((anthropic(true), anthropic(false)), (json!(true), Value::Null));
}
