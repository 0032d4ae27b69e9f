//! Requests to a token endpoint, and what it answers.
//!
//! Invariant: a token is used only if it can be sent as a bearer token; an answer that is no token is an error that
//! does not quote it.

use super::OAuthError;
use super::challenge::words;
use super::fetch::{Fetch, place};
use super::saved::Client;
use crate::mcp::trouble::short;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const TOKEN_BYTES_MAX: usize = 64 * 1024;
/// Longest lifetime that is believed.
const LIFETIME_S_MAX: u64 = 400 * 24 * 60 * 60;

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
}

impl AuthMethod {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            AuthMethod::None => "none",
            AuthMethod::ClientSecretBasic => "client_secret_basic",
            AuthMethod::ClientSecretPost => "client_secret_post",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost]
            .into_iter()
            .find(|method| method.as_str() == text)
    }

    /// The method of a client that has a secret; RFC 8414 says `client_secret_basic` where nothing is said.
    pub(super) fn with_secret(supported: Option<&[String]>) -> Self {
        let has = |method: Self| {
            supported.is_none_or(|known| known.iter().any(|known| known == method.as_str()))
        };
        match has(Self::ClientSecretPost) && !has(Self::ClientSecretBasic) {
            true => Self::ClientSecretPost,
            false => Self::ClientSecretBasic,
        }
    }
}

/// What was granted. No `Debug`: it holds secrets.
pub(super) struct Granted {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) lifetime_s: Option<u64>,
    /// `None`: as requested.
    pub(super) scopes: Option<Vec<String>>,
}

/// Why there is no token.
pub(super) enum NoToken {
    /// The grant is no longer valid.
    InvalidGrant(String),
    Other(OAuthError),
}

impl From<OAuthError> for NoToken {
    fn from(error: OAuthError) -> Self {
        Self::Other(error)
    }
}

impl From<NoToken> for OAuthError {
    fn from(error: NoToken) -> Self {
        match error {
            NoToken::InvalidGrant(message) => OAuthError::failed(message),
            NoToken::Other(error) => error,
        }
    }
}

/// Requests a token; `grant` are the parameters of the grant.
pub(super) async fn request(
    fetch: &Fetch,
    endpoint: &Url,
    client: &Client,
    grant: &[(&str, &str)],
) -> Result<Granted, NoToken> {
    let mut form = grant.to_vec();
    let secret = client.secret.as_deref().unwrap_or_default();
    let basic = match client.auth_method {
        AuthMethod::ClientSecretBasic => Some(basic(&client.id, secret)),
        AuthMethod::ClientSecretPost => {
            form.extend([("client_id", client.id.as_str()), ("client_secret", secret)]);
            None
        }
        AuthMethod::None => {
            form.push(("client_id", &client.id));
            None
        }
    };
    let answer = fetch.post_form(endpoint, &form, basic).await?;
    let document = answer.json();
    let at = place(endpoint);
    if answer.status.is_success() {
        let document = document.ok_or_else(|| junk(&at, "no JSON object"))?;
        return Ok(read(&document, &at)?);
    }
    let text = |name: &str| document.as_ref().and_then(|document| document.get(name)?.as_str());
    let code = text("error");
    let why = [code, text("error_description")].into_iter().flatten().map(short);
    let why: Vec<String> = why.collect();
    let why = match why.is_empty() {
        true => String::new(),
        false => format!(": {}", why.join(", ")),
    };
    let message = format!("gets no token from `{at}` (HTTP {}){why}", answer.status);
    Err(match code {
        Some("invalid_grant") => NoToken::InvalidGrant(message),
        _ => NoToken::Other(OAuthError::failed(message)),
    })
}

fn read(document: &Value, at: &str) -> Result<Granted, OAuthError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let usable = |token: &&str| {
        (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic())
    };
    let access_token = text("access_token").filter(usable);
    let access_token = access_token.ok_or_else(|| junk(at, "no usable `access_token`"))?;
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(junk(at, "a token that is not a bearer token"));
    }
    let lifetime = document.get("expires_in");
    let lifetime_s = lifetime.and_then(|lifetime| match lifetime {
        Value::String(text) => text.parse().ok(),
        number => number.as_f64().filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64),
    });
    Ok(Granted {
        access_token: access_token.to_owned(),
        refresh_token: text("refresh_token").filter(usable).map(str::to_owned),
        lifetime_s: lifetime_s.map(|seconds| seconds.min(LIFETIME_S_MAX)),
        scopes: text("scope").map(words),
    })
}

fn junk(at: &str, what: &str) -> OAuthError {
    OAuthError::failed(format!("gets {what} from `{at}`"))
}

/// RFC 6749, 2.3.1: both parts are form-encoded first.
fn basic(id: &str, secret: &str) -> String {
    STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)))
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn junk_is_no_token() {
        for junk in [
            json!({}),
            json!({"access_token": ""}),
            json!({"access_token": 7}),
            json!({"access_token": "a\r\nX-Admin: 1"}),
            json!({"access_token": "é"}),
            json!({"access_token": "x".repeat(TOKEN_BYTES_MAX + 1)}),
            json!({"access_token": "x", "token_type": "DPoP"}),
        ] {
            assert!(read(&junk, "t").is_err(), "{junk}");
        }
        let odd =
            json!({"access_token": "x", "expires_in": "60", "refresh_token": 7, "scope": "a a b"});
        let Ok(granted) = read(&odd, "t") else { panic!("a usable answer was refused") };
        assert_eq!(granted.lifetime_s, Some(60));
        assert_eq!(granted.refresh_token, None);
        assert_eq!(granted.scopes, Some(vec!["a".to_owned(), "b".to_owned()]));
        for endless in [json!(1e300), json!(-1), json!("x")] {
            let answer = json!({"access_token": "x", "expires_in": endless});
            let Ok(granted) = read(&answer, "t") else { panic!("a usable answer was refused") };
            assert!(granted.lifetime_s.is_none_or(|seconds| seconds <= LIFETIME_S_MAX));
        }
    }

    #[test]
    fn a_basic_header_has_encoded_parts() {
        assert_eq!(STANDARD.decode(basic("a:b", "c d%")).unwrap(), b"a%3Ab:c%20d%25");
    }
}
