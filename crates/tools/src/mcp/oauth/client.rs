//! The client that signs in: configured, described by a document, known, or registered now (RFC 7591).
//!
//! Invariant: a client belongs to one issuer; another one does not get its id or its secret.

use super::discovery::Discovered;
use super::saved::{Client, SignIn};
use super::token::AuthMethod;
use super::{Authorization, OAuthError};
use crate::mcp::trouble::short;
use reqwest::Url;
use serde_json::json;
use std::net::IpAddr;

/// The path of the redirect to a program on the user's machine.
pub const LOOPBACK_PATH: &str = "/callback";
/// Longest id of a client.
const ID_BYTES_MAX: usize = 1024;

impl Authorization {
    /// The client to sign in with: configured, described by a document, known, or registered now.
    pub(super) async fn client(
        &self,
        discovered: &Discovered,
        redirect_uri: &str,
        scopes: &[String],
        known: Option<SignIn>,
    ) -> Result<Client, OAuthError> {
        if let Some(client) = self.own_client(discovered)? {
            return Ok(client);
        }
        let metadata = &discovered.metadata;
        if let Some(id) =
            self.settings.client_metadata_url.as_ref().filter(|_| metadata.reads_client_documents)
        {
            let (id, auth_method) = (id.clone(), AuthMethod::None);
            return Ok(Client { id, secret: None, auth_method, registered_for: None });
        }
        let is_same = |known: &SignIn| {
            known.issuer == metadata.issuer
                && known.client.registered_for.as_deref() == Some(redirect_uri)
        };
        match known.filter(is_same) {
            Some(known) => Ok(known.client),
            None => self.register(discovered, redirect_uri, scopes).await,
        }
    }

    /// The client of the configuration, if it may be used here.
    pub(super) fn own_client(&self, discovered: &Discovered) -> Result<Option<Client>, OAuthError> {
        let Some(id) = self.settings.client_id.clone() else { return Ok(None) };
        let named = discovered.metadata.issuer.as_deref().unwrap_or_default();
        let is_meant =
            |issuer: &String| issuer.trim_end_matches('/') == named.trim_end_matches('/');
        if self.settings.issuer.as_ref().is_some_and(|issuer| !is_meant(issuer)) {
            let named = short(named);
            let message =
                format!("names the issuer `{named}`, and `client_id` belongs to another one");
            return Err(OAuthError::failed(message));
        }
        let secret = self.settings.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        let auth_method = match secret {
            Some(_) => AuthMethod::with_secret(discovered.metadata.auth_methods.as_deref()),
            None => AuthMethod::None,
        };
        Ok(Some(Client { id, secret, auth_method, registered_for: None }))
    }

    /// RFC 7591.
    async fn register(
        &self,
        discovered: &Discovered,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Client, OAuthError> {
        let metadata = &discovered.metadata;
        let endpoint = metadata.registration_endpoint.as_ref().ok_or_else(|| {
            let message = "registers no clients: create one there, and add its `client_id`";
            OAuthError::failed(message.to_owned())
        })?;
        let methods = metadata.auth_methods.as_deref();
        let is_public = methods.is_none_or(|known| known.iter().any(|known| known == "none"));
        let wanted = if is_public { AuthMethod::None } else { AuthMethod::with_secret(methods) };
        let kind = if is_loopback(redirect_uri) { "native" } else { "web" };
        let mut body = json!({"client_name": "Greenroom", "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": wanted.as_str(), "application_type": kind});
        if !scopes.is_empty() {
            body["scope"] = json!(scopes.join(" "));
        }
        let answer = self.fetch.post_json(endpoint, &body).await?;
        let document = answer.json().unwrap_or_default();
        let text = |name: &str| document.get(name).and_then(|value| value.as_str());
        let id = text("client_id").filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
        let Some(id) = id.filter(|_| answer.status.is_success()) else {
            let why = [text("error"), text("error_description")].into_iter().flatten();
            let why: String = why.map(|why| format!(", {}", short(why))).collect();
            let message = format!("does not register clients (HTTP {}{why})", answer.status);
            return Err(OAuthError::failed(message));
        };
        let secret = text("client_secret").filter(|secret| !secret.is_empty()).map(str::to_owned);
        let named = text("token_endpoint_auth_method").and_then(AuthMethod::parse);
        let auth_method = match (&secret, named) {
            (None, _) => AuthMethod::None,
            (Some(_), Some(method)) => method,
            (Some(_), None) if wanted != AuthMethod::None => wanted,
            (Some(_), None) => AuthMethod::with_secret(methods),
        };
        let registered_for = Some(redirect_uri.to_owned());
        Ok(Client { id: id.to_owned(), secret, auth_method, registered_for })
    }
}

/// Whether a program on the user's machine gets the redirect.
pub fn is_loopback(redirect_uri: &str) -> bool {
    let Ok(url) = Url::parse(redirect_uri) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_own = host.parse::<IpAddr>().is_ok_and(|at| at.is_loopback());
    is_own
        && url.scheme() == "http"
        && url.path() == LOOPBACK_PATH
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exact_loopback_address_belongs_to_a_program() {
        for own in ["http://127.0.0.1:4000/callback", "http://[::1]:4000/callback"] {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "http://localhost:4000/callback",
            "https://127.0.0.1:4000/callback",
            "http://127.0.0.1:4000/callback/../x",
            "http://127.0.0.1:4000/callback?x=1",
            "http://127.0.0.1:4000/callback#x",
            "http://127.0.0.1@evil.example/callback",
            "http://user@127.0.0.1:4000/callback",
            "http://10.0.0.1:4000/callback",
            "javascript:alert(1)",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
