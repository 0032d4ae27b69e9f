//! `[surfaces.NAME]`: where output goes.
//!
//! Invariant: an address comes from the configuration alone, never from a sender.

use super::Secret;
use super::reader::{Reader, Value, clean};
use greenroom_host::actions;
use std::collections::BTreeSet;

/// An outgoing webhook, the one kind of surface of this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    /// Signs every request; `None` sends them unsigned.
    pub secret: Option<Secret>,
    /// Whether the address may be private, e.g. in the host's own network.
    pub allow_private: bool,
    /// Whether the receiver drops repeated delivery ids, so that an unknown outcome may be sent again.
    pub idempotent: bool,
    pub timeout_s: u64,
    /// Longest text of one message, in characters; longer ones are split.
    pub max_message_size: Option<u64>,
    /// Actions that the receiver carries out.
    pub actions: BTreeSet<String>,
}

impl Webhook {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let kind = reader.require("kind").and_then(|value| value.choice(&[("webhook", ())]));
        let url = reader.require("url").and_then(|value| web_address(&value));
        let secret = reader.get("secret").map(|value| value.secret());
        let webhook = Self {
            url: url.unwrap_or_default(),
            secret: secret.flatten(),
            allow_private: reader.get("allow_private").and_then(|v| v.boolean()).unwrap_or(false),
            idempotent: reader.get("idempotent").and_then(|v| v.boolean()).unwrap_or(false),
            timeout_s: reader.get("timeout_s").and_then(|v| v.integer(1..=300)).unwrap_or(10),
            max_message_size: reader
                .get("max_message_size")
                .and_then(|v| v.integer(1..=10_000_000)),
            actions: reader.get("actions").and_then(|v| v.list(action)).map_or_else(
                || BTreeSet::from([actions::MESSAGE_SEND.to_owned()]),
                BTreeSet::from_iter,
            ),
        };
        reader.finish();
        kind.map(|()| webhook)
    }
}

fn action(value: &Value<'_>) -> Option<String> {
    let words = actions::KNOWN.map(|word| (word, word));
    value.choice(&words).map(str::to_owned)
}

/// An address that is called over HTTP.
pub(super) fn web_address(value: &Value<'_>) -> Option<String> {
    let text = value.filled_text()?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match host {
        Some(host) if host.contains('@') => {
            value.cx.hide(value.span.clone());
            value.fail(
                format!("`{}` holds a user or password", value.path),
                "leave it out: an address is no place for a secret",
            )
        }
        Some(host) if !host.is_empty() && !text.contains(char::is_whitespace) => {
            Some(text.to_owned())
        }
        _ => value.fail(
            format!("`{}` is not a web address", clean(text)),
            "write e.g. `https://example.com/hook`",
        ),
    }
}
