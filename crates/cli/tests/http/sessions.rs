//! Sessions in a browser: how one begins, what it may, how it ends.

use crate::browser::{cookie, from_page, printed_code, read, sign_in, signed_in, write};
use crate::stage::{LIMITED, READER, RUNNER, SENDER, Stage, message};
use greenroom_testkit::http::{Request, Response, send, send_from};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

async fn status(stage: &Stage, request: Request) -> u16 {
    stage.ask_as(None, request).await.status
}

#[tokio::test]
async fn the_printed_code_signs_the_admin_in_once() {
    let stage = Stage::start().await;
    let code = printed_code(&stage);
    assert_eq!(code.len(), 32);
    let reply = sign_in(&stage, json!({"code": code})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let admin = json!({"name": "admin", "role": "admin", "answers": true});
    assert_eq!(reply.body, admin);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let (session, attributes) = cookie(&reply);
    assert_eq!(attributes, ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"]);
    let (name, secret) = session.split_once('=').unwrap();
    let suffix = name.strip_prefix("greenroom_session_").unwrap();
    assert!(suffix.len() == 8 && suffix.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
    assert!(secret.len() == 64 && secret.chars().all(|c| c.is_ascii_hexdigit()), "{secret}");
    let shown = stage.ask_as(None, read("/v1/session", &session)).await;
    assert_eq!((shown.status, shown.body), (200, admin));
    let again = sign_in(&stage, json!({"code": code})).await;
    let message = again.refused(401, "unauthorized");
    assert!(message.contains("`greenroom open`") && !message.contains(&code), "{message}");
    assert_eq!(again.header("set-cookie"), None);
}

#[tokio::test]
async fn two_hosts_of_one_machine_keep_their_cookies_apart() {
    let (mut one, other) = (Stage::start().await, Stage::start().await);
    let name = |cookie: &str| cookie.split_once('=').unwrap().0.to_owned();
    let (first, second) = (signed_in(&one, SENDER).await, signed_in(&other, SENDER).await);
    assert_ne!(name(&first), name(&second));
    let both = format!("{first}; {second}");
    assert_eq!(status(&one, read("/v1/session", &both)).await, 200);
    assert_eq!(status(&other, read("/v1/session", &both)).await, 200);
    one.host.kill();
    let again = one.restart().await;
    assert_eq!(name(&signed_in(&again, SENDER).await), name(&first), "the name stays");
    assert_eq!(status(&again, read("/v1/session", &first)).await, 401, "sessions do not");
}

#[tokio::test]
async fn a_session_may_what_its_token_may() {
    let stage = Stage::start().await;
    let agents = json!(["echo"]);
    let seen = |name: &str, role: &str, agents: Option<&Value>| {
        let mut view = json!({"name": format!("token:{name}"), "role": role, "answers": false});
        if let Some(agents) = agents {
            view["agents"] = agents.clone();
        }
        view
    };
    for (token, view, reads, sends) in [
        (SENDER, seen("sender", "sender", None), 403, 202),
        (LIMITED, seen("limited", "sender", Some(&agents)), 403, 404),
        (READER, seen("reader", "reader", None), 200, 403),
    ] {
        let session = signed_in(&stage, token).await;
        assert_eq!(stage.ask_as(None, read("/v1/session", &session)).await.body, view);
        assert_eq!(status(&stage, read("/v1/runs", &session)).await, reads, "{view}");
        let event = write("POST", "/v1/events", message("c", "hi").to_string(), &session);
        assert_eq!(status(&stage, from_page(&stage, event)).await, sends, "{view}");
        let by_token = stage.ask_as(Some(token), Request::get("/v1/session")).await;
        assert_eq!((by_token.status, by_token.body), (200, view));
    }
}

#[tokio::test]
async fn wrong_proofs_are_refused_and_run_out() {
    let stage = Stage::start().await;
    let code = printed_code(&stage);
    for body in ["", "{", "[]", "{}", "null", r#"{"code":5}"#, r#"{"secret-name-0123":"x"}"#] {
        let request = from_page(&stage, Request::post("/v1/session", body));
        let told = stage.ask_as(None, request).await.refused(400, "invalid_argument");
        assert!(!told.contains("0123"), "{told}");
    }
    let both = json!({"code": code, "token": stage.admin});
    sign_in(&stage, both).await.refused(400, "invalid_argument");
    let large = json!({"code": "x".repeat(10_000)});
    sign_in(&stage, large).await.refused(413, "payload_too_large");
    let wrong = [
        json!({"code": ""}),
        json!({"code": code.to_uppercase() + "0"}),
        json!({"code": stage.admin}),
        json!({"token": code}),
        json!({"token": ""}),
        json!({"token": RUNNER}),
    ];
    for proof in wrong {
        sign_in(&stage, proof).await.refused(401, "unauthorized");
    }
    let guess = || json!({"code": "0".repeat(32)});
    let refused = wait_for("tries to run out", PATIENCE, async || {
        let reply = sign_in(&stage, guess()).await;
        (reply.status == 429).then_some(reply)
    });
    let refused = refused.await;
    refused.refused(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("3"));
    // From elsewhere there are tries left.
    let elsewhere = Request::post("/v1/session", json!({"token": SENDER}).to_string());
    let elsewhere = from_page(&stage, elsewhere);
    let reply = send_from([127, 0, 0, 2].into(), stage.address, &elsewhere).await.unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    // A token in hand is no guess: it works as ever.
    assert_eq!(stage.get("/v1/session").await.status, 200);
    // From an address that anyone can claim there are no other tries.
    let claimed = Request::post("/v1/session", guess().to_string());
    let claimed = from_page(&stage, claimed).header("x-forwarded-for", "192.0.2.7");
    stage.ask_as(None, claimed).await.refused(429, "rate_limited");
    // Guesses neither use the code up nor keep its holder out, from the same address and at the same time.
    sign_in(&stage, guess()).await.refused(429, "rate_limited");
    assert_eq!(sign_in(&stage, json!({"code": code})).await.status, 200);
    assert_eq!(sign_in(&stage, json!({"token": stage.admin})).await.status, 200);
    sign_in(&stage, json!({"code": code})).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn codes_and_sessions_end_with_their_time() {
    let stage =
        Stage::with("[limits]\nsign_in_code_s = 1\nsession_s = 2\nsession_idle_s = 86_400").await;
    let made = stage.ask(Request::post("/v1/session/code", "{}")).await;
    assert_eq!((made.status, &made.body["expires_in_s"]), (200, &json!(1)));
    let since = Instant::now();
    let past = async || (since.elapsed() > Duration::from_secs(1)).then_some(());
    wait_for("the code's time to pass", PATIENCE, past).await;
    sign_in(&stage, json!({"code": made.body["code"]})).await.refused(401, "unauthorized");
    let reply = sign_in(&stage, json!({"token": SENDER})).await;
    let (session, attributes) = cookie(&reply);
    assert!(attributes.contains(&"Max-Age=2".to_owned()), "{attributes:?}");
    // Used all the time, and over all the same.
    let over = async || (status(&stage, read("/v1/session", &session)).await == 401).then_some(());
    wait_for("the session's end", PATIENCE, over).await;
}

#[tokio::test]
async fn only_an_admins_token_makes_codes() {
    let stage = Stage::start().await;
    let ask = || Request::post("/v1/session/code", "{}");
    for token in [SENDER, LIMITED, READER] {
        stage.ask_as(Some(token), ask()).await.refused(403, "unauthorized");
    }
    stage.ask_as(None, ask()).await.refused(401, "unauthorized");
    let admin = signed_in(&stage, &stage.admin).await;
    let by_session = from_page(&stage, ask().header("cookie", admin));
    stage.ask_as(None, by_session).await.refused(403, "unauthorized");
    let made = stage.ask(ask()).await;
    assert_eq!(sign_in(&stage, json!({"code": made.body["code"]})).await.status, 200);
}

#[tokio::test]
async fn signing_out_ends_the_session_and_no_other() {
    let stage = Stage::start().await;
    let (one, other) = (signed_in(&stage, SENDER).await, signed_in(&stage, SENDER).await);
    let out = from_page(&stage, write("DELETE", "/v1/session", String::new(), &one));
    let reply = stage.ask_as(None, out.clone()).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    let (forgotten, attributes) = cookie(&reply);
    assert_eq!(forgotten, format!("{}=", one.split_once('=').unwrap().0));
    assert!(attributes.contains(&"Max-Age=0".to_owned()), "{attributes:?}");
    assert_eq!(status(&stage, read("/v1/session", &one)).await, 401);
    assert_eq!(status(&stage, read("/v1/session", &other)).await, 200);
    stage.ask_as(None, out).await.refused(401, "unauthorized");
    let mut anew = Request::post("/v1/session", json!({"token": SENDER}).to_string());
    anew = from_page(&stage, anew.header("cookie", other.clone()));
    assert_eq!(status(&stage, anew).await, 200);
    assert_eq!(status(&stage, read("/v1/session", &other)).await, 401, "replaced, so over");
}

#[tokio::test]
async fn a_session_ends_with_its_token_for_good() {
    let stage = Stage::start().await;
    let (sender, reader) = (signed_in(&stage, SENDER).await, signed_in(&stage, READER).await);
    let replace = |token: &str| {
        std::fs::write(stage.host.folder().join("sender"), token).unwrap();
        // The file that refers to it has to change as well, or nobody looks.
        let file = stage.host.folder().join("greenroom.toml");
        let config = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{config}# {token}\n")).unwrap();
    };
    replace("another-token-0123456789abcdef");
    let ended = async || (status(&stage, read("/v1/session", &sender)).await == 401).then_some(());
    wait_for("the new token", PATIENCE, ended).await;
    assert_eq!(status(&stage, read("/v1/session", &reader)).await, 200);
    replace(SENDER);
    let back = async || {
        let reply = stage.ask_as(Some(SENDER), Request::get("/v1/session")).await;
        (reply.status == 200).then_some(())
    };
    wait_for("the old token", PATIENCE, back).await;
    assert_eq!(status(&stage, read("/v1/session", &sender)).await, 401);
}

#[tokio::test]
async fn a_stream_ends_with_the_session_or_the_token_that_opened_it() {
    let stage = Stage::start().await;
    let run_id = stage.play("c", "/hang").await;
    let target = format!("/v1/runs/{run_id}/results");
    let (own, other) = (signed_in(&stage, SENDER).await, signed_in(&stage, SENDER).await);
    let by_token = Request::get(&target).header("authorization", format!("Bearer {SENDER}"));
    let mut open = Vec::new();
    for request in [read(&target, &own), read(&target, &other), by_token] {
        let request = request.header("accept", "text/event-stream");
        let mut answer = send(stage.address, &request).await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.next_part().await.unwrap().is_some(), "it is open");
        open.push(answer);
    }
    let out = write("DELETE", "/v1/session", String::new(), &own);
    assert_eq!(status(&stage, from_page(&stage, out)).await, 204);
    ended(open.remove(0)).await;
    let file = stage.host.folder().join("greenroom.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let (before, _) = config.split_once("[tokens.sender]").unwrap();
    let (_, after) = config.split_once("[tokens.limited]").unwrap();
    std::fs::write(&file, format!("{before}[tokens.limited]{after}")).unwrap();
    for answer in open {
        ended(answer).await;
    }
    assert_eq!(stage.get(&format!("/v1/runs/{run_id}")).await.body["status"], "running");
}

async fn ended(mut answer: Response) {
    let rest = async { while answer.next_part().await.is_ok_and(|part| part.is_some()) {} };
    tokio::time::timeout(PATIENCE, rest).await.expect("the stream ends");
}

#[tokio::test]
async fn no_code_and_no_cookie_stands_in_the_log_behind_the_first_line() {
    let mut stage = Stage::start().await;
    let code = printed_code(&stage);
    let first = sign_in(&stage, json!({"code": code})).await;
    let session = cookie(&first).0;
    let made = stage.ask(Request::post("/v1/session/code", "{}")).await;
    let second = made.body["code"].as_str().unwrap().to_owned();
    for target in [format!("/v1/runs/{code}"), format!("/v1/runs?agent={second}")] {
        stage.ask_as(None, read(&target, &session)).await;
    }
    sign_in(&stage, json!({"code": second, "token": second})).await;
    stage.host.stop().await;
    let log = stage.host.log();
    assert_eq!(log.matches(&code).count(), 1, "{log}");
    assert!(!log.contains(&second), "{log}");
    assert!(!log.contains(session.split_once('=').unwrap().1), "{log}");
}

#[tokio::test]
async fn whoever_asks_whether_anyone_is_signed_in_gets_no_error() {
    let stage = Stage::start().await;
    let asked = "/v1/session?optional=true";
    let nobody = stage.ask_as(None, Request::get(asked)).await;
    assert_eq!((nobody.status, nobody.body), (204, json!("")));
    let stale = stage.ask_as(None, read(asked, "greenroom_session_00000000=x")).await;
    assert_eq!(stale.status, 204);
    let session = signed_in(&stage, READER).await;
    let known = stage.ask_as(None, read(asked, &session)).await;
    assert_eq!((known.status, &known.body["role"]), (200, &json!("reader")));
    // A token that is shown has to be right, and without the question nobody is nobody.
    stage.ask_as(Some("wrong"), Request::get(asked)).await.refused(401, "unauthorized");
    stage.ask_as(None, Request::get("/v1/session")).await.refused(401, "unauthorized");
    stage.get("/v1/session?optional=maybe").await.refused(400, "invalid_argument");
}
