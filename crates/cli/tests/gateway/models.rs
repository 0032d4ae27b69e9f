//! The model gateway: every wire in front of a scripted model, budgets, names and errors.

use crate::client::{Client, agent, open, read};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const SCRIPT: &str = r#"
[[rule]]
when.result_of = "weather.get"
answer = "It is {{last_tool_result}}."
[[rule]]
when.text = "weather"
answer = [
  { reasoning = "Let me see.", signature = "c2ln" },
  { text = "I look." },
  { call = "weather.get", args = { city = "Oslo" }, id = "call_1", piece = 6 },
  { usage = { input_tokens = 12, output_tokens = 7 } },
]
[[rule]]
when.text = "limited"
answer = [{ error = 429, message = "slow down", retry_after_s = 7 }]
[[rule]]
when.text = "breaks"
answer = [{ text = "This will" }, { error = 500, message = "broken" }]
[[rule]]
answer = [
  { text = "You said: {{text}}", piece = 5 },
  { usage = { input_tokens = 1000, output_tokens = 500 } },
]
"#;

const MODELS: &str = r#"
[models.demo]
provider = "scripted"
script = "demo.toml"
price = { input = 2, output = 8 }
max_output_tokens = 500
[models.other]
provider = "scripted"
[models.hidden]
provider = "scripted"
"#;

async fn opened(grant: &str, more: &str) -> Client {
    let configuration = format!("{MODELS}{}", agent(grant, more));
    open(&[("demo.toml", SCRIPT)], &configuration).await
}

fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

/// The data of the events of a stream.
async fn events(client: &Client, path: &str, body: &Value) -> Vec<Value> {
    let request = client.signed(Request::post(client.models(path), body.to_string()));
    let response = client.send(request).await;
    assert_eq!(response.header("content-type"), Some("text/event-stream"), "{path}");
    let body = String::from_utf8(response.body().await.unwrap()).unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
}

#[tokio::test]
async fn a_model_answers_in_the_wire_of_every_client() {
    let client = opened("models = [\"demo\"]", "").await;
    let chat = json!({"model": "demo", "messages": user("hi")});
    let (status, answer) = client.post(&client.models("openai/v1/chat/completions"), &chat).await;
    assert_eq!((status, &answer["model"]), (200, &json!("demo")));
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: hi");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["total_tokens"], 1500);
    let asked = json!({"model": "demo", "input": "hi"});
    let (status, answer) = client.post(&client.models("openai/v1/responses"), &asked).await;
    assert_eq!((status, &answer["status"]), (200, &json!("completed")));
    assert_eq!(answer["output"][0]["content"][0]["text"], "You said: hi");
    let asked = json!({"model": "demo", "max_tokens": 50, "messages": user("hi")});
    let (status, answer) = client.post(&client.models("anthropic/v1/messages"), &asked).await;
    assert_eq!((status, &answer["stop_reason"]), (200, &json!("end_turn")));
    assert_eq!(answer["content"], json!([{"type": "text", "text": "You said: hi"}]));
    assert_eq!(answer["usage"], json!({"input_tokens": 1000, "output_tokens": 500}));
    let asked = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let path = client.models("gemini/v1beta/models/demo:generateContent");
    let (status, answer) = client.post(&path, &asked).await;
    assert_eq!((status, &answer["candidates"][0]["finishReason"]), (200, &json!("STOP")));
    assert_eq!(answer["candidates"][0]["content"]["parts"], json!([{"text": "You said: hi"}]));
}

