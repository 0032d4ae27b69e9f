//! Behind a proxy: who is believed, what browsers are told, and a path that others share.

use crate::browser::{cookie, from_page, printed_code, read};
use crate::origins::status_with;
use crate::stage::{Reply, Stage, message};
use greenroom_testkit::http::{Request, send_from};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const TRUSTING: &str =
    "[server]\ntrusted_proxies = [\"127.0.0.1\"]\nallowed_hosts = [\"bots.example.com\"]\n";
const UNDER: &str = "[server]\nbase_path = \"/tools/greenroom\"\n";

/// Signing in as a proxy passes it on.
fn forwarded(token: &str, client: &str) -> Request {
    Request::post("/v1/session", json!({"token": token}).to_string())
        .header("x-forwarded-host", "bots.example.com")
        .header("x-forwarded-proto", "https")
        .header("x-forwarded-for", client)
        .header("origin", "https://bots.example.com")
        .header("x-greenroom", "1")
}

async fn asked(stage: &Stage, request: Request) -> Reply {
    stage.ask_as(None, request).await
}

#[tokio::test]
async fn behind_a_trusted_proxy_with_tls_cookies_are_secure() {
    let stage = Stage::with(TRUSTING).await;
    let reply = asked(&stage, forwarded(&stage.admin, "203.0.113.1")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let (session, attributes) = cookie(&reply);
    let expected = ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800", "Secure"];
    assert_eq!(attributes, expected);
    let page = |request: Request| {
        request
            .header("cookie", session.clone())
            .header("x-forwarded-host", "bots.example.com")
            .header("x-forwarded-proto", "https")
    };
    assert_eq!(asked(&stage, page(Request::get("/v1/session"))).await.status, 200);
    let write = page(Request { method: "DELETE", ..Request::get("/v1/session") })
        .header("x-greenroom", "1");
    // A page of the same name that came unencrypted is another's.
    let unencrypted = write.clone().header("origin", "http://bots.example.com");
    asked(&stage, unencrypted).await.refused(403, "unauthorized");
    let out = asked(&stage, write.header("origin", "https://bots.example.com")).await;
    assert_eq!(out.status, 204);
    assert!(cookie(&out).1.contains(&"Secure".to_owned()), "{out:?}");
}

#[tokio::test]
async fn what_others_forward_is_not_believed() {
    let stage = Stage::with(TRUSTING).await;
    let from = [127, 0, 0, 2].into();
    let request = forwarded(&stage.admin, "203.0.113.1");
    assert_eq!(send_from(from, stage.address, &request).await.unwrap().status, 403, "its origin");
    let own = Request::post("/v1/session", json!({"token": stage.admin}).to_string());
    let own = from_page(&stage, own).header("x-forwarded-proto", "https");
    let reply = send_from(from, stage.address, &own).await.unwrap();
    assert_eq!(reply.status, 200);
    let set = reply.header("set-cookie").unwrap();
    assert!(set.starts_with("greenroom_session_") && !set.contains("Secure"), "{set}");
}

#[tokio::test]
async fn tries_to_sign_in_are_counted_by_whoever_is_before_the_proxy() {
    let stage = Stage::with(TRUSTING).await;
    let wrong = async |client: &str| asked(&stage, forwarded("no-such-token", client)).await.status;
    wait_for("tries to run out", PATIENCE, async || {
        (wrong("203.0.113.1").await == 429).then_some(())
    })
    .await;
    // Whoever puts others in front of its own address is still known by it.
    assert_eq!(wrong("203.0.113.9, 203.0.113.1").await, 429);
    assert_eq!(wrong("203.0.113.2").await, 401, "another has its own tries");
}

#[tokio::test]
async fn names_pages_and_proxies_are_taken_over_without_a_restart() {
    let stage = Stage::start().await;
    let status = async |request: Request| stage.ask(request).await.status;
    let named = async || status_with(&stage, "host: bots.example.com\r\n").await;
    let paged = || Request::get("/v1/runs").header("origin", "https://chat.example.com");
    assert_eq!((named().await.as_str(), status(paged()).await), ("403", 403));
    let config = std::fs::read_to_string(stage.host.folder().join("greenroom.toml")).unwrap();
    let more = format!("{TRUSTING}allowed_origins = [\"https://chat.example.com\"]\n");
    stage.host.configure(&format!("{config}\n{more}"));
    wait_for("the name to be known", PATIENCE, async || (named().await == "200").then_some(()))
        .await;
    assert_eq!(status(paged()).await, 200);
    let reply = asked(&stage, forwarded(&stage.admin, "203.0.113.1")).await;
    assert!(cookie(&reply).1.contains(&"Secure".to_owned()), "{reply:?}");
    assert!(!stage.host.log().contains("takes effect at the next start"), "{}", stage.host.log());
    stage.host.configure(&config);
    wait_for("the name to be gone", PATIENCE, async || (named().await == "403").then_some(()))
        .await;
}

#[tokio::test]
async fn a_host_under_a_path_is_one_host_with_the_path_and_without() {
    let stage = Stage::with(UNDER).await;
    for base in ["", "/tools/greenroom"] {
        let get = async |path: &str| stage.get(&format!("{base}{path}")).await;
        assert_eq!(get("/healthz").await.status, 200);
        assert_eq!(get("/v1/runs?limit=1").await.status, 200);
        let document = get("/openapi.json").await.body;
        assert_eq!(document["servers"], json!([{"url": "/tools/greenroom"}]));
        get("/v1/nothing").await.refused(404, "not_found");
        let event = message(&format!("c{}", base.len()), "hello").to_string();
        let request = Request::post(format!("{base}/v1/events"), event);
        let stream = stage.ask(request.header("accept", "text/event-stream")).await;
        let frames = stream.body.as_str().unwrap();
        assert!(frames.contains("event: accepted") && frames.contains("event: run.completed"));
    }
    stage.get("/tools/greenroomy/healthz").await.refused(404, "not_found");
    let place = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let place: Value = serde_json::from_str(&place).unwrap();
    let url = format!("http://{}/tools/greenroom", stage.address);
    assert_eq!(place["url"], json!(url));
    let code = printed_code(&stage);
    assert!(stage.host.log().contains(&format!("{url}/#code={code}")), "{}", stage.host.log());
    let request = Request::post("/tools/greenroom/v1/session", json!({"code": code}).to_string());
    let reply = asked(&stage, from_page(&stage, request)).await;
    let (session, attributes) = cookie(&reply);
    assert!(attributes.contains(&"Path=/tools/greenroom".to_owned()), "{attributes:?}");
    let shown = asked(&stage, read("/tools/greenroom/v1/session", &session)).await;
    assert_eq!(shown.status, 200);
}

#[tokio::test]
async fn the_page_of_a_host_under_a_path_has_no_address_outside_of_it() {
    let stage = Stage::with(UNDER).await;
    let html = |target: &str| Request::get(target).header("accept", "text/html");
    let page = asked(&stage, html("/tools/greenroom/runs/run_1")).await;
    if page.status == 501 {
        // A program without the interface has nothing to look at.
        return;
    }
    assert_eq!(page.status, 200, "{page:?}");
    let text = page.body.as_str().unwrap();
    assert!(text.contains(r#"content="/tools/greenroom/""#), "{text}");
    let mut addresses: Vec<&str> = Vec::new();
    for attribute in ["src=\"", "href=\""] {
        let found = text.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap());
        addresses.extend(found);
    }
    assert!(addresses.len() >= 3, "{text}");
    for address in addresses {
        assert!(address.starts_with("/tools/greenroom/"), "{address}");
        assert_eq!(asked(&stage, Request::get(address)).await.status, 200, "{address}");
    }
}
