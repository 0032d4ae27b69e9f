//! A request for authorization: the address that a user opens, and the redirect that ends it.
//!
//! Invariant: a state is random, expires and is used once; the redirect must name the issuer where that is known.

use super::OAuthError;
use super::discovery::Discovered;
use super::saved::Client;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::time::Instant;

/// How long a user may take.
pub(super) const OPEN: Duration = Duration::from_secs(10 * 60);
/// Requests of one server that may be open; the oldest are dropped.
pub(super) const OPEN_MAX: usize = 8;

/// A request that a user has not answered yet.
pub(super) struct Request {
    pub(super) state: String,
    pub(super) redirect_uri: String,
    pub(super) scopes: Vec<String>,
    pub(super) client: Client,
    pub(super) discovered: Discovered,
    verifier: String,
    until: Instant,
}

/// The parameters of a redirect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redirected {
    pub state: String,
    pub code: Option<String>,
    /// The issuer, from servers that name it.
    pub iss: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

impl Request {
    pub(super) fn new(
        discovered: Discovered,
        client: Client,
        redirect_uri: &str,
        scopes: Vec<String>,
    ) -> Result<Self, OAuthError> {
        Ok(Self {
            state: random()?,
            redirect_uri: redirect_uri.to_owned(),
            scopes,
            client,
            discovered,
            verifier: random()?,
            until: Instant::now() + OPEN,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        Instant::now() < self.until
    }

    /// The address to open in a browser.
    pub(super) fn url(&self) -> Result<Url, OAuthError> {
        let endpoint = self.discovered.metadata.authorization_endpoint.clone();
        let mut url = endpoint.ok_or_else(|| {
            let message = "has an authorization server without an `authorization_endpoint`";
            OAuthError::failed(message.to_owned())
        })?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        let mut query = url.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", &self.redirect_uri),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &self.discovered.resource),
        ]);
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.join(" "));
        }
        drop(query);
        Ok(url)
    }

    /// The grant of a redirect, as the parameters for the token endpoint.
    pub(super) fn grant<'a>(
        &'a self,
        redirected: &'a Redirected,
    ) -> Result<[(&'static str, &'a str); 5], OAuthError> {
        self.check_issuer(redirected.iss.as_deref())?;
        let code = redirected.code.as_deref().filter(|code| !code.is_empty());
        let code = code.ok_or_else(|| {
            let missing = || "it has neither `code` nor `error`".to_owned();
            let why = redirected.error.clone().map_or_else(missing, |error| {
                let more = redirected.error_description.iter();
                more.fold(error, |error, more| format!("{error}, {more}"))
            });
            OAuthError::failed(format!("did not grant access: {}", super::short(&why)))
        })?;
        Ok([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", &self.verifier),
            ("resource", &self.discovered.resource),
        ])
    }

    /// RFC 9207: otherwise the code of one authorization server could be sent to another. Compared as text.
    fn check_issuer(&self, named: Option<&str>) -> Result<(), OAuthError> {
        let metadata = &self.discovered.metadata;
        match (&metadata.issuer, named) {
            (Some(issuer), Some(named)) if issuer == named => Ok(()),
            (_, None) if !metadata.names_issuer => Ok(()),
            (_, None) => {
                Err(OAuthError::refused("the redirect does not name the issuer (`iss`)".to_owned()))
            }
            (_, Some(named)) => {
                let named = super::short(named);
                let message = format!("the redirect names another issuer: `{named}`");
                Err(OAuthError::refused(message))
            }
        }
    }
}

/// 256 bits as text.
fn random() -> Result<String, OAuthError> {
    let mut bytes = [0; 32];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|_| {
        OAuthError::failed("needs random numbers, and the system has none".to_owned())
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
