//! Who may do what: every role on every route, and tokens that are kept from view.

use crate::stage::{LIMITED, READER, RUNNER, SENDER, Stage, message};
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

/// What a role gets from a request.
type Row = (&'static str, String, [u16; 4]);

/// Roles in the order of the table.
const ROLES: [&str; 4] = ["admin", "sender", "limited", "reader"];

/// `{game}` and `{echo}` are ended runs of those agents; `limited` may reach `echo` only.
fn table(game: &str, echo: &str) -> Vec<Row> {
    let reads = [
        "/metrics",
        "/v1/events",
        "/v1/runs",
        "/v1/approvals",
        "/v1/runners",
        "/v1/agents",
        "/v1/audit",
    ];
    let reads = reads.map(|target| ("GET", target.to_owned(), [200, 403, 403, 200]));
    // A sender reads its own conversations; those of others are not there.
    let own = [
        ("GET", "/v1/conversations".to_owned(), [200; 4]),
        ("GET", "/v1/search?q=hi".to_owned(), [200; 4]),
        ("GET", "/v1/runs?conversation_id=c-game".to_owned(), [200; 4]),
        ("GET", "/v1/conversations/c-game/history".to_owned(), [200, 404, 404, 200]),
        ("GET", "/v1/events/e-game".to_owned(), [200, 404, 404, 200]),
    ];
    let open = ["/healthz", "/readyz", "/openapi.json"];
    let open = open.map(|target| ("GET", target.to_owned(), [200; 4]));
    let of_runs = [
        ("GET", format!("/v1/runs/{game}"), [200, 200, 404, 200]),
        // Of an agent that the limited token may reach, but in a conversation of another sender.
        ("GET", format!("/v1/runs/{echo}"), [200, 200, 404, 200]),
        ("GET", format!("/v1/runs/{game}/results"), [200, 200, 404, 200]),
        ("GET", format!("/v1/runs/{echo}/results"), [200, 200, 404, 200]),
        ("POST", format!("/v1/runs/{game}/cancel"), [200, 200, 404, 403]),
        ("POST", format!("/v1/runs/{echo}/cancel"), [200, 200, 404, 403]),
        ("GET", "/v1/approvals/none".to_owned(), [404, 403, 403, 404]),
        // Only a runner's own token opens this door.
        ("GET", "/v1/runners/connect".to_owned(), [401; 4]),
    ];
    reads.into_iter().chain(own).chain(open).chain(of_runs).collect()
}

async fn run_of(stage: &Stage, agent: &str) -> String {
    let mut event = message(&format!("c-{agent}"), "hi");
    event["agent"] = agent.into();
    event["event_id"] = format!("e-{agent}").into();
    let reply = stage.post(event.to_string()).await;
    let run_id = reply.body["run_id"].as_str().unwrap().to_owned();
    stage.api().ended_run(&run_id).await;
    run_id
}

#[tokio::test]
async fn every_role_may_do_what_its_role_says_and_nothing_else() {
    let stage = Stage::start().await;
    let (game, echo) = (run_of(&stage, "game").await, run_of(&stage, "echo").await);
    let tokens = [&stage.admin, SENDER, LIMITED, READER];
    for (method, target, statuses) in table(&game, &echo) {
        for ((token, role), status) in tokens.iter().zip(ROLES).zip(statuses) {
            let request = Request { method, ..Request::get(&target) };
            let reply = stage.ask_as(Some(token), request).await;
            assert_eq!(reply.status, status, "{role}: {method} {target}: {reply:?}");
            match status {
                200 => {}
                404 => drop(reply.refused(404, "not_found")),
                _ => drop(reply.refused(status, "unauthorized")),
            }
        }
    }
}

#[tokio::test]
async fn a_repeated_event_does_not_tell_of_a_run_out_of_reach() {
    let stage = Stage::start().await;
    run_of(&stage, "game").await;
    let mut event = message("c-game", "hi");
    event["agent"] = "game".into();
    event["event_id"] = "e-game".into();
    for accept in ["application/json", "text/event-stream"] {
        let request = Request::post("/v1/events", event.to_string()).header("accept", accept);
        let reply = stage.ask_as(Some(LIMITED), request).await;
        reply.refused(404, "not_found");
    }
    let reply = stage.ask_as(Some(SENDER), Request::post("/v1/events", event.to_string())).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn every_role_may_send_what_its_role_says_and_nothing_else() {
    let stage = Stage::start().await;
    let tokens = [&stage.admin, SENDER, LIMITED, READER];
    let send = |agent: Option<&str>| {
        let mut event = message("c", "hi");
        event["agent"] = json!(agent);
        Request::post("/v1/events", event.to_string())
    };
    // Agent `game` does not exist for a token that may not reach it; `assistant` takes what names none.
    for (agent, statuses) in [
        (Some("game"), [202, 202, 404, 403]),
        (Some("echo"), [202, 202, 202, 403]),
        (Some("nobody"), [404, 404, 404, 403]),
        (None, [202, 202, 403, 403]),
    ] {
        for ((token, role), status) in tokens.iter().zip(ROLES).zip(statuses) {
            let reply = stage.ask_as(Some(token), send(agent)).await;
            assert_eq!(reply.status, status, "{role} to {agent:?}: {reply:?}");
        }
    }
    assert_eq!(stage.api().events().await.len(), 7, "refused events are not stored");
}

#[tokio::test]
async fn a_token_that_is_missing_wrong_or_misspelt_opens_nothing() {
    let stage = Stage::start().await;
    let admin = &stage.admin;
    let wrong: Vec<String> = vec![
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer wrong".to_owned(),
        format!("Basic {admin}"),
        format!("bearer{admin}"),
        admin.clone(),
        format!("Bearer {admin}x"),
        format!("Bearer {}", &admin[..admin.len() - 1]),
        format!("Bearer {}", admin.to_uppercase()),
        format!("Bearer {admin} {admin}"),
        format!("Bearer {RUNNER}"),
        format!("Bearer {}", "x".repeat(10_000)),
    ];
    for value in wrong {
        for request in [Request::get("/v1/runs"), Request::post("/v1/events", "{}")] {
            let reply = stage.ask_as(None, request.header("authorization", value.clone())).await;
            reply.refused(401, "unauthorized");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
    }
    let reply = stage.ask_as(None, Request::get("/v1/runs")).await;
    reply.refused(401, "unauthorized");
    let lower = Request::get("/v1/runs").header("authorization", format!("bearer {admin}"));
    assert_eq!(stage.ask_as(None, lower).await.status, 200, "the scheme's case does not matter");
    stage.is_untouched_and_well().await;
}

#[tokio::test]
async fn a_run_that_a_sender_may_not_see_looks_like_one_that_does_not_exist() {
    let stage = Stage::start().await;
    let game = run_of(&stage, "game").await;
    let hidden = stage.ask_as(Some(LIMITED), Request::get(format!("/v1/runs/{game}"))).await;
    let missing = stage.ask_as(Some(LIMITED), Request::get("/v1/runs/none")).await;
    assert_eq!((hidden.status, hidden.body), (missing.status, missing.body));
    let stream =
        Request::get(format!("/v1/runs/{game}/results")).header("accept", "text/event-stream");
    stage.ask_as(Some(LIMITED), stream).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_runners_token_opens_the_runners_door_only() {
    let stage = Stage::start().await;
    let plain = Request::get("/v1/runners/connect");
    stage.ask_as(Some(RUNNER), plain).await.refused(426, "invalid_argument");
    stage.ask_as(Some(RUNNER), Request::get("/v1/runs")).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn another_workspace_shows_nothing_of_this_one() {
    let stage = Stage::start().await;
    let game = run_of(&stage, "game").await;
    for target in [
        format!("/v1/runs/{game}?workspace_id=other"),
        format!("/v1/runs/{game}/results?workspace_id=other"),
        "/v1/events/e-game?workspace_id=other".to_owned(),
        "/v1/conversations/c-game/history?workspace_id=other".to_owned(),
    ] {
        stage.get(&target).await.refused(404, "not_found");
    }
    for target in ["/v1/runs", "/v1/events", "/v1/conversations"] {
        let page = stage.get(&format!("{target}?workspace_id=other")).await;
        assert_eq!(page.body, json!({"items": [], "next_cursor": null, "has_more": false}));
    }
}

#[tokio::test]
async fn no_token_stands_in_a_log_an_answer_or_the_database() {
    let mut stage = Stage::start().await;
    for token in [&stage.admin, SENDER, LIMITED, READER, RUNNER, "guess-0123456789abcdef"] {
        for request in [
            Request::get("/v1/agents"),
            Request::get(format!("/v1/runs/{token}")),
            Request::get(format!("/v1/runs?agent={token}")),
            Request::post("/v1/events", "{"),
        ] {
            let reply = stage.ask_as(Some(token), request).await;
            let shown = format!("{} {:?}", reply.body, reply.headers);
            assert!(!shown.contains(token), "{shown}");
        }
    }
    assert_eq!(stage.get("/v1/agents").await.status, 200);
    stage.host.stop().await;
    let database = std::fs::read(stage.host.data().join("greenroom.db")).unwrap();
    let log = stage.host.log();
    for token in [&stage.admin, SENDER, LIMITED, READER, RUNNER] {
        assert!(!log.contains(token), "{log}");
        assert!(!database.windows(token.len()).any(|part| part == token.as_bytes()));
    }
}

#[tokio::test]
async fn everything_that_is_described_asks_for_a_token_unless_it_says_otherwise() {
    let stage = Stage::start().await;
    let document = stage.ask_as(None, Request::get("/openapi.json")).await.body;
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is_open = operation["security"] == json!([]);
            let method = match method.as_str() {
                "get" => "GET",
                "delete" => "DELETE",
                _ => "POST",
            };
            let request = Request { method, ..Request::get(path.replace("{id}", "x")) };
            let reply = stage.ask_as(None, request).await;
            let status = match (is_open, method) {
                // The address is the permission, and this is none.
                (true, _) if path.starts_with("/v1/files/") => 404,
                // The state in the query is the permission.
                (true, _) if path == "/oauth/callback" => 400,
                (true, "GET") => 200,
                // Signing in is open to everyone, from a page of the host's own.
                (true, _) => 403,
                (false, _) => 401,
            };
            assert_eq!(reply.status, status, "{method} {path}");
            asked += 1;
        }
    }
    assert!(asked >= 16, "{asked}: {:?}", document["paths"].as_object().map(|it| it.len()));
    assert_eq!(stage.api().events().await, [Value::Null; 0]);
}
