//! The web interface as it is served: what browsers are told, which addresses are pages, what leads nowhere.
//!
//! Invariant: holds for a program with the interface and for one without; which of them this is, is looked up.

use crate::stage::{Reply, Stage};
use greenroom_testkit::http::{self, Request};
use std::path::{Path, PathBuf};

const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' \
    data: blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'";

/// The built interface, if it is built: debug builds read it from here.
fn dist() -> Option<PathBuf> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    dist.join("index.html").exists().then_some(dist)
}

async fn page(stage: &Stage, target: &str) -> Reply {
    stage.ask_as(None, Request::get(target).header("accept", HTML)).await
}

fn assert_protected(reply: &Reply) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn every_page_is_the_interface_and_protected() {
    let stage = Stage::start().await;
    let first = page(&stage, "/").await;
    let text = first.body.as_str().unwrap().to_owned();
    match dist() {
        Some(dist) => {
            assert_eq!(first.status, 200);
            let built = std::fs::read_to_string(dist.join("index.html")).unwrap();
            assert_eq!(text, built.replace("\"./", "\"/"), "its addresses are those of the host");
            assert!(!text.contains("<script>") && !text.contains("javascript:"), "{text}");
        }
        None => {
            assert_eq!(first.status, 501);
            assert!(text.contains("make web") && text.contains("网页界面"), "{text}");
        }
    }
    for target in [
        "/",
        "/?next=/runs",
        "/index.html",
        "/chat",
        "/chat/c%2F1",
        "/runs",
        "/runs/run_1",
        "/runs/compare?a=1&b=2",
        "/agents/echo",
        "/runners",
        "/events/e%201",
        "/conversations",
        "/artifacts",
        "/state",
        "/audit",
        "/approvals",
        "/signin",
    ] {
        let reply = page(&stage, target).await;
        assert_eq!((reply.status, reply.body.as_str()), (first.status, Some(&*text)), "{target}");
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{target}");
        assert_eq!(reply.header("cache-control"), Some("no-cache"), "{target}");
        assert_eq!(reply.header("set-cookie"), None, "{target}");
        assert_protected(&reply);
    }
    let head = Request { method: "HEAD", ..Request::get("/runs") }.header("accept", HTML);
    let head = stage.ask_as(None, head).await;
    assert_eq!(head.status, first.status);
    assert_protected(&head);
}

#[tokio::test]
async fn a_page_that_a_browser_has_is_not_sent_again() {
    let stage = Stage::start().await;
    let first = page(&stage, "/").await;
    let tag = first.header("etag").unwrap().to_owned();
    let again = Request::get("/runs").header("accept", HTML).header("if-none-match", tag);
    let again = stage.ask_as(None, again).await;
    let expected = if dist().is_some() { 304 } else { 501 };
    assert_eq!(again.status, expected);
    assert_protected(&again);
}

