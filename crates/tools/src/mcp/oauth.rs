//! Access to an MCP server that wants OAuth: a sign-in by a user, or the credentials of a client.
//!
//! Invariant: tokens go to the server they were granted for, and to the endpoint of the issuer that granted them;
//! they are in the file of the sign-in and in memory, and in no message or log.

mod challenge;
mod client;
mod discovery;
mod fetch;
mod request;
mod saved;
mod settings;
mod token;

pub use client::{LOOPBACK_PATH, is_loopback};
pub use request::Redirected;
pub use settings::{OAuthGrant, OAuthSettings};

use super::trouble::short;
use challenge::Challenge;
use discovery::Discovered;
use fetch::Fetch;
use request::{OPEN_MAX, Request};
use reqwest::Url;
use saved::{Client, SignIn};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use token::{Granted, NoToken};
use tokio::sync::{Mutex, watch};

/// A token is renewed this long before it expires.
const RENEW_BEFORE_S: u64 = 30;

/// Receives secrets before they are used, to redact them.
pub type OnSecrets = Arc<dyn Fn(Vec<String>) + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    /// There is no open sign-in with this state.
    #[error("this sign-in is unknown, was completed, or took longer than ten minutes")]
    UnknownState,
    /// The request is wrong.
    #[error("{0}")]
    Refused(String),
    /// A clause about the MCP server.
    #[error("{0}")]
    Failed(String),
}

impl OAuthError {
    fn failed(message: String) -> Self {
        Self::Failed(message)
    }

    fn refused(message: String) -> Self {
        Self::Refused(message)
    }
}

/// A sign-in that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInRequest {
    /// The address to open in a browser.
    pub url: String,
    pub state: String,
    pub expires: Duration,
}

/// Whether there is a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInStatus {
    /// The server did not ask for one.
    NotAsked,
    Required,
    Done,
}

/// What follows from a refusal.
pub(super) enum AfterRefusal {
    /// There is another token.
    Retry,
    /// A sign-in is needed, because of this.
    SignIn(String),
    /// It is not about the token.
    Nothing,
}

/// The access to one server.
pub(super) struct Authorization {
    settings: OAuthSettings,
    server: Url,
    fetch: Fetch,
    on_secrets: Option<OnSecrets>,
    inner: Mutex<Inner>,
    status: watch::Sender<SignInStatus>,
}

#[derive(Default)]
struct Inner {
    sign_in: Option<SignIn>,
    /// The last one of the server.
    challenge: Challenge,
    open: Vec<Request>,
}

impl Authorization {
    pub(super) fn new(
        settings: OAuthSettings,
        server: &str,
        allow_private: bool,
        on_secrets: Option<OnSecrets>,
    ) -> Result<Self, String> {
        let server = Url::parse(server).map_err(|error| error.to_string())?;
        let sign_in = settings.file.as_deref().and_then(saved::load);
        let is_own = |sign_in: &SignIn| {
            let client = settings.client_id.as_ref();
            sign_in.server == server.as_str() && client.is_none_or(|id| *id == sign_in.client.id)
        };
        let sign_in = sign_in.filter(is_own);
        let status = if sign_in.is_some() { SignInStatus::Done } else { SignInStatus::NotAsked };
        if let (Some(sign_in), Some(on_secrets)) = (&sign_in, &on_secrets) {
            on_secrets(sign_in.secrets());
        }
        Ok(Self {
            fetch: Fetch::new(&server, allow_private)?,
            settings,
            server,
            on_secrets,
            inner: Mutex::new(Inner { sign_in, ..Inner::default() }),
            status: watch::Sender::new(status),
        })
    }

    pub(super) fn status(&self) -> SignInStatus {
        *self.status.borrow()
    }

    /// Waits until a user has signed in.
    pub(super) async fn signed_in(&self) {
        let mut status = self.status.subscribe();
        // The sender lives as long as this.
        let _ = status.wait_for(|status| *status == SignInStatus::Done).await;
    }

    /// The token to send, renewed if it is about to expire.
    pub(super) async fn token(&self) -> Option<String> {
        let mut inner = self.inner.lock().await;
        let sign_in = inner.sign_in.as_ref()?;
        let expires_at = sign_in.expires_at;
        if expires_at.is_some_and(|at| at <= now_s() + RENEW_BEFORE_S) {
            // If that fails, the server refuses the old token, and says why.
            let _ = self.renew(&mut inner).await;
        }
        inner.sign_in.as_ref().map(|sign_in| sign_in.access_token.clone())
    }

