//! Tokens of one actor, minted by an application's server for its front ends (decision 028).
//!
//! Invariant: nothing is stored. A token opens until it expires, on every host of the database, as long as the token
//! that minted it is unchanged: the hash of that token is part of the key, so the database alone mints none.

use crate::cursor::TAG_BYTES;
use crate::host::Host;
use crate::ids::{hex, now_ms};
use crate::redaction::RUN_TOKEN;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// What a token of one actor permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorClaims {
    /// The name of the token that minted it: `token:NAME` or `admin`.
    pub by: String,
    pub actor: String,
    /// The source whose actor it is.
    pub source: String,
    /// The agents it may send to; none means those of its minter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// May answer approvals in its own conversations.
    #[serde(default)]
    pub answers: bool,
    /// Unix milliseconds.
    pub until_ms: i64,
}

impl Host {
    /// A token for these claims; `minter` is the hash of the token that mints it.
    pub fn seal_actor_token(&self, claims: &ActorClaims, minter: &[u8; 32]) -> String {
        let text = serde_json::to_string(claims).unwrap_or_default();
        let sealed = self.shared.cursors.seal(&["actor token", &hex(minter)], &text);
        let bytes = URL_SAFE_NO_PAD.decode(sealed).unwrap_or_default();
        format!("{RUN_TOKEN}{}", hex(&bytes))
    }

    /// The claims of a valid token. `hash_of` is the hash of the token with a name, if it exists.
    pub fn open_actor_token(
        &self,
        token: &str,
        hash_of: impl Fn(&str) -> Option<[u8; 32]>,
    ) -> Option<ActorClaims> {
        let bytes = from_hex(token.strip_prefix(RUN_TOKEN)?)?;
        // Read before it is verified, only to find the minter that it must have been sealed with.
        let named: ActorClaims = serde_json::from_slice(bytes.get(TAG_BYTES..)?).ok()?;
        let minter = hash_of(&named.by)?;
        let sealed = URL_SAFE_NO_PAD.encode(&bytes);
        let text = self.shared.cursors.open(&["actor token", &hex(&minter)], &sealed)?;
        let claims: ActorClaims = serde_json::from_str(&text).ok()?;
        (now_ms() < claims.until_ms).then_some(claims)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let [high, low] = pair else { return None };
            u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
        })
        .collect()
}
