//! Requests of clients to models of other providers, and their responses.

use super::*;
use crate::ProviderKind;
use greenroom_protocol::Role;

fn decoded(wire: Wire, body: Value) -> ClientRequest {
    ClientRequest::decode(wire, None, body.to_string().as_bytes(), "1".to_owned()).unwrap()
}

fn gemini(body: Value) -> ClientRequest {
    let path = InPath { model: "m", streaming: Streaming::Events };
    let body = body.to_string();
    ClientRequest::decode(Wire::Gemini, Some(path), body.as_bytes(), "1".to_owned()).unwrap()
}

fn target(provider: ProviderKind) -> ModelSettings {
    ModelSettings::new("model", provider, "m")
}

fn options(request: &ClientRequest, provider: ProviderKind) -> Value {
    Value::Object(request.to_request(&target(provider)).options)
}

#[test]
fn options_mean_the_same_for_a_model_of_any_provider() {
    let anthropic = decoded(
        Wire::Anthropic,
        json!({"model": "claude", "max_tokens": 50, "messages": [], "temperature": 1, "top_p": 0.5,
            "stop_sequences": ["END"], "metadata": {"user_id": "u"}, "top_k": 4,
            "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
            "thinking": {"type": "enabled", "budget_tokens": 4000}}),
    );
    let common = json!({"max_tokens": 50, "temperature": 1, "top_p": 0.5, "stop": ["END"],
        "tool_choice": "required", "parallel_tool_calls": false});
    assert_eq!(options(&anthropic, ProviderKind::OpenAiChat), common);
    let mut with_budget = common.clone();
    with_budget["reasoning"] = json!({"budget_tokens": 4000});
    assert_eq!(options(&anthropic, ProviderKind::Anthropic), with_budget);
    let mut reasons = target(ProviderKind::OpenAiResponses);
    reasons.options.insert("reasoning".to_owned(), "low".into());
    let asked = anthropic.to_request(&reasons).options;
    assert_eq!(asked["reasoning"], "medium", "a model that reasons gets an effort");

    let google = gemini(json!({"contents": [], "generationConfig": {"maxOutputTokens": 9,
        "temperature": 0, "topP": 0.95, "topK": 64, "stopSequences": ["X"],
        "thinkingConfig": {"thinkingBudget": 0}},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "safetySettings": []}));
    let expected = json!({"max_tokens": 9, "temperature": 0, "stop": ["X"],
        "tool_choice": {"name": "f"}});
    assert_eq!(options(&google, ProviderKind::Anthropic), expected, "one of temperature and top_p");

    let chat = decoded(
        Wire::OpenAiChat,
        json!({"model": "gpt", "messages": [], "max_completion_tokens": 7, "seed": 3, "n": 1,
            "reasoning_effort": "xhigh", "response_format": {"type": "text"}, "user": "u",
            "tool_choice": {"type": "function", "function": {"name": "f"}}, "logprobs": true}),
    );
    let expected = json!({"max_tokens": 7, "seed": 3, "reasoning": "high",
        "tool_choice": {"name": "f"}});
    assert_eq!(options(&chat, ProviderKind::OpenAiResponses), expected);
}

/// What a client of each wire gets of a thought, and sends back with the result of a call.
#[test]
fn opaque_reasoning_comes_back_through_every_wire_as_it_was() {
    let data = json!({"wire": "gemini", "signature": "SIG/+="});
    let segments = json!([
        {"type": "reasoning", "text": "hm", "data": data},
        {"type": "text", "text": "I look."},
        {"type": "tool_call", "tool_call": {"id": "c1", "name": "f", "args": {"a": 1}}},
    ]);
    let response: ProviderResponse =
        serde_json::from_value(json!({"segments": segments, "metadata": {}})).unwrap();
    let returned = |request: ClientRequest| {
        let request = request.to_request(&target(ProviderKind::Gemini));
        let assistant = request.messages.iter().find(|message| message.role == Role::Assistant);
        json!(assistant.unwrap().segments)
    };
    let user = json!({"role": "user", "content": "hi"});

    let asked = decoded(Wire::Anthropic, json!({"model": "m", "messages": [user]}));
    let content = asked.whole(&response)["content"].clone();
    let back = json!({"model": "m", "messages": [user, {"role": "assistant", "content": content}]});
    assert_eq!(returned(decoded(Wire::Anthropic, back)), segments);

    let asked = decoded(Wire::OpenAiChat, json!({"model": "m", "messages": [user]}));
    let message = asked.whole(&response)["choices"][0]["message"].clone();
    let back = json!({"model": "m", "messages": [user, message]});
    assert_eq!(returned(decoded(Wire::OpenAiChat, back)), segments);

    let asked = decoded(Wire::OpenAiResponses, json!({"model": "m", "input": "hi"}));
    let mut input = vec![user];
    input.extend(asked.whole(&response)["output"].as_array().unwrap().clone());
    let back = json!({"model": "m", "input": input});
    assert_eq!(returned(decoded(Wire::OpenAiResponses, back)), segments);

    let content =
        gemini(json!({"contents": []})).whole(&response)["candidates"][0]["content"].clone();
    let back = gemini(json!({"contents": [content]}));
    // Google's wire has the signature on the part after the thought.
    let expected = json!([
        {"type": "reasoning", "text": "hm"},
        {"type": "reasoning", "text": "", "data": data},
        segments[1], segments[2],
    ]);
    assert_eq!(returned(back), expected);
}

