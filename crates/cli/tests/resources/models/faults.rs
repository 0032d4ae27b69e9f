//! Providers that refuse, break off, fall silent, and runs that are cancelled meanwhile.

use super::server::{KEY, WIRES};
use super::{Server, agent, host, refusal, result, run, says, step};
use crate::stage::{PATIENCE, event, outcome};
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// A rule for each wire, because some of them apply only once.
fn script() -> String {
    let rules = WIRES.map(|(name, _)| {
        format!(
            r#"
[[rule]]
when.text = "limit {name}"
times = 1
answer = [{{ error = 429, message = "slow down", retry_after_s = 1 }}]
[[rule]]
when.text = "down {name}"
answer = [{{ error = 500, message = "oops", retry_after_s = 0 }}]
[[rule]]
when.text = "middle {name}"
answer = [{{ text = "so far" }}, {{ cut = true }}]
[[rule]]
when.text = "quiet {name}"
answer = [{{ text = "so far" }}, {{ silence = true }}]
"#
        )
    });
    rules.concat() + "[[rule]]\nanswer = \"fine\"\n"
}

/// The text that was streamed before the answer.
fn streamed(told: &Value) -> String {
    let items = told["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let deltas = items.iter().filter(|item| item["type"] == "text_delta");
    deltas.map(|item| item["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_has_begun_is_not() {
    let server = Server::start(&script());
    let names = WIRES.map(|(name, _)| name);
    let config = server.models("retries = 1\nidle_timeout_s = 1") + &agent("asker", &names, "");
    let stage = host(&[("key", KEY)], &config).await;
    let mut steps = Vec::new();
    for name in names {
        for kind in ["limit", "down", "middle", "quiet"] {
            let text = format!("{kind} {name}");
            steps.push(json!(["start_call", "models.stream", says(name, &text), text]));
        }
    }
    steps.extend([json!(["gate", "go"]), json!(["end"])]);
    let began = Instant::now();
    let run_id = stage.send(&event("asker", "c1", &Value::Array(steps).to_string())).await;
    for name in names {
        let limit = result(&stage, &format!("limit {name}")).await;
        assert_eq!(limit["segments"], json!([{"type": "text", "text": "fine"}]), "{name}");
        assert_eq!(streamed(&stage.told(&format!("limit {name}")).await), "fine", "{name}");
        assert!(began.elapsed() >= Duration::from_secs(1), "earlier than it was asked for");
        assert_eq!(server.requests(&format!("limit {name}")).len(), 2, "{name}");

        let down = refusal(&stage, &format!("down {name}")).await;
        assert_eq!((&down["code"], &down["retryable"]), (&json!("runtime_error"), &json!(true)));
        assert_eq!(down["details"]["status"], 500, "{name}: {down}");
        assert_eq!(server.requests(&format!("down {name}")).len(), 2, "{name}");

        for kind in ["middle", "quiet"] {
            let text = format!("{kind} {name}");
            let broken = refusal(&stage, &text).await;
            assert_eq!(broken["code"], "runtime_error", "{text}: {broken}");
            assert_eq!(broken["retryable"], true, "{text}: {broken}");
            assert_eq!(streamed(&stage.told(&text).await), "so far", "{text}");
            assert_eq!(server.requests(&text).len(), 1, "{text}");
            let message = format!("model `{name}`: the provider sent nothing for 1 s");
            let silent = broken["message"] == message.as_str();
            assert_eq!(silent, kind == "quiet", "{text}: {broken}");
        }
    }
    assert!(began.elapsed() < Duration::from_secs(20), "a silence of a second took too long");
    stage.pass("go");
    let played = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&played), (RunStatus::Completed, ""));
    assert_eq!(played.model_calls.unwrap().calls, 16);
}

#[tokio::test]
async fn a_model_that_fails_is_named_to_its_runner_and_its_place_to_the_operator() {
    let server = Server::start("[[rule]]\nanswer = [{ error = 401, message = \"wrong key\" }]");
    let models = server.models("retries = 0")
        + &server
            .model("vectors", "openai", "kind = \"embedding\"\nretries = 0")
            .replace(&server.url, "http://127.0.0.1:1");
    let config = models + &agent("asker", &["claude", "vectors"], "");
    let stage = host(&[("key", KEY)], &config).await;
    let embed = json!({"model_id": "vectors", "inputs": ["x"]});
    let steps = vec![
        step("models.invoke", says("claude", "x"), "chat"),
        step("models.embed", embed, "vectors"),
    ];
    let played = run(&stage, "asker", "c1", steps).await;
    let told = refusal(&stage, "chat").await["message"].as_str().unwrap().to_owned();
    assert!(told.starts_with("model `claude`: the provider returned 401: "), "{told}");
    let away = refusal(&stage, "vectors").await["message"].as_str().unwrap().to_owned();
    assert!(away.starts_with("model `vectors`: the provider cannot be reached: "), "{away}");
    assert!(!told.contains("127.0.0.1"), "{told}");
    let places = [
        format!("`claude` at {}: the provider returned 401: ", server.url),
        "`vectors` at http://127.0.0.1:1: the provider cannot be reached: ".to_owned(),
    ];
    let notes = stage.diagnostics(&played.run_id).await;
    assert_eq!(notes.len(), places.len());
    let (_, shown, _) = crate::programs::greenroom(
        &stage.host,
        &["runs", "show", &played.run_id, "--data", "data"],
    );
    for ((kind, message), place) in notes.iter().zip(&places) {
        assert_eq!(kind, "model_failed");
        assert!(message.starts_with(place.as_str()), "{message}");
        assert!(shown.contains(place.as_str()), "{shown}");
    }
    let log = stage.host.log();
    assert!(log.contains(&server.url) && log.contains("a model did not answer"), "{log}");
    for text in [&log, &shown, &told, &away] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_begin_is_given_up_in_time() {
    let server = Server::start("[[rule]]\nanswer = [{ silence = true }]");
    let config =
        server.models("retries = 0\nidle_timeout_s = 1") + &agent("asker", &["claude"], "");
    let stage = host(&[("key", KEY)], &config).await;
    let began = Instant::now();
    run(&stage, "asker", "c1", vec![step("models.invoke", says("claude", "x"), "mute")]).await;
    let told = refusal(&stage, "mute").await;
    assert_eq!((&told["code"], &told["retryable"]), (&json!("runtime_error"), &json!(true)));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_cancelled_run_hangs_up_on_its_provider_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let model = format!(
        "[models.slow]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://{}/v1\"\n\
         allow_private = true\napi_key = {{ file = \"key\" }}\n",
        listener.local_addr().unwrap()
    );
    let stage = host(&[("key", KEY)], &(model + &agent("asker", &["slow"], ""))).await;
    let steps = json!([step("models.stream", says("slow", "x"), "cut"), ["hang"]]).to_string();
    let run_id = stage.send(&event("asker", "c1", &steps)).await;
    let (connection, _) = listener.accept().await.unwrap();
    let mut connection = BufReader::new(connection);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let before = head.len();
        connection.read_line(&mut head).await.unwrap();
        if let Some(value) = head[before..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    assert!(head.contains(&format!("Bearer {KEY}")), "{head}");
    connection.read_exact(&mut vec![0; length]).await.unwrap();
    let piece = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"so far\"}}]}\n\n";
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{piece}\r\n",
        piece.len()
    );
    connection.write_all(answer.as_bytes()).await.unwrap();
    let heard = || stage.wire_log().iter().any(|line| line == "item text_delta");
    greenroom_testkit::wait::wait_for("the first words", PATIENCE, async || heard().then_some(()))
        .await;
    stage.cancel(&run_id).await;
    let began = Instant::now();
    let closed = connection.read(&mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    assert!(began.elapsed() < Duration::from_secs(5));
    let ended = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&ended), (RunStatus::Cancelled, "cancelled"));
}
