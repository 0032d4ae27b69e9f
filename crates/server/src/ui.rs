//! The web interface: pages and files that were built from `web/`, carried by the program.
//!
//! Invariant: a name leads to one of those files or nowhere. Every answer forbids scripts, frames and requests
//! that are not the host's own.

mod encoding;
mod files;
mod headers;

use crate::answer::Problem;
use crate::artifacts::has_bytes;
use crate::router::App;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, VARY,
};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use files::{File, Files};
use greenroom_config::BasePath;

/// First parts of the addresses that the interface has pages for.
const PAGES: [&str; 12] = [
    "chat",
    "runs",
    "agents",
    "runners",
    "events",
    "deliveries",
    "conversations",
    "artifacts",
    "state",
    "audit",
    "approvals",
    "signin",
];
const INDEX: &str = "index.html";
/// First parts of the addresses of its files.
const FILES: [&str; 3] = [INDEX, ASSETS, "icon.svg"];
const ASSETS: &str = "assets";
/// First parts of addresses that programs use: what is not there is an error of the API.
const API: [&str; 7] = ["v1", "mcp", "models", "healthz", "readyz", "metrics", "openapi.json"];
const NOT_BUILT: &str = include_str!("ui/not-built.html");
/// Their names change with what is in them.
const HASHED: &str = "assets/";

/// What no route of the table takes.
pub(crate) async fn serve(
    State(app): State<App>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let is_read = method == Method::GET || method == Method::HEAD;
    let (pages, path) =
        (Pages { files: &files::carried, base: &app.options.base_path }, uri.path());
    let found = is_read.then(|| pages.answer(path, &headers)).flatten();
    found.unwrap_or_else(|| Problem::not_found("address").into_response())
}

/// Whether addresses of the interface begin with a name.
pub(crate) fn is_own(name: &str) -> bool {
    PAGES.contains(&name) || FILES.contains(&name)
}

/// The files of the interface, for pages under a path.
struct Pages<'a> {
    files: &'a Files<'a>,
    base: &'a BasePath,
}

impl Pages<'_> {
    fn answer(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        if is_page(path, headers) {
            return Some(self.page(headers));
        }
        let name = path.strip_prefix('/').filter(|name| files::is_name(name));
        self.file(name, headers).or_else(|| self.not_found(path, headers))
    }

    fn file(&self, name: Option<&str>, headers: &HeaderMap) -> Option<Response> {
        let (name, files) = (name?, self.files);
        if let Some(file) = files(&format!("{name}.gz")) {
            return Some(packed(name, file, headers));
        }
        Some(plain(name, files(name)?, headers))
    }

    /// A person at an address that leads nowhere gets the page that says so; a program gets an error.
    fn not_found(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let first = path.split('/').nth(1).unwrap_or_default();
        if API.contains(&first) || first == ASSETS || !wants_page(headers) {
            return None;
        }
        let mut response =
            Some(self.page(&HeaderMap::new())).filter(|page| page.status().is_success())?;
        *response.status_mut() = StatusCode::NOT_FOUND;
        Some(response)
    }

    fn page(&self, headers: &HeaderMap) -> Response {
        match (self.files)(INDEX) {
            Some(file) => plain(INDEX, self.placed(&file), headers),
            None => {
                let mut response = (StatusCode::NOT_IMPLEMENTED, NOT_BUILT).into_response();
                about(INDEX, "\"not-built\"", response.headers_mut());
                response
            }
        }
    }

    /// Addresses in the page begin with `./`, which stands for the path of the host: the page is the same at
    /// every address.
    fn placed(&self, file: &File) -> File {
        let base = self.base.as_str();
        let text = String::from_utf8_lossy(&file.bytes);
        let bytes = text.replace("\"./", &format!("\"{base}/")).into();
        File { bytes, tag: format!("{}{}", file.tag, base.replace('/', "-")) }
    }
}

/// Every page is the same file, which looks at its address itself.
fn is_page(path: &str, headers: &HeaderMap) -> bool {
    let mut parts = path.split('/').skip(1);
    match parts.next() {
        Some("" | INDEX) => parts.next().is_none(),
        Some(first) => PAGES.contains(&first) && wants_page(headers),
        None => false,
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|range| {
        range.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html"))
    })
}

fn plain(name: &str, file: File, headers: &HeaderMap) -> Response {
    given(name, &format!("\"{}\"", file.tag), file.bytes, headers)
}

/// A file that is carried compressed, for whoever takes it so, and unpacked for others.
fn packed(name: &str, file: File, headers: &HeaderMap) -> Response {
    let takes_it = encoding::takes_gzip(headers);
    let mut response = match takes_it {
        true => given(name, &format!("\"{}\"", file.tag), file.bytes, headers),
        false => match encoding::unpack(&file.bytes) {
            Ok(bytes) => given(name, &format!("\"{}-plain\"", file.tag), bytes.into(), headers),
            Err(error) => {
                tracing::error!(%error, name, "a file of the interface cannot be unpacked");
                return Problem::internal().into_response();
            }
        },
    };
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    if takes_it {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn given(name: &str, tag: &str, bytes: Bytes, headers: &HeaderMap) -> Response {
    let mut response = match has_bytes(headers, tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(bytes).into_response(),
    };
    about(name, tag, response.headers_mut());
    response
}

fn about(name: &str, tag: &str, headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(files::kind(name)));
    let kept = match name.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    headers::protect(headers);
}

#[cfg(test)]
mod tests;
