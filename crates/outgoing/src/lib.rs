//! The one outgoing HTTP client, for webhooks, model providers and MCP servers.
//!
//! Invariant: addresses are checked here, after their names are resolved; private ones are refused unless the
//! entry allows them, and redirects are never followed.

pub use greenroom_config::is_private;
pub use reqwest::Client;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Where an entry sets none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How one entry of the configuration connects to the outside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Outgoing {
    /// Whether loopback and private networks are allowed.
    pub allow_private: bool,
    /// For the whole exchange.
    pub timeout: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    /// An HTTP proxy; the environment is ignored.
    pub proxy: Option<String>,
    /// Idle connections to keep per receiver.
    pub keep_idle: usize,
}

impl Outgoing {
    pub fn build(&self) -> Result<Client, reqwest::Error> {
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
            .pool_max_idle_per_host(self.keep_idle);
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(timeout) = self.connect_timeout {
            builder = builder.connect_timeout(timeout);
        }
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy)?);
        }
        if !self.allow_private {
            builder = builder.dns_resolver(Arc::new(PublicOnly));
        }
        builder.build()
    }

    /// Parses a url that this entry may call. An IP address is checked here, a name when it is resolved.
    pub fn check(&self, url: &str) -> Result<Url, Unreachable> {
        let url = Url::parse(url).map_err(|error| Unreachable::Invalid(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Unreachable::Invalid(format!("`{}` is not HTTP", url.scheme())));
        }
        let literal = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse().ok());
        match literal.is_some_and(is_private) && !self.allow_private {
            true => Err(Unreachable::Private),
            false => Ok(url),
        }
    }

    /// Connects without sending anything; returns the address that accepted.
    pub async fn connect(&self, url: &str) -> Result<SocketAddr, Unreachable> {
        let url = self.check(url)?;
        let limit = self.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(443);
        let late = || Unreachable::NoConnection(format!("no answer within {} s", limit.as_secs()));
        let connected = timeout(limit, async {
            let found = tokio::net::lookup_host((host.as_str(), port)).await;
            let found = found.map_err(|error| Unreachable::NoName(error.to_string()))?;
            let open: Vec<SocketAddr> =
                found.filter(|at| self.allow_private || !is_private(at.ip())).collect();
            if open.is_empty() {
                return Err(Unreachable::Private);
            }
            let stream = TcpStream::connect(open.as_slice()).await;
            let stream = stream.map_err(|error| Unreachable::NoConnection(error.to_string()))?;
            stream.peer_addr().map_err(|error| Unreachable::NoConnection(error.to_string()))
        });
        connected.await.unwrap_or_else(|_| Err(late()))
    }
}

/// Why an address is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    #[error("the address is invalid: {0}")]
    Invalid(String),
    #[error("the address is private")]
    Private,
    #[error("the name cannot be resolved: {0}")]
    NoName(String),
    #[error("no connection: {0}")]
    NoConnection(String),
}

/// The innermost cause, without the url that reqwest prepends.
pub fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Resolves names to public addresses only.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|at| !is_private(at.ip())).collect();
            if public.is_empty() {
                return Err("the name has no public address".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ip_address_is_checked_before_it_is_called() {
        let public = Outgoing::default();
        for url in ["http://127.0.0.1/", "https://[::1]:8443/x", "http://169.254.169.254/latest"] {
            assert_eq!(public.check(url), Err(Unreachable::Private), "{url}");
        }
        assert!(public.check("https://api.openai.com/v1").is_ok());
        assert!(matches!(public.check("file:///etc/passwd"), Err(Unreachable::Invalid(_))));
        let private = Outgoing { allow_private: true, ..Outgoing::default() };
        assert!(private.check("http://127.0.0.1:11434").is_ok());
    }
}