#[tokio::test]
async fn other_addresses_lead_nowhere_and_say_so() {
    let stage = Stage::start().await;
    for target in [
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/runs/none/nothing",
        "/mcp/nothing",
        "/healthz/x",
        "/assets/none-12345678.js",
    ] {
        page(&stage, target).await.refused(404, "not_found");
    }
    // A person who is lost gets a page that says so; a program gets an error.
    for target in ["/nowhere", "/Runs", "//runs", "/favicon.ico", "/index.html/", "/a/b/c"] {
        let lost = page(&stage, target).await;
        assert_eq!(lost.status, 404, "{target}");
        match dist() {
            Some(_) => {
                assert_eq!(lost.header("content-type"), Some("text/html; charset=utf-8"));
                assert!(lost.body.as_str().unwrap().contains("id=\"root\""), "{target}");
                assert_protected(&lost);
            }
            None => drop(lost.refused(404, "not_found")),
        }
        stage.ask_as(None, Request::get(target)).await.refused(404, "not_found");
    }
    // What is no page load gets no page instead of what it asked for.
    for target in ["/runs", "/chat/c1"] {
        let asked = Request::get(target).header("accept", "application/json");
        stage.ask_as(None, asked).await.refused(404, "not_found");
        stage.ask_as(None, Request::get(target)).await.refused(404, "not_found");
        let post = Request::post(target, "{}").header("accept", HTML);
        stage.ask_as(None, post).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn no_name_leads_out_of_the_interface() {
    let stage = Stage::start().await;
    for target in [
        "/../Cargo.toml",
        "/assets/../../package.json",
        "/assets/../../../Cargo.toml",
        "/%2e%2e/package.json",
        "/assets/%2e%2e/%2e%2e/package.json",
        "/..%2fpackage.json",
        "/assets/..%5c..%5cpackage.json",
        "/%00",
        "/index.html%00.js",
        "/assets/%00",
        "/.vite/manifest.json",
        "/.gitignore",
        "/./index.html",
        "//etc/passwd",
        "/etc/passwd",
        "/assets/",
        "/assets",
    ] {
        let asked = format!(
            "GET {target} HTTP/1.1\r\nhost: localhost\r\naccept: {HTML}\r\nconnection: close\r\n\r\n"
        );
        let answer = stage.raw(asked.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{target}: {answer}");
        let is_page = answer.contains("id=\"root\"");
        assert!(is_page || answer.contains("\"not_found\""), "{target}: {answer}");
    }
}

#[tokio::test]
async fn files_of_the_interface_are_kept_for_good_and_compressed_for_those_who_take_it() {
    let stage = Stage::start().await;
    let Some(dist) = dist() else {
        // Nothing is built, so nothing is there.
        stage.ask_as(None, Request::get("/icon.svg")).await.refused(404, "not_found");
        return;
    };
    let files = std::fs::read_dir(dist.join("assets")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert!(names.iter().any(|name| name.ends_with(".js.gz")), "{names:?}");
    for name in names.iter().filter(|name| name.ends_with(".gz")) {
        let name = name.strip_suffix(".gz").unwrap();
        let target = format!("/assets/{name}");
        let stored = std::fs::read(dist.join("assets").join(format!("{name}.gz"))).unwrap();
        let packed = Request::get(&target).header("accept-encoding", "gzip, deflate");
        let packed = http::send(stage.address, &packed).await.unwrap();
        assert_eq!(packed.status, 200, "{target}");
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{target}");
        let kept = "public, max-age=31536000, immutable";
        assert_eq!(packed.header("cache-control"), Some(kept), "{target}");
        assert_eq!(packed.header("vary"), Some("accept-encoding"), "{target}");
        assert_eq!(packed.body().await.unwrap(), stored, "{target}");
        let plain = stage.ask_as(None, Request::get(&target)).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{target}");
        assert_protected(&plain);
        // The last four bytes of gzip are the length of what is inside.
        let length = u32::from_le_bytes(stored[stored.len() - 4..].try_into().unwrap());
        assert_eq!(plain.header("content-length"), Some(&*length.to_string()), "{target}");
    }
    let pages = std::fs::read_to_string(dist.join("index.html")).unwrap();
    for target in pages.split('"').filter(|text| text.starts_with("/assets/")) {
        assert_eq!(stage.ask_as(None, Request::get(target)).await.status, 200, "{target}");
    }
}

#[tokio::test]
async fn artifacts_stay_attachments_that_are_nothing_but_their_type() {
    let stage = Stage::start().await;
    let page = "<!doctype html><script>alert(1)</script>";
    let mut upload = Request::post("/v1/artifacts?name=page.html", page);
    upload.headers[0].1 = "text/html".to_owned();
    let kept = stage.ask(upload).await;
    assert_eq!(kept.status, 201, "{kept:?}");
    let target = format!("/v1/artifacts/{}", kept.body["artifact_id"].as_str().unwrap());
    let session = crate::browser::signed_in(&stage, &stage.admin).await;
    let asked = Request::get(target).header("accept", HTML).header("cookie", session);
    let reply = stage.ask_as(None, asked.header("sec-fetch-site", "none")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    for (name, value) in [
        ("content-disposition", "attachment; filename=\"page.html\""),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
}
