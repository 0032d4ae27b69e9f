//! The web interface: pages and files that were built from `web/`, carried by the program.
//!
//! Invariant: a name leads to one of those files or nowhere. Every answer forbids scripts, frames and requests
//! that are not the host's own.

mod encoding;
mod files;
mod headers;

use crate::answer::Problem;
use crate::artifacts::has_bytes;
use axum::body::Body;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, VARY,
};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use files::{File, Files};

/// First parts of the addresses that the interface has pages for.
const PAGES: [&str; 11] = [
    "chat",
    "runs",
    "agents",
    "runners",
    "events",
    "conversations",
    "artifacts",
    "state",
    "audit",
    "approvals",
    "signin",
];
const INDEX: &str = "index.html";
const NOT_BUILT: &str = include_str!("ui/not-built.html");
/// Their names change with what is in them.
const HASHED: &str = "assets/";

/// What no route of the table takes.
pub(crate) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let is_read = method == Method::GET || method == Method::HEAD;
    let found = is_read.then(|| answer(&files::carried, uri.path(), &headers)).flatten();
    found.unwrap_or_else(|| Problem::not_found("address").into_response())
}

fn answer(files: &Files<'_>, path: &str, headers: &HeaderMap) -> Option<Response> {
    if is_page(path, headers) {
        return Some(page(files, headers));
    }
    let name = path.strip_prefix('/').filter(|name| files::is_name(name))?;
    if let Some(file) = files(&format!("{name}.gz")) {
        return Some(packed(name, file, headers));
    }
    Some(plain(name, files(name)?, headers))
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

fn page(files: &Files<'_>, headers: &HeaderMap) -> Response {
    match files(INDEX) {
        Some(file) => plain(INDEX, file, headers),
        None => {
            let mut response = (StatusCode::NOT_IMPLEMENTED, NOT_BUILT).into_response();
            about(INDEX, "\"not-built\"", response.headers_mut());
            response
        }
    }
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
