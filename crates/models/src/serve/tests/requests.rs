//! Requests of each wire are decoded to the same properties.

use super::*;
use serde_json::json;

/// Responds with every property that a rule can match.
const MIRROR: &str = r#"
    [[rule]]
    when.tool_result = true
    answer = "{{system}}/{{text}}/{{last_tool_name}}={{last_tool_result}}/{{tools}}/{{turn}}.{{round}}"
    [[rule]]
    answer = "{{system}}/{{text}}/{{tools}}/{{turn}}.{{round}}"
"#;

async fn says(script: &str, address: &str, request: &Value) -> String {
    let body = whole(script, address, request).await;
    let places = [
        "/choices/0/message/content",
        "/output/0/content/0/text",
        "/content/0/text",
        "/candidates/0/content/parts/0/text",
        "/message/content",
    ];
    places.iter().find_map(|place| body.pointer(place)?.as_str()).unwrap().to_owned()
}

fn chat() -> Value {
    json!({
        "messages": [
            {"role": "developer", "content": "brief"},
            {"role": "user", "content": [
                {"type": "text", "text": "what is "},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWs="}},
                {"type": "text", "text": "this"},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}],
    })
}

fn responses() -> Value {
    json!({
        "instructions": "brief",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "what is "},
                {"type": "input_image", "image_url": "https://h/x.png"},
                {"type": "input_text", "text": "this"},
            ]},
            {"type": "reasoning", "id": "rs", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
        ],
        "tools": [
            {"type": "function", "name": "look", "parameters": {"type": "object"}}, {"type": "web_search"},
        ],
    })
}

fn anthropic() -> Value {
    json!({
        "system": [{"type": "text", "text": "brief", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "what is "},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aWs="}},
                {"type": "text", "text": "this"},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a cat"}]},
            ]},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    })
}

fn gemini() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "brief"}]},
        "contents": [
            {"role": "user", "parts": [
                {"text": "what is "}, {"inlineData": {"mimeType": "image/png", "data": "aWs="}},
                {"text": "this"},
            ]},
            {"role": "model", "parts": [
                {"text": "t", "thought": true}, {"functionCall": {"name": "look", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "look", "response": {"output": "a cat"}}},
            ]},
        ],
        "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}}]}],
    })
}

fn ollama() -> Value {
    json!({
        "stream": false,
        "messages": [
            {"role": "system", "content": "brief"},
            {"role": "user", "content": "what is this", "images": ["aWs="]},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
            {"role": "tool", "tool_name": "look", "content": "a cat"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}],
    })
}

#[tokio::test]
async fn a_conversation_with_a_tool_is_decoded_the_same_in_every_wire() {
    for (address, request) in [
        ("/v1/chat/completions", chat()),
        ("/v1/responses", responses()),
        ("/v1/messages", anthropic()),
        ("/v1beta/models/m:generateContent", gemini()),
        ("/api/chat", ollama()),
    ] {
        let said = says(MIRROR, address, &request).await;
        assert_eq!(said, "brief/what is this/look=a cat/look/1.2", "{address}");
    }
}

#[tokio::test]
async fn tools_in_a_namespace_are_called_with_it() {
    let script = r#"
        [[rule]]
        when = { offers = ["mcp__probe.echo", "apply_patch"], tool_result = false }
        answer = [
          { call = "mcp__probe.echo", id = "c1", args = { message = "hi" } },
          { call = "apply_patch", id = "c2", args = { input = "*** Begin Patch" } },
        ]
        [[rule]]
        when = { result_of = "mcp__probe.echo", round = 2 }
        answer = "{{last_tool_name}}: {{last_tool_result}}"
    "#;
    let tools = json!([
        {"type": "namespace", "name": "mcp__probe", "description": "d", "tools": [
            {"type": "function", "name": "echo", "parameters": {"type": "object"}},
        ]},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
    ]);
    let first = json!({"model": "m", "input": "go", "tools": tools, "stream": true});
    let events = events(script, "/v1/responses", &first).await;
    let Some((_, last)) = events.last() else { panic!("no events") };
    let output = last["response"]["output"].clone();
    let call = &output[0];
    assert_eq!(
        [&call["type"], &call["namespace"], &call["name"], &call["arguments"]],
        [
            &json!("function_call"),
            &json!("mcp__probe"),
            &json!("echo"),
            &json!("{\"message\":\"hi\"}")
        ]
    );
    let patch = &output[1];
    assert_eq!(
        [&patch["type"], &patch["name"], &patch["input"]],
        [&json!("custom_tool_call"), &json!("apply_patch"), &json!("*** Begin Patch")]
    );
    let second = json!({"model": "m", "tools": tools, "input": [
        {"role": "user", "content": "go"}, call, patch,
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "patched"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "HI"}]},
    ]});
    assert_eq!(says(script, "/v1/responses", &second).await, "mcp__probe.echo: HI");
}

#[tokio::test]
async fn structured_output_is_requested_in_each_wire() {
    let script = "[[rule]]\nwhen.wants_json = true\nanswer = [{ sample = true }]";
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let messages = json!([{"role": "user", "content": "hi"}]);
    for (address, request) in [
        (
            "/v1/chat/completions",
            json!({"messages": messages, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}),
        ),
        (
            "/v1/responses",
            json!({"input": "hi", "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}),
        ),
        (
            "/v1/messages",
            json!({"messages": messages, "output_config": {"format": {"type": "json_schema", "schema": schema}}}),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({
                "contents": [{"parts": [{"text": "hi"}]}],
                "generationConfig": {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}},
            }),
        ),
        ("/api/chat", json!({"messages": messages, "stream": false, "format": schema})),
    ] {
        assert_eq!(says(script, address, &request).await, r#"{"n":0}"#, "{address}");
    }
}

#[tokio::test]
async fn invalid_requests_get_400_in_the_format_of_the_wire() {
    for (address, request, mark) in [
        ("/v1/chat/completions", json!({}), "`messages` is missing"),
        ("/v1/chat/completions", json!({"messages": [{"role": "king"}]}), "unknown `role`"),
        ("/v1/responses", json!({"input": 3}), "`input` must be"),
        (
            "/v1/messages",
            json!({"messages": [{"role": "user"}]}),
            r#""type":"invalid_request_error"#,
        ),
        ("/v1beta/models/m:generateContent", json!({}), r#""status":"INVALID_ARGUMENT""#),
        ("/v1beta/models/m:predict", json!({}), "unknown action `predict`"),
        ("/api/chat", json!([]), r#"{"error":"`messages`"#),
    ] {
        let got = send(MIRROR, "POST", address, &request).await;
        assert!(
            matches!(&got, Got::Whole { status: 400, body, .. } if body.contains(mark)),
            "{got:?}"
        );
    }
    let got = send(MIRROR, "POST", "/nowhere", &json!({})).await;
    assert!(matches!(got, Got::Whole { status: 404, .. }));
    let got = send(MIRROR, "DELETE", "/v1/models", &json!({})).await;
    assert!(matches!(got, Got::Whole { status: 405, .. }));
}
