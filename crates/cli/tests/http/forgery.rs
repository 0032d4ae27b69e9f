//! What other pages can do with somebody's session: nothing.

use crate::browser::{printed_code, read, sign_in, signed_in, write};
use crate::stage::{RUNNER, Stage, message};
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

const ALLOWED: &str = "[server]\nallowed_origins = [\"https://chat.example.com\"]\n";

/// Headers, and what a read and a write with them get.
type Row = (Vec<(&'static str, String)>, u16, u16);

fn rows(stage: &Stage) -> Vec<Row> {
    let own = || ("origin", format!("http://{}", stage.address));
    let origin = |text: &str| ("origin", text.to_owned());
    let site = |text: &str| ("sec-fetch-site", text.to_owned());
    let marked = || ("x-greenroom", "1".to_owned());
    let other_port = format!("http://127.0.0.1:{}", stage.address.port() ^ 1);
    let by_name = format!("http://localhost:{}", stage.address.port());
    vec![
        (vec![own(), marked()], 200, 202),
        (vec![site("same-origin"), marked()], 200, 202),
        (vec![own(), site("same-origin"), marked()], 200, 202),
        (vec![], 200, 403),
        (vec![marked()], 200, 403),
        (vec![own()], 200, 403),
        (vec![site("same-origin")], 200, 403),
        (vec![own(), ("x-greenroom", "yes".to_owned())], 200, 403),
        (vec![site("none")], 200, 403),
        (vec![site("none"), marked()], 200, 403),
        (vec![site("same-site"), marked()], 403, 403),
        (vec![site("same-site"), own(), marked()], 403, 403),
        (vec![site("cross-site")], 403, 403),
        (vec![site("cross-site"), own(), marked()], 403, 403),
        (vec![origin(&other_port), marked()], 403, 403),
        (vec![origin(&by_name), marked()], 403, 403),
        (vec![origin("https://evil.example"), marked()], 403, 403),
        (vec![origin("null"), marked()], 403, 403),
        // It may come with a token, never with somebody's session.
        (vec![origin("https://chat.example.com"), marked()], 403, 403),
    ]
}

fn with(mut request: Request, headers: &[(&'static str, String)]) -> Request {
    request.headers.extend(headers.iter().cloned());
    request
}

#[tokio::test]
async fn a_session_counts_from_the_hosts_own_pages_alone() {
    let stage = Stage::with(ALLOWED).await;
    let session = signed_in(&stage, &stage.admin).await;
    let mut sent = 0;
    for (headers, reads, writes) in rows(&stage) {
        for target in ["/v1/runs", "/v1/session", "/metrics"] {
            let reply = stage.ask_as(None, with(read(target, &session), &headers)).await;
            assert_eq!(reply.status, reads, "{target} with {headers:?}: {reply:?}");
        }
        let event = write("POST", "/v1/events", message("c", "hi").to_string(), &session);
        let reply = stage.ask_as(None, with(event, &headers)).await;
        assert_eq!(reply.status, writes, "a write with {headers:?}: {reply:?}");
        if writes == 403 {
            reply.refused(403, "unauthorized");
        } else {
            sent += 1;
        }
    }
    let events = stage.api().events().await;
    let events: Vec<_> = events.iter().filter(|it| it["source"] == "api").collect();
    assert_eq!(events.len(), sent);
    // The door that an event came through, which no body can change.
    assert!(events.iter().all(|it| it["trigger"] == "webui"), "{events:?}");
}

#[tokio::test]
async fn streams_are_not_opened_for_other_pages() {
    let stage = Stage::start().await;
    let run_id = stage.play("c", "hi").await;
    stage.api().ended_run(&run_id).await;
    let session = signed_in(&stage, &stage.admin).await;
    let follow =
        read(&format!("/v1/runs/{run_id}/results"), &session).header("accept", "text/event-stream");
    for (site, status) in [("same-origin", 200), ("same-site", 403), ("cross-site", 403)] {
        let reply = stage.ask_as(None, follow.clone().header("sec-fetch-site", site)).await;
        assert_eq!(reply.status, status, "{site}");
    }
}

#[tokio::test]
async fn other_pages_cannot_sign_anyone_in_or_out() {
    let stage = Stage::with(ALLOWED).await;
    let (session, code) = (signed_in(&stage, &stage.admin).await, printed_code(&stage));
    for (headers, _, writes) in rows(&stage) {
        if writes != 403 {
            continue;
        }
        let out = write("DELETE", "/v1/session", String::new(), &session);
        let into = Request::post("/v1/session", json!({"code": code}).to_string());
        for request in [out, into] {
            let reply = stage.ask_as(None, with(request, &headers)).await;
            reply.refused(403, "unauthorized");
            assert_eq!(reply.header("set-cookie"), None, "{headers:?}");
        }
    }
    assert_eq!(stage.ask_as(None, read("/v1/session", &session)).await.status, 200);
    assert_eq!(sign_in(&stage, json!({"code": code})).await.status, 200);
}

#[tokio::test]
async fn a_token_stands_over_a_session() {
    let stage = Stage::start().await;
    let session = signed_in(&stage, &stage.admin).await;
    let request = || read("/v1/session", &session);
    stage.ask_as(Some("wrong"), request()).await.refused(401, "unauthorized");
    let odd = request().header("authorization", "Basic xyz");
    stage.ask_as(None, odd).await.refused(401, "unauthorized");
    // A token is no cookie: it counts wherever it comes from, as ever.
    let admin = stage.admin.clone();
    let event = Request::post("/v1/events", message("c", "hi").to_string())
        .header("cookie", session.clone())
        .header("sec-fetch-site", "cross-site");
    assert_eq!(stage.ask_as(Some(&admin), event).await.status, 202);
}

#[tokio::test]
async fn cookies_that_somebody_adds_change_nothing() {
    let stage = Stage::start().await;
    let session = signed_in(&stage, &stage.admin).await;
    let (name, secret) = session.split_once('=').unwrap();
    let ask =
        async |cookies: String| stage.ask_as(None, read("/v1/session", &cookies)).await.status;
    let junk = format!("{name}=junk");
    assert_eq!(ask(format!("{junk}; {session}; other=1")).await, 200);
    let second = signed_in(&stage, crate::stage::READER).await;
    assert_eq!(ask(format!("{session}; {second}")).await, 401, "nobody can tell which is meant");
    for wrong in [
        junk,
        format!("{name}="),
        format!("{name}={}", &secret[1..]),
        format!("{name}={}", secret.to_uppercase()),
        format!("greenroom_session={secret}"),
        format!("{name}={}", stage.admin),
    ] {
        assert_eq!(ask(wrong.clone()).await, 401, "{wrong}");
    }
}

#[tokio::test]
async fn a_session_does_not_open_the_runners_door() {
    let stage = Stage::start().await;
    let session = signed_in(&stage, &stage.admin).await;
    let upgrade = |request: Request| {
        request
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("sec-fetch-site", "same-origin")
    };
    let door = upgrade(read("/v1/runners/connect", &session));
    stage.ask_as(None, door).await.refused(401, "unauthorized");
    let name = session.split_once('=').unwrap().0;
    let door = upgrade(read("/v1/runners/connect", &format!("{name}={RUNNER}")));
    stage.ask_as(None, door).await.refused(401, "unauthorized");
    assert_eq!(stage.api().events().await, [Value::Null; 0]);
}
