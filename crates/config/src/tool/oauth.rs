//! `[tools.NAME.oauth]`: how access to an MCP server over HTTP is granted.
//!
//! Invariant: a secret has an issuer, so that it goes nowhere else.

use super::Secret;
use crate::reader::Reader;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct OAuth {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// The authorization server that the client belongs to.
    pub issuer: Option<String>,
    pub client_metadata_url: Option<String>,
    pub scopes: Vec<String>,
    pub grant: OAuthGrant,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OAuthGrant {
    #[default]
    AuthorizationCode,
    ClientCredentials,
}

const GRANTS: [(&str, OAuthGrant); 2] = [
    ("authorization_code", OAuthGrant::AuthorizationCode),
    ("client_credentials", OAuthGrant::ClientCredentials),
];

impl OAuth {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let text = |value: crate::reader::Value<'_>| value.filled_text().map(str::to_owned);
        let client_id = reader.get("client_id").and_then(text);
        let client_secret = reader.get("client_secret").and_then(|value| value.secret());
        let address = |value: crate::reader::Value<'_>| crate::surface::web_address(&value);
        let issuer = reader.get("issuer").and_then(address);
        let client_metadata_url = reader.get("client_metadata_url").and_then(address);
        let scopes = reader.get("scopes").and_then(|value| value.texts()).unwrap_or_default();
        let grant =
            reader.get("grant").map_or(Some(OAuthGrant::default()), |v| v.choice(&GRANTS))?;
        let needs_client = client_secret.is_some() || grant == OAuthGrant::ClientCredentials;
        if needs_client && (client_id.is_none() || issuer.is_none()) {
            return reader.fail(
                format!("`{}` needs `client_id` and `issuer` beside a secret", reader.path),
                "`issuer` is the authorization server that the client belongs to; others do not get its secret",
            );
        }
        if grant == OAuthGrant::ClientCredentials && client_secret.is_none() {
            return reader.fail(
                format!("`{}` needs `client_secret` for client credentials", reader.path),
                "write `client_secret = { env = \"NAME\" }`",
            );
        }
        reader.finish();
        Some(Self { client_id, client_secret, issuer, client_metadata_url, scopes, grant })
    }
}
