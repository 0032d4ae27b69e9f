//! The files of the interface: embedded in release builds, read from `web/dist` in debug builds.

use bytes::Bytes;
use rust_embed::RustEmbed;
use std::borrow::Cow;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Dist;

/// A file and its ETag.
pub(super) struct File {
    pub(super) bytes: Bytes,
    pub(super) tag: String,
}

pub(super) type Files<'a> = dyn Fn(&str) -> Option<File> + 'a;

pub(super) fn embedded(name: &str) -> Option<File> {
    let file = Dist::get(name)?;
    let bytes = match file.data {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    let hash = file.metadata.sha256_hash();
    let tag = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(File { bytes, tag })
}

/// Plain segments separated by slashes: no `..`, no hidden files, no escapes.
pub(super) fn is_name(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    path.len() <= 255
        && path
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain))
}

/// The content type by file extension.
pub(super) fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("webp") => "image/webp",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
