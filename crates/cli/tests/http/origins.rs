//! Pages of other sites, and names that someone points at this machine.

use crate::stage::{Stage, message};
use greenroom_testkit::http::Request;

const ALLOWED: &str = r#"
[server]
allowed_hosts = ["bots.example.com"]
allowed_origins = ["https://chat.example.com"]
"#;

/// The status of a read by the admin with these headers and no others.
pub(crate) async fn status_with(stage: &Stage, headers: &str) -> String {
    let admin = &stage.admin;
    let request = format!(
        "GET /v1/runs HTTP/1.1\r\n{headers}authorization: Bearer {admin}\r\nconnection: close\r\n\r\n"
    );
    let answer = stage.raw(request.as_bytes()).await;
    let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
    assert!(status == "200" || answer.contains("{\"error\":{\"code\":"), "{answer}");
    status
}

#[tokio::test]
async fn a_name_that_someone_else_points_here_is_refused() {
    let stage = Stage::with(ALLOWED).await;
    for (headers, status) in [
        ("host: localhost\r\n", "200"),
        ("host: 127.0.0.1:8700\r\n", "200"),
        ("host: [::1]:8700\r\n", "200"),
        ("host: bots.example.com\r\n", "200"),
        ("host: evil.example\r\n", "403"),
        ("host: localhost.evil.example:8700\r\n", "403"),
        ("host: \r\n", "403"),
        ("", "400"),
        ("host: localhost\r\nhost: evil.example\r\n", "400"),
        ("host: localhost\r\norigin: http://localhost\r\n", "200"),
        ("host: localhost\r\norigin: https://chat.example.com\r\n", "200"),
        ("host: localhost\r\norigin: https://evil.example\r\n", "403"),
        ("host: localhost\r\norigin: null\r\n", "403"),
        ("host: localhost:8700\r\norigin: http://localhost:9999\r\n", "403"),
    ] {
        assert_eq!(status_with(&stage, headers).await, status, "{headers}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_cannot_hand_events_in() {
    let stage = Stage::with(ALLOWED).await;
    let body = message("c", "hi").to_string();
    let request = Request::post("/v1/events", body).header("origin", "https://evil.example");
    stage.ask(request).await.refused(403, "unauthorized");
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn an_allowed_page_may_ask_first_and_read_the_answer() {
    let stage = Stage::with(ALLOWED).await;
    let page = "https://chat.example.com";
    let preflight = Request { method: "OPTIONS", ..Request::get("/v1/events") }
        .header("origin", page)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type");
    let reply = stage.ask_as(None, preflight.clone()).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    assert_eq!(reply.header("access-control-allow-origin"), Some(page));
    assert_eq!(reply.header("access-control-allow-methods"), Some("GET, POST"));
    assert!(reply.header("access-control-allow-headers").unwrap().contains("authorization"));
    let reply = stage.ask(Request::get("/v1/runs").header("origin", page)).await;
    assert_eq!(reply.header("access-control-allow-origin"), Some(page));
    assert_eq!(reply.header("vary"), Some("origin"));
    let refused = stage.ask_as(None, Request::get("/v1/runs").header("origin", page)).await;
    refused.refused(401, "unauthorized");
    assert_eq!(refused.header("access-control-allow-origin"), Some(page));
    let mut foreign = preflight;
    foreign.headers[0].1 = "https://evil.example".to_owned();
    let reply = stage.ask_as(None, foreign).await;
    reply.refused(403, "unauthorized");
    assert_eq!(reply.header("access-control-allow-origin"), None);
}