    /// The server refused a request with this token.
    pub(super) async fn refused(
        &self,
        status: u16,
        header: Option<&str>,
        used: Option<&str>,
    ) -> AfterRefusal {
        let challenge = header.map(Challenge::parse).unwrap_or_default();
        if status == 403 && !challenge.needs_more_scopes() {
            return AfterRefusal::Nothing;
        }
        let mut inner = self.inner.lock().await;
        let current = inner.sign_in.as_ref().map(|sign_in| sign_in.access_token.as_str());
        if current.is_some() && current != used {
            // Another request has renewed it meanwhile.
            return AfterRefusal::Retry;
        }
        let why = match challenge.needs_more_scopes() {
            true => format!("wants more permissions ({})", short(&challenge.scopes.join(" "))),
            false if used.is_some() => "no longer accepts the sign-in".to_owned(),
            false => "wants a sign-in".to_owned(),
        };
        inner.challenge = challenge;
        let is_retried = status == 401 || self.settings.grant == OAuthGrant::ClientCredentials;
        let renewed = match is_retried {
            true => self.renew(&mut inner).await,
            false => Ok(false),
        };
        match renewed {
            Ok(true) => AfterRefusal::Retry,
            Ok(false) => {
                self.status.send_replace(SignInStatus::Required);
                AfterRefusal::SignIn(why)
            }
            Err(error) => {
                self.status.send_replace(SignInStatus::Required);
                AfterRefusal::SignIn(format!("{why}, and {error}"))
            }
        }
    }

