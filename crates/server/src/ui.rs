//! The web interface: files built from `web/` and embedded in the binary.
//!
//! Invariant: a path maps to an embedded file or to nothing. Every response restricts scripts, frames and
//! requests to the host's own.

mod encoding;
mod files;
mod headers;

use crate::artifacts::etag_matches;
use crate::response::Problem;
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

/// First path segments of the interface's pages.
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
/// First path segments of its files.
const FILES: [&str; 3] = [INDEX, ASSETS, "icon.svg"];
const ASSETS: &str = "assets";
/// First path segments of the API: a missing resource is an API error.
const API: [&str; 8] =
    ["v1", "mcp", "models", "oauth", "healthz", "readyz", "metrics", "openapi.json"];
const NOT_BUILT: &str = include_str!("ui/not-built.html");
/// Hashed file names.
const HASHED: &str = "assets/";

/// The fallback for paths without a route.
pub(crate) async fn serve(
    State(app): State<App>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let is_read = method == Method::GET || method == Method::HEAD;
    let (pages, path) =
        (Pages { files: &files::embedded, base: &app.options.base_path }, uri.path());
    let response = is_read.then(|| pages.response(path, &headers)).flatten();
    response.unwrap_or_else(|| Problem::not_found("path").into_response())
}

/// Whether the interface's paths start with this segment.
pub(crate) fn is_own(name: &str) -> bool {
    PAGES.contains(&name) || FILES.contains(&name)
}

struct Pages<'a> {
    files: &'a Files<'a>,
    base: &'a BasePath,
}

impl Pages<'_> {
    fn response(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        if is_page(path, headers) {
            return Some(self.page(headers));
        }
        let name = path.strip_prefix('/').filter(|name| files::is_name(name));
        self.file(name, headers).or_else(|| self.not_found(path, headers))
    }

    fn file(&self, name: Option<&str>, headers: &HeaderMap) -> Option<Response> {
        let (name, files) = (name?, self.files);
        if let Some(file) = files(&format!("{name}.gz")) {
            return Some(gzipped(name, file, headers));
        }
        Some(plain(name, files(name)?, headers))
    }

    /// A browser gets a page for an unknown path; a program gets an error.
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
            Some(file) => plain(INDEX, self.with_base_path(&file), headers),
            None => {
                let mut response = (StatusCode::NOT_IMPLEMENTED, NOT_BUILT).into_response();
                set_headers(INDEX, "\"not-built\"", response.headers_mut());
                response
            }
        }
    }

    /// Links in the page start with `./`, which stands for the base path, so the page is the same at every path.
    fn with_base_path(&self, file: &File) -> File {
        let base = self.base.as_str();
        let text = String::from_utf8_lossy(&file.bytes);
        let bytes = text.replace("\"./", &format!("\"{base}/")).into();
        File { bytes, tag: format!("{}{}", file.tag, base.replace('/', "-")) }
    }
}

/// All pages are one file that routes by its path.
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
    cacheable(name, &format!("\"{}\"", file.tag), file.bytes, headers)
}

/// A gzip file, decompressed for clients that do not accept gzip.
fn gzipped(name: &str, file: File, headers: &HeaderMap) -> Response {
    let accepts_gzip = encoding::accepts_gzip(headers);
    let mut response = match accepts_gzip {
        true => cacheable(name, &format!("\"{}\"", file.tag), file.bytes, headers),
        false => match encoding::decompress(&file.bytes) {
            Ok(bytes) => cacheable(name, &format!("\"{}-plain\"", file.tag), bytes.into(), headers),
            Err(error) => {
                tracing::error!(%error, name, "cannot decompress an embedded file");
                return Problem::internal().into_response();
            }
        },
    };
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    if accepts_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn cacheable(name: &str, tag: &str, bytes: Bytes, headers: &HeaderMap) -> Response {
    let mut response = match etag_matches(headers, tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(bytes).into_response(),
    };
    set_headers(name, tag, response.headers_mut());
    response
}

fn set_headers(name: &str, tag: &str, headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(files::kind(name)));
    let caching = match name.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    headers::protect(headers);
}

#[cfg(test)]
mod tests;