#[tokio::test]
async fn streams_end_as_their_wire_says_and_carry_calls_and_thoughts() {
    let client = opened("models = [\"demo\"]", "").await;
    let tool = json!({"name": "weather.get", "description": "x",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}});
    let asked = json!({"model": "demo", "max_tokens": 50, "stream": true,
        "messages": user("weather"), "tools": [tool]});
    let told = events(&client, "anthropic/v1/messages", &asked).await;
    let kinds: Vec<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("message_start", "message_stop"));
    let last = &told[told.len() - 2];
    assert_eq!(last["delta"]["stop_reason"], "tool_use");
    assert_eq!(last["usage"], json!({"input_tokens": 12, "output_tokens": 7}));
    let signature = told.iter().find_map(|event| event["delta"]["signature"].as_str()).unwrap();
    // The signature goes back as it came, with the result of the call.
    let content = json!([{"type": "thinking", "thinking": "Let me see.", "signature": signature},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "weather.get", "input": {"city": "Oslo"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "call_1", "content": "cold"}]);
    let again = json!({"model": "demo", "max_tokens": 50, "tools": [tool], "messages": [
        {"role": "user", "content": "weather"}, {"role": "assistant", "content": content},
        {"role": "user", "content": result}]});
    let (status, answer) = client.post(&client.models("anthropic/v1/messages"), &again).await;
    assert_eq!((status, &answer["content"][0]["text"]), (200, &json!("It is cold.")));

    let function = json!({"name": "weather.get", "parameters": tool["input_schema"]});
    let asked = json!({"model": "demo", "stream": true, "stream_options": {"include_usage": true},
        "messages": user("weather"), "tools": [{"type": "function", "function": function}]});
    let told = events(&client, "openai/v1/chat/completions", &asked).await;
    assert_eq!(told[told.len() - 1], "[DONE]");
    assert_eq!(told[told.len() - 2]["usage"]["total_tokens"], 19);
    let args: String = told
        .iter()
        .filter_map(|it| it.pointer("/choices/0/delta/tool_calls/0/function/arguments")?.as_str())
        .collect();
    assert_eq!(args, r#"{"city":"Oslo"}"#);

    // Codex offers the tools of an MCP server in a namespace.
    let tools = json!([{"type": "namespace", "name": "weather", "tools": [
        {"type": "function", "name": "get", "parameters": tool["input_schema"]}]}]);
    let asked = json!({"model": "demo", "stream": true, "tools": tools,
        "input": [{"type": "message", "role": "user", "content": "weather"}]});
    let told = events(&client, "openai/v1/responses", &asked).await;
    let last = &told[told.len() - 1];
    assert_eq!(last["type"], "response.completed");
    let call = &last["response"]["output"][2];
    assert_eq!((&call["namespace"], &call["name"]), (&json!("weather"), &json!("get")));

    let asked = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let path = "gemini/v1beta/models/demo:streamGenerateContent?alt=sse";
    let told = events(&client, path, &asked).await;
    let texts =
        told.iter().filter_map(|it| it.pointer("/candidates/0/content/parts/0/text")?.as_str());
    assert_eq!(texts.collect::<String>(), "You said: hi");
    assert_eq!(told[told.len() - 1]["candidates"][0]["finishReason"], "STOP");
}

#[tokio::test]
async fn a_name_is_a_granted_model_or_the_only_one() {
    let several = opened("models = [\"other\", \"demo\"]", "").await;
    let ask = async |client: &Client, model: &str| {
        let asked = json!({"model": model, "messages": user("hi")});
        let (status, answer) =
            client.post(&client.models("openai/v1/chat/completions"), &asked).await;
        let said = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        (status, said.starts_with("You said: hi"), answer["error"]["code"].clone())
    };
    assert_eq!(ask(&several, "demo").await, (200, true, Value::Null));
    assert_eq!(ask(&several, "default").await.0, 200);
    // Not granted and not existing are the same.
    for name in ["hidden", "gpt-99"] {
        assert_eq!(ask(&several, name).await, (404, false, json!("model_not_found")), "{name}");
    }
    let (_, list) = several.get(&several.models("openai/v1/models")).await;
    let ids: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["other", "demo", "default"]);
    let (_, list) = several.get(&several.models("gemini/v1beta/models")).await;
    assert_eq!(list["models"][1]["name"], "models/demo");
    let (status, model) = several.get(&several.models("anthropic/v1/models/demo")).await;
    assert_eq!((status, &model["id"]), (200, &json!("demo")));
    assert_eq!(several.get(&several.models("anthropic/v1/models/hidden")).await.0, 404);

    let only = opened("models = [\"demo\"]", "").await;
    // Clients ask for titles and quotas under names of their own.
    assert_eq!(ask(&only, "claude-haiku-4-5").await, (200, true, Value::Null));
    let none = opened("", "").await;
    assert_eq!(ask(&none, "demo").await.0, 404);
}

