//! Who is let in: the token of the run in the path, while that run is active, and nobody else.

use crate::PROGRAM;
use crate::client::{Client, agent, open, open_with, read, start};
use crate::stage::{Stage, config, event, runners};
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const MODEL: &str = "[models.demo]\nprovider = \"scripted\"\n";

fn message() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string()
}

fn prompt() -> String {
    json!({"model": "demo", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
        .to_string()
}

/// A path of each gateway, with a body that is valid there.
fn doors(client: &Client) -> [(String, String); 3] {
    [
        (client.mcp(), message()),
        (client.models("openai/v1/chat/completions"), prompt()),
        (client.models("anthropic/v1/messages"), prompt()),
    ]
}

async fn status(client: &Client, path: &str, body: &str, header: (&'static str, String)) -> u16 {
    let request = Request::post(path, body).header(header.0, header.1);
    client.send(request).await.status
}

fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}

#[tokio::test]
async fn the_token_of_the_run_opens_its_gateways_until_the_run_ends() {
    let client = open(&[], &format!("{MODEL}{}", agent("models = [\"demo\"]", ""))).await;
    let (_, other) = start(&client.stage, "c2", "second").await;
    for (path, body) in doors(&client) {
        let token = &client.token;
        assert_eq!(status(&client, &path, &body, bearer(token)).await, 200, "{path}");
        for header in ["x-api-key", "x-goog-api-key"] {
            let signed = (header, token.clone());
            assert_eq!(status(&client, &path, &body, signed).await, 200, "{path} {header}");
        }
        let wrong = format!("{}0", &token[..token.len() - 1]);
        let admin = std::fs::read_to_string(client.stage.host.data().join("admin-token")).unwrap();
        for token in [wrong.as_str(), other.as_str(), admin.trim(), "", "grt_"] {
            assert_eq!(status(&client, &path, &body, bearer(token)).await, 401, "{path}");
        }
        let in_address = format!("{path}?key={token}");
        assert_eq!(status(&client, &in_address, &body, bearer(token)).await, 401, "{path}");
        assert_eq!(client.send(Request::post(&in_address, body)).await.status, 401);
    }
    client.finish().await;
    for (path, body) in doors(&client) {
        assert_eq!(status(&client, &path, &body, bearer(&client.token)).await, 401, "{path}");
    }
    let log = client.stage.host.log();
    assert!(!log.contains(&client.token) && !log.contains(&other), "a token is in the log");
    client.stage.pass("second.go");
}

#[tokio::test]
async fn a_refusal_has_the_shape_that_the_clients_of_the_wire_read() {
    let client = open(&[], &agent("", "")).await;
    let refused = async |path: &str| {
        let request = Request::post(client.models(path), prompt());
        let response = client.send(request).await;
        assert_eq!(response.header("www-authenticate"), Some("Bearer"), "{path}");
        read(response).await
    };
    let (status, openai) = refused("openai/v1/responses").await;
    assert_eq!((status, &openai["error"]["code"]), (401, &json!("invalid_api_key")));
    assert_eq!(openai["error"]["type"], "authentication_error");
    let (status, anthropic) = refused("anthropic/v1/messages").await;
    assert_eq!((status, &anthropic["type"]), (401, &json!("error")));
    assert_eq!(anthropic["error"]["type"], "authentication_error");
    let (status, gemini) = refused("gemini/v1beta/models/m:generateContent").await;
    assert_eq!((status, &gemini["error"]["code"]), (401, &json!(401)));
    assert_eq!(gemini["error"]["status"], "UNAUTHENTICATED");
}

#[tokio::test]
async fn a_token_does_not_outlive_the_process_that_gave_it_out() {
    let mut client = open(&[], &agent("", "")).await;
    client.stage.host.kill();
    client.stage.host.start_again().await;
    let file = std::fs::read_to_string(client.stage.host.data().join("host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let request = client.signed(Request::post(client.mcp(), message()));
    let address = file["address"].as_str().unwrap().parse().unwrap();
    let response = greenroom_testkit::http::send(address, &request).await.unwrap();
    assert_eq!(response.status, 401);
}

#[tokio::test]
async fn large_and_slow_bodies_are_refused() {
    let limits = "cancel_grace_s = 1\ncall_bytes = 2000\nrequest_timeout_s = 1";
    let client =
        open_with(limits, &[], &format!("{MODEL}{}", agent("models = [\"demo\"]", ""))).await;
    let large = json!({"model": "demo", "max_tokens": 9,
        "messages": [{"role": "user", "content": "x".repeat(3000)}]});
    let (status, error) = client.post(&client.models("anthropic/v1/messages"), &large).await;
    assert_eq!((status, &error["error"]["type"]), (413, &json!("request_too_large")));
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "x".repeat(3000)}});
    assert_eq!(client.post(&client.mcp(), &call).await.0, 413);
    // Half a body, and then nothing.
    let address = client.address();
    let (path, token) = (client.mcp(), client.token.clone());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-length: 100\r\n\r\n{{\"jsonrpc\""
    );
    let answer = tokio::task::spawn_blocking(move || {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        connection.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        connection.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    });
    assert_eq!(answer.await.unwrap(), "HTTP/1.1 408");
}

#[tokio::test]
async fn the_page_of_another_site_reaches_no_gateway() {
    let client = open(&[], &agent("", "")).await;
    let request = Request::post(client.mcp(), message()).header("origin", "https://evil.example");
    assert_eq!(client.send(client.signed(request)).await.status, 403);
    let request = Request::post(client.models("openai/v1/responses"), prompt());
    let request = request.header("origin", "https://evil.example");
    assert_eq!(client.send(client.signed(request)).await.status, 403);
}

/// A runner with only the host in its network asks both gateways.
async fn ask_from_inside(host: TestHost) {
    let stage = Stage::with(host).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let prompt: Value = serde_json::from_str(&prompt()).unwrap();
    let steps = json!([
        ["fetch", "/mcp/runs/RUN", list, "tools"],
        ["fetch", "/models/runs/RUN/anthropic/v1/messages", prompt, "answer"],
        ["fetch", "/v1/events", {}, "events"],
        ["end"]
    ]);
    let run_id = stage.send(&event("walled", "c1", &steps.to_string())).await;
    stage.api.ended_run(&run_id).await;
    let told = |name: &str| -> Value {
        let file = stage.host.folder().join("other").join(name);
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    };
    let tools = told("tools");
    let first = &tools[1]["result"]["tools"][0]["name"];
    assert_eq!((&tools[0], first), (&json!(200), &json!("history_page")), "{tools}");
    let answer = told("answer");
    assert_eq!((&answer[0], &answer[1]["type"]), (&json!(200), &json!("message")), "{answer}");
    assert_eq!(told("events")[0], 0, "the token opens nothing else");
}

fn walled() -> String {
    let script = runners().join("puppet.py");
    let walled = format!(
        "{MODEL}[runners.walled]\ncommand = [\"python3\", \"{}\"]\ndir = \"other\"\n\
         network = false\nenv = {{ NAME = \"walled\" }}\n[agents.walled]\n\
         runner = \"plugin:test/walled/main\"\nevents = []\ngrant = {{ models = [\"demo\"] }}\n",
        script.display()
    );
    config("cancel_grace_s = 1", &walled)
}

#[tokio::test]
async fn a_runner_without_network_reaches_its_gateways() {
    ask_from_inside(TestHost::prepare(PROGRAM, &walled())).await;
}