#[test]
fn a_signature_of_another_provider_is_dropped() {
    let content = json!([{"type": "thinking", "thinking": "hm", "signature": "EqQB"},
        {"type": "text", "text": "x"}]);
    let request = decoded(
        Wire::Anthropic,
        json!({"model": "m", "messages": [{"role": "assistant", "content": content}]}),
    );
    let message = &request.to_request(&target(ProviderKind::Anthropic)).messages[0];
    assert_eq!(json!(message.segments)[0], json!({"type": "reasoning", "text": "hm"}));
}

#[test]
fn calls_without_ids_are_told_apart_by_their_order() {
    let call = json!({"functionCall": {"name": "f", "args": {}}});
    let result = json!({"functionResponse": {"name": "f", "response": {"output": "x"}}});
    let request = gemini(json!({"contents": [
        {"role": "model", "parts": [call, call]}, {"role": "user", "parts": [result, result]}]}));
    let messages = request.to_request(&target(ProviderKind::OpenAiChat)).messages;
    let called: Vec<&str> = messages[0].tool_calls.iter().map(|call| call.id.as_str()).collect();
    let answered: Vec<_> = messages[1..].iter().map(|it| it.tool_call_id.as_deref()).collect();
    assert_eq!(called, ["f", "f_2"]);
    assert_eq!(answered, [Some("f"), Some("f_2")]);
    // Some clients send the ids of calls, but none with the results.
    let named = |id: &str| json!({"functionCall": {"name": "f", "id": id, "args": {}}});
    let request = gemini(json!({"contents": [{"role": "model", "parts": [named("a"), named("b")]},
        {"role": "user", "parts": [result, result]}]}));
    let messages = request.to_request(&target(ProviderKind::OpenAiChat)).messages;
    let answered: Vec<_> = messages[1..].iter().map(|it| it.tool_call_id.as_deref()).collect();
    assert_eq!(answered, [Some("a"), Some("b")]);
}

#[test]
fn tools_in_namespaces_and_tools_that_take_text_come_back_under_their_names() {
    let tools = json!([
        {"type": "namespace", "name": "mcp__host", "tools": [
            {"type": "function", "name": "state_get", "parameters": {"type": "object"}}]},
        {"type": "custom", "name": "apply_patch", "description": "Patch."},
        {"type": "web_search"},
    ]);
    let request =
        decoded(Wire::OpenAiResponses, json!({"model": "m", "input": "x", "tools": tools}));
    let neutral = request.to_request(&target(ProviderKind::Anthropic));
    let names: Vec<&str> = neutral.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mcp__host.state_get", "apply_patch"]);
    let segments = json!([
        {"type": "tool_call", "tool_call": {"id": "1", "name": "mcp__host.state_get", "args": {}}},
        {"type": "tool_call", "tool_call": {"id": "2", "name": "apply_patch", "args": {"input": "*** p"}}},
    ]);
    let response = serde_json::from_value(json!({"segments": segments, "metadata": {}})).unwrap();
    let output = request.whole(&response)["output"].clone();
    assert_eq!(
        (&output[0]["namespace"], &output[0]["name"]),
        (&json!("mcp__host"), &json!("state_get"))
    );
    assert_eq!(
        (&output[1]["type"], &output[1]["input"]),
        (&json!("custom_tool_call"), &json!("*** p"))
    );
    let back =
        decoded(Wire::OpenAiResponses, json!({"model": "m", "input": output, "tools": tools}));
    let message = &back.to_request(&target(ProviderKind::Anthropic)).messages[0];
    let called: Vec<(&str, &Value)> =
        message.tool_calls.iter().map(|call| (call.name.as_str(), &call.args)).collect();
    assert_eq!(
        called,
        [("mcp__host.state_get", &json!({})), ("apply_patch", &json!({"input": "*** p"}))]
    );
}

#[test]
fn a_request_that_is_no_request_is_refused_in_words() {
    let refused = |wire, body: &str| {
        ClientRequest::decode(wire, None, body.as_bytes(), "1".to_owned()).unwrap_err()
    };
    assert!(refused(Wire::Anthropic, "{").starts_with("the body is not valid JSON"));
    assert_eq!(refused(Wire::OpenAiChat, "[]"), "the body must be a JSON object");
    assert_eq!(refused(Wire::OpenAiChat, "{}"), "`messages` is missing");
    assert_eq!(refused(Wire::OpenAiResponses, "{}"), "`input` must be a string or a list");
}

#[test]
fn a_call_that_arrives_in_one_piece_is_streamed_with_its_arguments() {
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let body = json!({"model": "m", "messages": [], "stream": true, "tools": tools});
    let mut stream = decoded(Wire::OpenAiChat, body).into_stream();
    let mut item = |item: Value| stream.item(serde_json::from_value(item).unwrap());
    item(json!({"type": "tool_call_start", "id": "1", "name": "f"}));
    let told = item(json!({"type": "tool_call_end", "id": "1", "name": "f", "args": {"a": 1}}));
    assert!(told.contains(r#""arguments":"{\"a\":1}""#), "{told}");
    item(json!({"type": "tool_call_start", "id": "2", "name": "f"}));
    item(json!({"type": "tool_call_delta", "id": "2", "args_text": "{}"}));
    let told = item(json!({"type": "tool_call_end", "id": "2", "name": "f", "args": {}}));
    assert_eq!(told, "", "what was streamed is not told again");
}

#[test]
fn bytes_of_geminis_clients_become_base64_that_every_provider_reads() {
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "-_-_"}});
    let request = gemini(json!({"contents": [{"role": "user", "parts": [inline]}]}));
    let content = json!(request.to_request(&target(ProviderKind::Anthropic)).messages[0].content);
    assert_eq!(content[0]["data_base64"], "+/+/");
}