    /// Gets a token without a user; false if that is not possible.
    async fn renew(&self, inner: &mut Inner) -> Result<bool, OAuthError> {
        if self.settings.grant == OAuthGrant::ClientCredentials {
            return self.request_for_client(inner).await.map(|()| true);
        }
        let Some(sign_in) = inner.sign_in.clone() else { return Ok(false) };
        let Some(refresh_token) = &sign_in.refresh_token else { return Ok(false) };
        // The endpoint is that of the issuer that granted it, whatever the server names by now.
        let endpoint = self.fetch.check("the token endpoint", &sign_in.token_endpoint)?;
        let scope = sign_in.scopes.join(" ");
        let mut grant = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.as_str()),
            ("resource", &sign_in.resource),
        ];
        if !scope.is_empty() {
            grant.push(("scope", &scope));
        }
        match token::request(&self.fetch, &endpoint, &sign_in.client, &grant).await {
            Ok(granted) => self.keep(inner, granted, sign_in.clone()).map(|()| true),
            Err(NoToken::InvalidGrant(_)) => {
                self.forget(inner);
                Ok(false)
            }
            Err(NoToken::Other(error)) => Err(error),
        }
    }

    async fn request_for_client(&self, inner: &mut Inner) -> Result<(), OAuthError> {
        let discovered = discovery::discover(&self.fetch, &self.server, &inner.challenge).await?;
        let client = self.own_client(&discovered)?.ok_or_else(|| {
            OAuthError::refused("client credentials need a `client_id` and its secret".to_owned())
        })?;
        let scopes = match self.settings.scopes.is_empty() {
            true => discovered.scopes.clone(),
            false => self.settings.scopes.clone(),
        };
        let scope = scopes.join(" ");
        let mut grant =
            vec![("grant_type", "client_credentials"), ("resource", discovered.resource.as_str())];
        if !scope.is_empty() {
            grant.push(("scope", &scope));
        }
        let endpoint = &discovered.metadata.token_endpoint;
        let granted = token::request(&self.fetch, endpoint, &client, &grant).await?;
        let sign_in = self.of(&discovered, client, scopes);
        self.keep(inner, granted, sign_in)
    }

    /// Begins a sign-in that ends at `redirect_uri`.
    pub(super) async fn begin(&self, redirect_uri: &str) -> Result<SignInRequest, OAuthError> {
        if self.settings.grant == OAuthGrant::ClientCredentials {
            let message = "this server is used with client credentials: nobody signs in";
            return Err(OAuthError::refused(message.to_owned()));
        }
        let (challenge, known) = {
            let inner = self.inner.lock().await;
            (inner.challenge.clone(), inner.sign_in.clone())
        };
        let discovered = discovery::discover(&self.fetch, &self.server, &challenge).await?;
        let scopes = self.scopes(&discovered, known.as_ref());
        let client = self.client(&discovered, redirect_uri, &scopes, known).await?;
        let request = Request::new(discovered, client, redirect_uri, scopes)?;
        let url = request.url()?;
        let state = request.state.clone();
        let mut inner = self.inner.lock().await;
        inner.open.retain(Request::is_open);
        if inner.open.len() >= OPEN_MAX {
            inner.open.remove(0);
        }
        inner.open.push(request);
        Ok(SignInRequest { url: url.to_string(), state, expires: request::OPEN })
    }

    /// Completes the sign-in with this state; `is_at` says whether the redirect arrived where it belongs.
    pub(super) async fn finish(
        &self,
        redirected: &Redirected,
        is_at: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<(), OAuthError> {
        let mut inner = self.inner.lock().await;
        inner.open.retain(Request::is_open);
        let place = inner.open.iter().position(|open| same(&open.state, &redirected.state));
        let place = place.ok_or(OAuthError::UnknownState)?;
        if !is_at(&inner.open[place].redirect_uri) {
            let message =
                "the redirect arrived at another address than the one it was requested for";
            return Err(OAuthError::refused(message.to_owned()));
        }
        // Used once, whatever follows.
        let request = inner.open.remove(place);
        let grant = request.grant(redirected)?;
        let endpoint = &request.discovered.metadata.token_endpoint;
        let granted = token::request(&self.fetch, endpoint, &request.client, &grant).await?;
        let sign_in = self.of(&request.discovered, request.client.clone(), request.scopes.clone());
        self.keep(&mut inner, granted, sign_in)
    }

    pub(super) async fn sign_out(&self) {
        let mut inner = self.inner.lock().await;
        inner.open.clear();
        self.forget(&mut inner);
    }

    fn forget(&self, inner: &mut Inner) {
        inner.sign_in = None;
        self.status.send_replace(SignInStatus::Required);
        let removed = self.settings.file.as_deref().map_or(Ok(()), saved::remove);
        if let Err(error) = removed {
            tracing::error!(%error, "cannot remove a sign-in");
        }
    }

    /// The scopes to ask for: what was granted before stays granted.
    fn scopes(&self, discovered: &Discovered, known: Option<&SignIn>) -> Vec<String> {
        let wanted = match self.settings.scopes.is_empty() {
            true => &discovered.scopes,
            false => &self.settings.scopes,
        };
        let issuer = &discovered.metadata.issuer;
        let before = known.filter(|known| known.issuer == *issuer).map(|known| &known.scopes);
        let mut scopes: Vec<String> = before.into_iter().flatten().cloned().collect();
        scopes.extend(wanted.iter().cloned());
        // For a refresh token, where the server knows this scope.
        let offline = "offline_access".to_owned();
        if !scopes.is_empty() && discovered.metadata.scopes.contains(&offline) {
            scopes.push(offline);
        }
        challenge::words(&scopes.join(" "))
    }

    fn of(&self, discovered: &Discovered, client: Client, scopes: Vec<String>) -> SignIn {
        SignIn {
            server: self.server.to_string(),
            resource: discovered.resource.clone(),
            issuer: discovered.metadata.issuer.clone(),
            token_endpoint: discovered.metadata.token_endpoint.to_string(),
            client,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            scopes,
        }
    }

    /// Keeps what was granted: on disk first.
    fn keep(&self, inner: &mut Inner, granted: Granted, before: SignIn) -> Result<(), OAuthError> {
        let sign_in = SignIn {
            access_token: granted.access_token,
            // A server that sends no new one keeps the old one valid.
            refresh_token: granted.refresh_token.or(before.refresh_token),
            expires_at: granted.lifetime_s.map(|lifetime| now_s() + lifetime),
            scopes: granted.scopes.unwrap_or(before.scopes),
            ..before
        };
        if let Some(on_secrets) = &self.on_secrets {
            on_secrets(sign_in.secrets());
        }
        let is_kept = self.settings.grant == OAuthGrant::AuthorizationCode;
        if let Some(file) = self.settings.file.as_deref().filter(|_| is_kept) {
            saved::store(file, &sign_in).map_err(|error| {
                OAuthError::failed(format!("signed in, but that cannot be stored: {error}"))
            })?;
        }
        inner.sign_in = Some(sign_in);
        self.status.send_replace(SignInStatus::Done);
        Ok(())
    }
}

/// Compares all bytes, wherever the first difference is.
fn same(left: &str, right: &str) -> bool {
    let differences = left.bytes().zip(right.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    left.len() == right.len() && differences == 0
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
