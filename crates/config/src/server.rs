//! `[server]` and `[store]`: where the host listens and where it stores its data.
//!
//! Invariant: an absent location means the data folder, which the file does not know.

use super::base_path::BadBasePath;
use super::reader::{Reader, Value, clean};
use super::{BasePath, Network, Secret};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    /// Accepted values of `Host` besides the address itself and loopback names.
    pub allowed_hosts: Vec<String>,
    /// Accepted values of `Origin` besides that of the host.
    pub allowed_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-*` is trusted.
    pub trusted_proxies: Vec<Network>,
    /// The address at which others reach the host, without a path.
    pub public_url: Option<String>,
    /// The prefix of all paths.
    pub base_path: BasePath,
    /// `None`: the host does not serve TLS.
    pub tls: Option<Tls>,
}

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8700)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            public_url: None,
            base_path: BasePath::default(),
            tls: None,
        }
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
            trusted_proxies: reader
                .get("trusted_proxies")
                .and_then(|v| v.list(network))
                .unwrap_or_default(),
            public_url: reader.get("public_url").and_then(|v| origin(&v)),
            base_path: reader.get("base_path").and_then(|v| base_path(&v)).unwrap_or_default(),
            tls: reader.get("tls").and_then(|v| v.table()).and_then(Tls::read),
        };
        reader.finish();
        server
    }

    /// What addresses for others begin with; without a public address, the path.
    pub fn public_address(&self) -> String {
        let origin = self.public_url.as_deref().unwrap_or_default();
        format!("{origin}{}", self.base_path.as_str().trim_end_matches('/'))
    }

    /// A warning if other machines can reach this address without TLS.
    pub fn exposed(&self, address: SocketAddr) -> Option<String> {
        let is_covered = self.tls.is_some() || !self.trusted_proxies.is_empty();
        (!is_covered && !address.ip().to_canonical().is_loopback()).then(|| {
            format!(
                "other machines can reach `{address}` without TLS, so tokens can be intercepted: set \
                 `server.tls`, or listen on loopback behind a proxy with TLS and list it in \
                 `server.trusted_proxies`"
            )
        })
    }
}

impl Tls {
    fn read(mut reader: Reader<'_>) -> Option<Self> {
        let file = |value: Option<Value<'_>>| {
            value.and_then(|value| Some(value.cx.dir.join(value.filled_text()?)))
        };
        let (cert, key) = (file(reader.require("cert")), file(reader.require("key")));
        reader.finish();
        Some(Self { cert: cert?, key: key? })
    }
}

fn network(value: &Value<'_>) -> Option<Network> {
    let text = value.filled_text()?;
    match text.parse() {
        Ok(network) => Some(network),
        Err(_) => value.fail(
            format!("`{}` is not the address of a proxy", clean(text)),
            "write an IP address or a network, e.g. `127.0.0.1` or `10.0.0.0/8`",
        ),
    }
}

fn base_path(value: &Value<'_>) -> Option<BasePath> {
    let text = value.text()?;
    match BasePath::parse(text, value.cx.surroundings.known.is_route) {
        Ok(path) => Some(path),
        Err(BadBasePath::Malformed) => value.fail(
            format!("`{}` is not a path", clean(text)),
            "write a path that begins with `/` and has plain names, e.g. `/greenroom`",
        ),
        Err(error @ BadBasePath::Taken(_)) => value.fail(
            format!("`{}` cannot be the path of the host: {error}", clean(text)),
            "write another name, e.g. `/greenroom`",
        ),
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
    /// Whether the address is written in the file, not in a variable or another file.
    pub is_literal: bool,
    pub sync: Sync,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
    /// May contain a password, so it is never shown.
    Postgres(Secret),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sync {
    /// Acknowledged data survives power loss.
    #[default]
    Full,
    /// Acknowledged data survives a crash of the process.
    Normal,
}

impl Store {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let words = [("full", Sync::Full), ("normal", Sync::Normal)];
        let url = reader.get("url");
        let store = Self {
            is_literal: url.as_ref().is_some_and(|value| !value.is_table()),
            url: url.and_then(|value| store_url(&value)),
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
