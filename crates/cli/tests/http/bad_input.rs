//! Input that is not as it should be: the right status, the right code, the stable body, nothing stored.

use crate::stage::{Stage, message};
use greenroom_testkit::http::Request;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn bodies_that_are_no_events_are_refused_with_a_reason() {
    let stage = Stage::start().await;
    let endless = format!(r#"{{"event_type":"a","{}":1}}"#, "x".repeat(100_000));
    let long_id = json!({"event_type": "a", "event_id": "x".repeat(513)}).to_string();
    let cases: Vec<(&[u8], &str)> = vec![
        (b"", "EOF"),
        (b"{", "EOF"),
        (b"{}", "`event_type`"),
        (b"null", "object"),
        (b"[]", "object"),
        (b"\"text\"", "object"),
        (b"{\"event_type\":\"a\"} x", "trailing"),
        (b"{\"event_type\":\"a\"}{\"event_type\":\"a\"}", "trailing"),
        (b"{\"event_type\":1}", "string"),
        (b"{\"event_type\":null}", "string"),
        (b"{\"event_type\":\"a\",\"input\":[]}", "invalid type: sequence"),
        (b"{\"event_type\":\"a\",\"input\":\"hi\"}", "invalid type: string"),
        (b"{\"event_type\":\"a\",\"input\":{\"text\":7}}", "string"),
        (b"{\"event_type\":\"a\",\"data\":[]}", "map"),
        (b"{\"event_type\":\"a\",\"event_time\":\"now\"}", "integer"),
        (b"{\"event_type\":\"a\",\"event_time\":1e300}", "integer"),
        (b"{\"event_type\":\"a\",\"actor\":{}}", "actor_type"),
        (b"{\"event_type\":\"a\",\"conversation\":\"c\"}", "unknown field `conversation`"),
        (b"{\"event_type\":\"a\",\"delivery\":{\"url\":\"http://x\"}}", "unknown field `url`"),
        (b"{\"event_type\":\"a\",\"event_type\":\"b\"}", "duplicate field `event_type`"),
        (b"{\"event_type\":\"\"}", "`event_type` must have 1 to 512 bytes"),
        (b"{\"event_type\":\"a\\u0000b\"}", "control characters"),
        (b"{\"event_type\":\"a\\nb\"}", "control characters"),
        (b"{\"event_type\":\"a\",\"conversation_id\":\"\\u0007\"}", "`conversation_id`"),
        (b"{\"event_type\":\"a\",\"input\":{\"text\":\"\\ud800\"}}", "hex escape"),
        (b"{\"event_type\":\"a\",\"input\":{\"text\":\"\xff\"}}", "unicode"),
        (b"{\"event_type\":\"a\",\"input\":{\"text\":\"raw \x01\"}}", "control character"),
        (b"{\"event_type\":\"a\",\"source\":\"host\"}", "reserved for the host"),
        (b"{\"event_type\":\"a\",\"delivery\":{\"surface\":\"nowhere\"}}", "nowhere"),
        (b"event_type=a", "expected"),
        (endless.as_bytes(), "unknown field"),
        (long_id.as_bytes(), "`event_id` must have 1 to 512 bytes"),
    ];
    let mut misunderstood = Vec::new();
    for (body, reason) in cases {
        let message = stage.post(body).await.refused(400, "invalid_argument");
        if !message.contains(reason) {
            let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
            misunderstood.push((shown, reason, message));
        }
    }
    assert_eq!(misunderstood, []);
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn deep_nesting_is_refused_and_reasonable_nesting_is_kept() {
    let stage = Stage::start().await;
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"event_type":"a","data":{{"deep":{open}{close}}}}}"#)
    };
    for levels in [101, 1_000, 100_000] {
        let message = stage.post(nested(levels)).await.refused(400, "invalid_argument");
        assert!(message.contains("nested deeper"), "{message}");
    }
    stage.is_untouched_and_well().await;
    let reply = stage.post(nested(90)).await;
    let id = reply.body["event_id"].as_str().unwrap();
    let event = stage.get(&format!("/v1/events/{id}")).await;
    assert!(event.body["event"]["data"]["deep"].is_array(), "{event:?}");
}