#[tokio::test]
async fn tokens_are_counted_for_clients_that_ask() {
    let client = opened("models = [\"demo\"]", "").await;
    let asked = json!({"model": "demo", "messages": user("hello")});
    let path = client.models("anthropic/v1/messages/count_tokens");
    // Five characters are two tokens, the frame of a message is four.
    assert_eq!(client.post(&path, &asked).await, (200, json!({"input_tokens": 6})));
    let contents = json!([{"role": "user", "parts": [{"text": "hello"}]}]);
    let path = client.models("gemini/v1beta/models/demo:countTokens");
    assert_eq!(client.post(&path, &json!({"contents": contents})).await.1["totalTokens"], 6);
    let inner = json!({"generateContentRequest": {"model": "models/demo", "contents": contents}});
    assert_eq!(client.post(&path, &inner).await.1["totalTokens"], 6);
}

#[tokio::test]
async fn errors_say_whether_to_try_again() {
    let client = opened("models = [\"demo\"]", "").await;
    let send = async |text: &str, stream: bool| {
        let asked =
            json!({"model": "demo", "max_tokens": 9, "messages": user(text), "stream": stream});
        let path = client.models("anthropic/v1/messages");
        client.send(client.signed(Request::post(path, asked.to_string()))).await
    };
    for stream in [false, true] {
        let response = send("limited", stream).await;
        assert_eq!((response.status, response.header("retry-after")), (429, Some("7")));
        assert_eq!(read(response).await.1["error"]["type"], "rate_limit_error");
    }
    // What fails after its beginning says so at its end.
    let (status, body) = read(send("breaks", true).await).await;
    let body = body.as_str().unwrap().to_owned();
    assert_eq!(status, 200);
    assert!(body.contains(r#""text":"will""#) && body.contains("event: error"), "{body}");
    assert!(!body.contains("message_stop"), "{body}");
    for body in ["{", "[]", "{}", r#"{"messages": 7}"#, r#"{"model": "demo", "messages": []}"#] {
        let path = client.models("openai/v1/chat/completions");
        let response = client.send(client.signed(Request::post(path, body))).await;
        let (status, answer) = read(response).await;
        assert_eq!((status, &answer["error"]["type"]), (400, &json!("invalid_request_error")));
    }
    let path = client.models("gemini/v1beta/models/demo:explode");
    let (status, answer) = client.post(&path, &json!({})).await;
    assert_eq!((status, &answer["error"]["status"]), (404, &json!("NOT_FOUND")));
}

/// 1000 tokens in and 500 out are 0.006 dollars; a call is reserved with a little over 0.004.
#[tokio::test]
async fn the_budget_of_a_run_holds_for_its_programs() {
    let client = opened("models = [\"demo\"]", "budget = { run_usd = 0.01 }").await;
    let asked = json!({"model": "demo", "messages": user("hi")});
    let path = client.models("openai/v1/chat/completions");
    assert_eq!(client.post(&path, &asked).await.0, 200);
    let response = client.send(client.signed(Request::post(&path, asked.to_string()))).await;
    assert_eq!((response.status, response.header("x-should-retry")), (429, Some("false")));
    assert_eq!(read(response).await.1["error"]["code"], "insufficient_quota");
    let run = client.stage.api.ended_run(&client.run_id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert_eq!(run.error.unwrap().code, "budget_exceeded");
    assert_eq!(client.post(&path, &asked).await.0, 401, "its token ended with it");
    let shown = client.stage.api.get(&format!("/v1/runs/{}", client.run_id)).await;
    assert_eq!(shown["model_calls"]["calls"], 1, "{shown}");
    assert_eq!(shown["model_calls"]["cost_usd"], 0.006);
    // Reads are recorded in batches.
    let codes = wait_for("the records of both calls", PATIENCE, async || {
        let audit = client.stage.api.get("/v1/audit?limit=50").await;
        let calls = audit["items"].as_array().unwrap().iter();
        let calls = calls.filter(|call| call["method"] == "models.invoke");
        let codes: Vec<Value> = calls.map(|call| call["code"].clone()).collect();
        (codes.len() == 2).then_some(codes)
    })
    .await;
    assert_eq!(codes, ["runtime_error", "ok"], "newest first");
}
