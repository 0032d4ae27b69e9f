//! `[server]` and `[store]`: where the host listens and where it keeps things.
//!
//! Invariant: an absent location means the data folder, which the file does not know.

use super::Secret;
use super::reader::{Reader, Value, clean};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    /// Values of `Host` that are accepted beside the address itself and loopback names.
    pub allowed_hosts: Vec<String>,
    /// Values of `Origin` that browsers may send beside the host's own.
    pub allowed_origins: Vec<String>,
}

impl Default for Server {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8700));
        Self { listen, allowed_hosts: Vec::new(), allowed_origins: Vec::new() }
    }
}

impl Server {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let absent = Self::default();
        let server = Self {
            listen: reader.get("listen").and_then(|v| address(&v)).unwrap_or(absent.listen),
            allowed_hosts: reader.get("allowed_hosts").and_then(|v| v.texts()).unwrap_or_default(),
            allowed_origins: reader
                .get("allowed_origins")
                .and_then(|v| v.list(origin))
                .unwrap_or_default(),
        };
        reader.finish();
        server
    }
}

fn address(value: &Value<'_>) -> Option<SocketAddr> {
    let text = value.filled_text()?;
    match text.parse() {
        Ok(address) => Some(address),
        Err(_) => value.fail(
            format!("`{}` is not an address to listen on", clean(text)),
            "write an IP address and a port, e.g. `127.0.0.1:8700` or `[::1]:8700`",
        ),
    }
}

fn origin(value: &Value<'_>) -> Option<String> {
    let text = value.filled_text()?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(host) if !host.is_empty() && !host.contains('/') => Some(text.to_owned()),
        _ => value.fail(
            format!("`{}` is not an origin", clean(text)),
            "write scheme and host without a path, e.g. `https://chat.example.com`",
        ),
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Store {
    /// `None`: SQLite in the data folder.
    pub url: Option<StoreUrl>,
    pub sync: Sync,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
    /// May hold a password, so it is never shown.
    Postgres(Secret),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sync {
    /// What was acknowledged survives power loss.
    #[default]
    Full,
    /// What was acknowledged survives the end of the process.
    Normal,
}

impl Store {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let words = [("full", Sync::Full), ("normal", Sync::Normal)];
        let store = Self {
            url: reader.get("url").and_then(|value| store_url(&value)),
            sync: reader.get("sync").and_then(|v| v.choice(&words)).unwrap_or_default(),
        };
        reader.finish();
        store
    }
}

fn store_url(value: &Value<'_>) -> Option<StoreUrl> {
    let url = match value.is_table() {
        true => value.secret()?,
        false => Secret::new(value.filled_text()?)?,
    };
    let text = url.expose();
    match text.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => return Some(StoreUrl::Sqlite(value.cx.dir.join(path))),
        None if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
            return Some(StoreUrl::Postgres(url));
        }
        _ => value.cx.hide(value.span.clone()),
    }
    value.fail(
        format!("`{}` is not the address of a store", value.path),
        "write `sqlite:PATH` or `postgres://USER@HOST/DATABASE`",
    )
}