#[tokio::test]
async fn an_event_of_an_unknown_type_is_kept_as_unbound() {
    let stage = Stage::start().await;
    let reply = stage.post(r#"{"event_type":"weather.changed","event_id":"w1"}"#).await;
    assert_eq!(reply.status, 202);
    assert_eq!(reply.body, json!({"event_id": "w1", "run_id": null, "status": "unbound"}));
    let event = stage.get("/v1/events/w1").await;
    assert_eq!((event.status, &event.body["run_id"]), (200, &json!(null)));
}

#[tokio::test]
async fn odd_but_valid_text_comes_back_as_it_went_in() {
    let stage = Stage::start().await;
    let text = "nul \u{0} bell \u{7} emoji 🦀 rtl \u{202e} 中文 \u{fffd}";
    let event = json!({"event_type": "a", "event_id": "odd 中/文", "data": {"text": text},
        "conversation_id": "c/1 ?#", "input": {"text": text}});
    assert_eq!(stage.post(event.to_string()).await.status, 202);
    let stored = stage.get("/v1/events/odd%20%E4%B8%AD%2F%E6%96%87").await;
    assert_eq!(stored.body["event"]["data"]["text"], text, "{stored:?}");
    let history = stage.get("/v1/conversations/c%2F1%20%3F%23/history").await;
    assert_eq!(history.body["items"].as_array().unwrap().len(), 1, "{history:?}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_even_while_it_is_being_sent() {
    let stage = Stage::with("[limits]\nevent_bytes = 1024").await;
    for size in [1025, 100_000, 8_000_000] {
        let reply = stage.post(vec![b' '; size]).await;
        let message = reply.refused(413, "payload_too_large");
        assert!(message.contains("1024 bytes"), "{message}");
    }
    let mut chunked = format!(
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         connection: close\r\ntransfer-encoding: chunked\r\n\r\n",
        stage.admin
    );
    for _ in 0..8 {
        chunked += &format!("400\r\n{}\r\n", " ".repeat(1024));
    }
    chunked += "0\r\n\r\n";
    let answer = stage.raw(chunked.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 413 ") && answer.contains("payload_too_large"),
        "{answer}"
    );
    let exact = message("c", "").to_string();
    let exact =
        exact.replace("\"text\":\"\"", &format!("\"text\":\"{}\"", "x".repeat(1024 - exact.len())));
    assert_eq!(exact.len(), 1024);
    stage.is_untouched_and_well().await;
    assert_eq!(stage.post(exact).await.status, 202);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_refused() {
    let stage = Stage::with("[limits]\nrequest_timeout_s = 1\nevent_bytes = 1024").await;
    let announced = [(100, "408", "deadline_exceeded"), (4096, "413", "payload_too_large")];
    for (bytes, status, code) in announced {
        let head = format!(
            "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-length: {bytes}\r\n\r\n{{\"event_",
            stage.admin
        );
        let answer = stage.raw(head.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(code),
            "{answer}"
        );
    }
    stage.is_untouched_and_well().await;
}

/// An upload that never stalls, but would take hours, has a deadline as a whole.
#[tokio::test]
async fn an_upload_that_dribbles_is_refused() {
    let stage = Stage::with("[limits]\nrequest_timeout_s = 2").await;
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-length: 100000\r\n\r\n",
        stage.admin
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let dribble = async {
        // The pace of the attack; the host decides when it is over.
        while writing.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let mut answer = vec![0; 12];
    let answered = async {
        tokio::select! {
            read = reading.read_exact(&mut answer) => read.map(drop).unwrap(),
            () = dribble => panic!("closed without an answer"),
        }
    };
    tokio::time::timeout(Duration::from_secs(20), answered).await.expect("no deadline");
    assert_eq!(answer, b"HTTP/1.1 408");
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn a_body_that_is_not_json_by_its_type_is_refused() {
    let stage = Stage::start().await;
    let body = message("c", "hi").to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", "json"]
    {
        let mut request = Request::post("/v1/events", body.clone());
        request.headers = vec![("content-type", kind.to_owned())];
        stage.ask(request).await.refused(415, "invalid_argument");
    }
    stage.is_untouched_and_well().await;
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let mut request = Request::post("/v1/events", body.clone());
        request.headers = vec![("content-type", kind.to_owned())];
        assert_eq!(stage.ask(request).await.status, 202, "{kind}");
    }
}

#[tokio::test]
async fn parameters_that_make_no_sense_are_refused() {
    let stage = Stage::start().await;
    let run = stage.play("c", "hi").await;
    let long = "x".repeat(1025);
    let cases = [
        "/v1/runs?limit=0".to_owned(),
        "/v1/runs?limit=201".to_owned(),
        "/v1/runs?limit=-1".to_owned(),
        "/v1/runs?limit=ten".to_owned(),
        "/v1/runs?limit=".to_owned(),
        "/v1/runs?limit=99999999999999999999".to_owned(),
        "/v1/runs?limit=1&limit=2".to_owned(),
        "/v1/runs?workspace_id=".to_owned(),
        format!("/v1/runs?workspace_id={}", "x".repeat(513)),
        "/v1/runs?status=done".to_owned(),
        "/v1/runs?cursor=AAAA".to_owned(),
        "/v1/runs?cursor=%00".to_owned(),
        "/v1/runs?page=2".to_owned(),
        format!("/v1/runs?agent={long}"),
        "/v1/events?run_id=x".to_owned(),
        "/v1/events?conversation_id=%0a".to_owned(),
        "/v1/conversations?cursor=%F0%9F%A6%80".to_owned(),
        "/v1/conversations/c/history?direction=up".to_owned(),
        format!("/v1/runs/{run}/results?after=-1"),
        format!("/v1/runs/{run}/results?after=1.5"),
        format!("/v1/runs/{run}/results?after=9223372036854775808"),
        format!("/v1/runs/{run}?verbose=1"),
        "/v1/runners?x".to_owned(),
        "/v1/agents?x=".to_owned(),
        "/metrics?x=1".to_owned(),
    ];
    for target in cases {
        stage.get(&target).await.refused(400, "invalid_argument");
    }
    for last in ["x", "-1", "1.0", "", "9223372036854775808"] {
        let request = Request::get(format!("/v1/runs/{run}/results"))
            .header("accept", "text/event-stream")
            .header("last-event-id", last);
        stage.ask(request).await.refused(400, "invalid_argument");
    }
    let mut request = Request::post("/v1/events?dry_run=1", message("c", "x").to_string());
    request.headers.clear();
    stage.ask(request).await.refused(400, "invalid_argument");
    assert_eq!(stage.api().runs().await.len(), 1);
}

#[tokio::test]
async fn addresses_that_lead_nowhere_are_refused() {
    let stage = Stage::start().await;
    let unknown = [
        "/v1",
        "/v1/",
        "/v2/runs",
        "/v1/runs/",
        "/v1/runs/none",
        "/v1/runs/none/results",
        "/v1/runs/../events/none",
        "/v1/runs/%2e%2e",
        "/v1/runs/..%2Fevents",
        "/v1/events/none",
        "/v1/conversations/none/history",
        "//v1/runs",
        "/v1/Runs",
        "/v1/runs/none/",
        "/v1/runs/%F0%9F%A6%80",
        "/v1/runs/x'%20OR%201=1--",
        "/etc/passwd",
        "/v1/runs;x=1",
    ];
    for target in unknown {
        stage.get(target).await.refused(404, "not_found");
    }
    let senseless = [
        "/v1/runs/%ff".to_owned(),
        "/v1/runs/a%00b".to_owned(),
        "/v1/events/%0d%0aset-cookie:x".to_owned(),
        format!("/v1/events/{}", "x".repeat(513)),
        format!("/v1/runs/{}/results", "x".repeat(20_000)),
        "/v1/conversations/%c3%28/history".to_owned(),
    ];
    for target in senseless {
        stage.get(&target).await.refused(400, "invalid_argument");
    }
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn methods_that_an_address_does_not_take_are_refused() {
    let stage = Stage::start().await;
    for (method, target, allowed) in [
        ("DELETE", "/v1/events", "POST,GET,HEAD"),
        ("PUT", "/v1/runs", "GET,HEAD"),
        ("OPTIONS", "/v1/runs", "GET,HEAD"),
        ("GET", "/v1/runs/x/cancel", "POST"),
        ("POST", "/healthz", "GET,HEAD"),
        ("BREW", "/v1/agents", "GET,HEAD"),
    ] {
        let request = Request { method, ..Request::get(target) };
        let reply = stage.ask(request).await;
        reply.refused(405, "invalid_argument");
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {target}");
    }
    let head = stage.ask(Request { method: "HEAD", ..Request::get("/v1/runs") }).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")));
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn an_unknown_agent_is_not_found_and_nothing_is_stored() {
    let stage = Stage::start().await;
    let mut event = message("c", "hi");
    event["agent"] = "nobody".into();
    stage.post(event.to_string()).await.refused(404, "not_found");
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn a_request_keeps_its_id_if_it_is_a_sane_one() {
    let stage = Stage::start().await;
    let own = stage.ask(Request::get("/healthz").header("x-request-id", "mine-1")).await;
    assert_eq!(own.header("x-request-id"), Some("mine-1"));
    let long = "x".repeat(129);
    let replaced = stage.ask(Request::get("/healthz").header("x-request-id", long.clone())).await;
    let id = replaced.header("x-request-id").unwrap();
    assert!(id != long && !id.is_empty(), "{id}");
}
