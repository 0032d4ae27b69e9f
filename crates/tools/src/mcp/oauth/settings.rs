//! What the configuration says about the access to a server.
//!
//! Invariant: a secret is not shown by `Debug`.

use greenroom_config::Secret;
use std::path::PathBuf;

/// `[tools.NAME.oauth]`; the defaults serve a server that registers clients itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OAuthSettings {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// The issuer that `client_id` belongs to; others do not get it.
    pub issuer: Option<String>,
    /// The address of a document about the client.
    pub client_metadata_url: Option<String>,
    /// Instead of those that the server names.
    pub scopes: Vec<String>,
    pub grant: OAuthGrant,
    /// Where the sign-in is kept; `None`: in memory.
    pub file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OAuthGrant {
    /// A user signs in.
    #[default]
    AuthorizationCode,
    /// The client acts for itself.
    ClientCredentials,
}
