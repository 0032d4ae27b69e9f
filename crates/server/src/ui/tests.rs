//! Answers of the interface, from files that stand in for the built ones.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;

const SCRIPT: &str = "console.log('hello')";
const PAGE: &str = r#"<meta content="./"><script src="./assets/app-1a2b.js"></script>"#;
const PLACED: &[u8] = br#"<meta content="/"><script src="/assets/app-1a2b.js"></script>"#;

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

fn ask(path: &str, headers: &[(&'static str, &str)]) -> Option<Response> {
    let headers = headers.iter().map(|(name, value)| {
        (name.parse::<axum::http::HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
    });
    at(&file, "").answer(path, &headers.collect())
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
async fn compressed_files_are_given_as_they_are_or_unpacked() {
    let packed = ask("/assets/app-1a2b.js", &[("accept-encoding", "gzip, br")]).unwrap();
    assert_eq!(header(&packed, "content-encoding"), "gzip");
    assert_eq!(header(&packed, "vary"), "accept-encoding");
    assert_eq!(header(&packed, "etag"), "\"j1\"");
    assert_eq!(header(&packed, "content-type"), "text/javascript; charset=utf-8");
    assert_eq!(header(&packed, "cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(body(packed).await, gzip(SCRIPT));
    let plain = ask("/assets/app-1a2b.js", &[]).unwrap();
    assert_eq!(header(&plain, "content-encoding"), "");
    assert_eq!(header(&plain, "vary"), "accept-encoding");
    assert_eq!(header(&plain, "etag"), "\"j1-plain\"");
    assert_eq!(body(plain).await, SCRIPT.as_bytes());
}

#[tokio::test]
async fn what_a_browser_has_is_not_sent_again() {
    for (path, tag) in [("/", "\"i1\""), ("/icon.svg", "W/\"s1\""), ("/assets/app-1a2b.js", "*")] {
        let response = ask(path, &[("if-none-match", tag)]).unwrap();
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert!(header(&response, "content-security-policy").contains("script-src 'self'"));
        assert!(body(response).await.is_empty());
    }
    assert_eq!(ask("/", &[("if-none-match", "\"i0\"")]).unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn pages_are_one_file_for_those_who_want_a_page() {
    let html = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    for path in ["/", "/index.html", "/chat", "/chat/c%2F1", "/runs/run_1", "/runs/", "/signin"] {
        let response = ask(path, &html).unwrap();
        assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(header(&response, "cache-control"), "no-cache");
        assert_eq!(body(response).await, PLACED);
    }
    for path in ["/runs", "/chat/c1", "/signin"] {
        assert!(ask(path, &[("accept", "*/*")]).is_none(), "{path}");
        assert!(ask(path, &[]).is_none(), "{path}");
    }
    for path in
        ["/v1", "/v1/", "/v1/nothing", "/mcp/x", "/models/runs/r", "/healthz/x", "/assets/no.js"]
    {
        assert!(ask(path, &html).is_none(), "{path}");
    }
}

#[tokio::test]
async fn an_address_that_leads_nowhere_is_a_page_for_people_and_an_error_for_programs() {
    let html = ("accept", "text/html");
    for path in ["/nowhere", "/nowhere/at/all", "//runs", "/Runs", "/index.html/x", "/no.js"] {
        let response = ask(path, &[html, ("if-none-match", "*")]).unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8");
        assert!(header(&response, "content-security-policy").contains("script-src 'self'"));
        assert_eq!(body(response).await, PLACED);
        assert!(ask(path, &[("accept", "*/*")]).is_none(), "{path}");
        assert!(ask(path, &[]).is_none(), "{path}");
    }
}

#[tokio::test]
async fn a_page_names_the_path_that_it_stands_under() {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html"))]);
    let page = at(&file, "/a/b").answer("/runs/run_1", &headers).unwrap();
    assert_eq!(header(&page, "etag"), "\"i1-a-b\"");
    let expected = br#"<meta content="/a/b/"><script src="/a/b/assets/app-1a2b.js"></script>"#;
    assert_eq!(body(page).await, expected);
}

#[test]
fn a_program_without_the_interface_says_so() {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html"))]);
    let response = at(&none, "").answer("/runs", &headers).unwrap();
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8");
    assert!(header(&response, "content-security-policy").starts_with("default-src 'self'"));
    assert!(NOT_BUILT.contains("make web") && NOT_BUILT.contains("没有包含网页界面"));
    assert!(at(&none, "").answer("/icon.svg", &HeaderMap::new()).is_none());
}

#[test]
fn names_lead_to_files_or_nowhere() {
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
    fn no_path_leads_out_of_the_folder(path in "/[ -~]{0,60}") {
        let headers = HeaderMap::new();
        let asked = std::cell::RefCell::new(Vec::new());
        // Every name that is looked up is noted; none may have a part that leads up or is hidden.
        let noted = |name: &str| { asked.borrow_mut().push(name.to_owned()); None };
        let _ = at(&noted, "").answer(&path, &headers);
        for name in asked.borrow().iter() {
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
