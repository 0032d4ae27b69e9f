//! The interface, with fake files.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;

const SCRIPT: &str = "console.log('hello')";
const PAGE: &str = r#"<meta content="./"><script src="./assets/app-1a2b.js"></script>"#;
const RENDERED: &[u8] = br#"<meta content="/"><script src="/assets/app-1a2b.js"></script>"#;

fn file(name: &str) -> Option<File> {
    let (bytes, tag) = match name {
        "index.html" => (PAGE.as_bytes().to_vec(), "i1"),
        "icon.svg" => (b"<svg/>".to_vec(), "s1"),
        "assets/app-1a2b.js.gz" => (gzip(SCRIPT), "j1"),
        _ => return None,
    };
    Some(File { bytes: bytes.into(), tag: tag.to_owned() })
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn none(_: &str) -> Option<File> {
    None
}

fn get(path: &str, headers: &[(&'static str, &str)]) -> Option<Response> {
    let headers = headers.iter().map(|(name, value)| {
        (name.parse::<axum::http::HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
    });
    at(&file, "").response(path, &headers.collect())
}

/// The interface of a host under a path.
fn at<'a>(files: &'a Files<'a>, base: &str) -> Pages<'a> {
    let base = Box::leak(Box::new(BasePath::parse(base, crate::base::is_route).unwrap()));
    Pages { files, base }
}

async fn body(response: Response) -> Vec<u8> {
    axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn gzipped_files_are_sent_as_they_are_or_decompressed() {
    let gzipped = get("/assets/app-1a2b.js", &[("accept-encoding", "gzip, br")]).unwrap();
    assert_eq!(header(&gzipped, "content-encoding"), "gzip");
    assert_eq!(header(&gzipped, "vary"), "accept-encoding");
    assert_eq!(header(&gzipped, "etag"), "\"j1\"");
    assert_eq!(header(&gzipped, "content-type"), "text/javascript; charset=utf-8");
    assert_eq!(header(&gzipped, "cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(body(gzipped).await, gzip(SCRIPT));
    let plain = get("/assets/app-1a2b.js", &[]).unwrap();
    assert_eq!(header(&plain, "content-encoding"), "");
    assert_eq!(header(&plain, "vary"), "accept-encoding");
    assert_eq!(header(&plain, "etag"), "\"j1-plain\"");
    assert_eq!(body(plain).await, SCRIPT.as_bytes());
}

#[tokio::test]
async fn unchanged_files_are_not_sent_again() {
    for (path, tag) in [("/", "\"i1\""), ("/icon.svg", "W/\"s1\""), ("/assets/app-1a2b.js", "*")] {
        let response = get(path, &[("if-none-match", tag)]).unwrap();
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert!(header(&response, "content-security-policy").contains("script-src 'self'"));
        assert!(body(response).await.is_empty());
    }
    assert_eq!(get("/", &[("if-none-match", "\"i0\"")]).unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn all_pages_are_one_file() {
    let html = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    for path in ["/", "/index.html", "/chat", "/chat/c%2F1", "/runs/run_1", "/runs/", "/signin"] {
        let response = get(path, &html).unwrap();
        assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(header(&response, "cache-control"), "no-cache");
        assert_eq!(body(response).await, RENDERED);
    }
    for path in ["/runs", "/chat/c1", "/signin"] {
        assert!(get(path, &[("accept", "*/*")]).is_none(), "{path}");
        assert!(get(path, &[]).is_none(), "{path}");
    }
    for path in
        ["/v1", "/v1/", "/v1/nothing", "/mcp/x", "/models/runs/r", "/healthz/x", "/assets/no.js"]
    {
        assert!(get(path, &html).is_none(), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_path_is_a_page_for_browsers_and_an_error_for_programs() {
    let html = ("accept", "text/html");
    for path in ["/nowhere", "/nowhere/at/all", "//runs", "/Runs", "/index.html/x", "/no.js"] {
        let response = get(path, &[html, ("if-none-match", "*")]).unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8");
        assert!(header(&response, "content-security-policy").contains("script-src 'self'"));
        assert_eq!(body(response).await, RENDERED);
        assert!(get(path, &[("accept", "*/*")]).is_none(), "{path}");
        assert!(get(path, &[]).is_none(), "{path}");
    }
}

#[tokio::test]
async fn a_page_uses_the_base_path() {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html"))]);
    let page = at(&file, "/a/b").response("/runs/run_1", &headers).unwrap();
    assert_eq!(header(&page, "etag"), "\"i1-a-b\"");
    let expected = br#"<meta content="/a/b/"><script src="/a/b/assets/app-1a2b.js"></script>"#;
    assert_eq!(body(page).await, expected);
}

#[test]
fn a_build_without_the_interface_says_so() {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html"))]);
    let response = at(&none, "").response("/runs", &headers).unwrap();
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8");
    assert!(header(&response, "content-security-policy").starts_with("default-src 'self'"));
    assert!(NOT_BUILT.contains("make web") && NOT_BUILT.contains("没有包含网页界面"));
    assert!(at(&none, "").response("/icon.svg", &HeaderMap::new()).is_none());
}

#[test]
fn file_names_are_validated() {
    for name in ["icon.svg", "assets/app-1a2b.js", "a/b/c.d.e"] {
        assert!(files::is_name(name), "{name}");
    }
    for name in [
        "",
        "/",
        "..",
        "../Cargo.toml",
        "assets/../index.html",
        "assets//app.js",
        "/etc/passwd",
        ".vite/manifest.json",
        "assets/.hidden",
        "a%2e%2e",
        "%2e%2e/Cargo.toml",
        "a\\..\\b",
        "a\0b",
        "a b",
        "资产.js",
    ] {
        assert!(!files::is_name(name), "{name}");
    }
}

proptest! {
    #[test]
    fn no_path_leaves_the_folder(path in "/[ -~]{0,60}") {
        let headers = HeaderMap::new();
        let looked_up = std::cell::RefCell::new(Vec::new());
        // No name that is looked up may have a hidden segment or `..`.
        let lookup = |name: &str| { looked_up.borrow_mut().push(name.to_owned()); None };
        let _ = at(&lookup, "").response(&path, &headers);
        for name in looked_up.borrow().iter() {
            prop_assert!(name.split('/').all(|part| !part.is_empty() && !part.starts_with('.')), "{}", name);
        }
    }
}

#[test]
fn every_page_of_the_navigation_is_known() {
    let nav = include_str!("../../../../web/src/shell/nav.ts");
    let links = nav.split("href: \"/").skip(1).filter_map(|rest| rest.split('"').next());
    let unknown: Vec<&str> =
        links.filter(|page| !page.is_empty() && !PAGES.contains(page)).collect();
    assert_eq!(unknown, [""; 0]);
}
