//! Requests to addresses that a server named: its metadata, and its authorization server.
//!
//! Invariant: every address passes the filter of the outgoing client; redirects are not followed; a body is
//! bounded and an exchange ends in time; an `https` server cannot lead to plain `http`.

use super::OAuthError;
use crate::mcp::trouble::short;
use bytes::Bytes;
use greenroom_outgoing::{Client, Outgoing, cause};
use http::StatusCode;
use reqwest::{RequestBuilder, Url};
use serde_json::Value;
use std::net::IpAddr;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const BODY_BYTES_MAX: usize = 256 * 1024;
const URL_BYTES_MAX: usize = 4096;

pub(super) struct Fetch {
    outgoing: Outgoing,
    client: Client,
    /// The MCP server.
    server: Url,
}

/// An answer with any status.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    body: Vec<u8>,
}

impl Fetch {
    pub(super) fn new(server: &Url, allow_private: bool) -> Result<Self, String> {
        let outgoing = Outgoing {
            allow_private,
            timeout: Some(TIMEOUT),
            connect_timeout: Some(CONNECT_TIMEOUT),
            ..Outgoing::default()
        };
        let client = outgoing.build().map_err(|error| cause(&error))?;
        Ok(Self { outgoing, client, server: server.clone() })
    }

    /// An address that may be called, or opened in a browser.
    pub(super) fn check(&self, what: &str, text: &str) -> Result<Url, OAuthError> {
        let refuse = |why: &str| {
            OAuthError::failed(format!("names {what} `{}`, which is refused: {why}", short(text)))
        };
        if text.len() > URL_BYTES_MAX || text.contains(char::is_control) {
            return Err(refuse("it is too long or has control characters"));
        }
        let url = self.outgoing.check(text).map_err(|error| refuse(&error.to_string()))?;
        if url.scheme() != "https" && self.server.scheme() == "https" {
            return Err(refuse("it is not `https`"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(refuse("it has a user, a password or a fragment"));
        }
        // Services of the machine's cloud provider answer there, also where private addresses are allowed.
        if is_link_local(&url) && url.host_str() != self.server.host_str() {
            return Err(refuse("the address is link-local"));
        }
        Ok(url)
    }

    pub(super) async fn get(&self, url: &Url) -> Result<Answer, OAuthError> {
        self.send(url, self.client.get(url.clone())).await
    }

    pub(super) async fn post_json(&self, url: &Url, body: &Value) -> Result<Answer, OAuthError> {
        self.send(url, self.client.post(url.clone()).json(body)).await
    }

    pub(super) async fn post_form(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        basic: Option<String>,
    ) -> Result<Answer, OAuthError> {
        let mut request = self.client.post(url.clone()).form(form);
        if let Some(basic) = basic {
            request = request.header(http::header::AUTHORIZATION, format!("Basic {basic}"));
        }
        self.send(url, request).await
    }

    async fn send(&self, url: &Url, request: RequestBuilder) -> Result<Answer, OAuthError> {
        let at = place(url);
        let request = request.header(http::header::ACCEPT, "application/json");
        let failed = |error: &reqwest::Error| {
            OAuthError::failed(format!("cannot be asked at `{at}`: {}", short(&cause(error))))
        };
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        let status = response.status();
        if status.is_redirection() {
            let message =
                format!("is led elsewhere by `{at}` (HTTP {status}); redirects are not followed");
            return Err(OAuthError::failed(message));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            let chunk: Bytes = chunk;
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                let message = format!("gets more than {BODY_BYTES_MAX} bytes from `{at}`");
                return Err(OAuthError::failed(message));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body })
    }
}

impl Answer {
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok().filter(Value::is_object)
    }
}

/// An address without its query, for messages.
pub(super) fn place(url: &Url) -> String {
    short(&format!("{}{}", url.origin().ascii_serialization(), url.path()))
}

fn is_link_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse() {
        Ok(IpAddr::V4(at)) => at.is_link_local(),
        Ok(IpAddr::V6(at)) => {
            at.is_unicast_link_local() || at.to_ipv4_mapped().is_some_and(|at| at.is_link_local())
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(server: &str, allow_private: bool, url: &str) -> Option<String> {
        // Another test of this process may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let fetch = Fetch::new(&Url::parse(server).unwrap(), allow_private).unwrap();
        fetch.check("an address", url).err().map(|error| error.to_string())
    }

    #[test]
    fn a_server_cannot_lead_to_private_addresses_or_to_plain_http() {
        let public = "https://mcp.example.com/mcp";
        for url in [
            "https://127.0.0.1/token",
            "https://10.0.0.1/token",
            "https://[::1]/token",
            "https://169.254.169.254/latest/meta-data",
            "http://auth.example.com/token",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://user:pass@auth.example.com/token",
            "https://auth.example.com/\n",
        ] {
            assert!(refusal(public, false, url).is_some(), "{url}");
        }
        assert_eq!(refusal(public, false, "https://auth.example.com/token"), None);
    }

    #[test]
    fn link_local_addresses_are_refused_even_where_private_ones_are_allowed() {
        let private = "http://10.0.0.5/mcp";
        assert_eq!(refusal(private, true, "http://10.0.0.9/token"), None);
        let refused = refusal(private, true, "http://169.254.169.254/latest").unwrap();
        assert!(refused.contains("link-local"), "{refused}");
        assert!(refusal(private, true, "http://[::ffff:169.254.169.254]/x").is_some());
    }
}
