//! `[surfaces.NAME]`: where output goes.
//!
//! Invariant: an address comes from the configuration only, never from a sender.

use super::Secret;
use super::reader::{Reader, Value, clean};
use std::collections::BTreeSet;
use std::time::Duration;

/// One entry, by its `kind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Surface {
    Webhook(Webhook),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    /// Signs every request; without it requests are unsigned.
    pub secret: Option<Secret>,
    /// Whether the address may be private.
    pub allow_private: bool,
    /// Whether the receiver drops repeated delivery ids, so that an unknown outcome may be sent again.
    pub idempotent: bool,
    pub timeout: Duration,
    /// Longest text of one message, in characters; longer ones are split.
    pub max_message_size: Option<usize>,
    /// Actions that the receiver carries out.
    pub actions: BTreeSet<String>,
}

type ReadSurface = fn(&mut Reader<'_>) -> Surface;

/// How the keys of each kind are read.
const KINDS: [(&str, ReadSurface); 1] = [("webhook", webhook)];

impl Surface {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let kind = reader.require("kind").and_then(|value| value.choice(&KINDS));
        let surface = kind.unwrap_or(webhook)(&mut reader);
        reader.finish();
        kind.map(|_| surface)
    }
}

fn webhook(reader: &mut Reader<'_>) -> Surface {
    let url = reader.require("url").and_then(|value| web_address(&value));
    let timeout_s = reader.get("timeout_s").and_then(|v| v.integer(1..=300)).unwrap_or(10);
    let size = reader.get("max_message_size").and_then(|v| v.integer(1..=10_000_000));
    let actions = reader.get("actions").and_then(|v| v.list(action));
    Surface::Webhook(Webhook {
        url: url.unwrap_or_default(),
        secret: reader.get("secret").and_then(|value| value.secret()),
        allow_private: reader.get("allow_private").and_then(|v| v.boolean()).unwrap_or(false),
        idempotent: reader.get("idempotent").and_then(|v| v.boolean()).unwrap_or(false),
        timeout: Duration::from_secs(timeout_s),
        max_message_size: size.and_then(|size| usize::try_from(size).ok()),
        actions: actions
            .map_or_else(|| BTreeSet::from(["message.send".to_owned()]), BTreeSet::from_iter),
    })
}

fn action(value: &Value<'_>) -> Option<String> {
    let known = value.cx.surroundings.known.actions;
    let words: Vec<_> = known.iter().map(|action| (*action, *action)).collect();
    value.choice(&words).map(str::to_owned)
}

/// An HTTP or HTTPS URL.
pub(super) fn web_address(value: &Value<'_>) -> Option<String> {
    let text = value.filled_text()?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match host {
        Some(host) if host.contains('@') => {
            value.cx.hide(value.span.clone());
            value.fail(
                format!("`{}` holds a user or password", value.path),
                "leave it out: an address must not contain a secret",
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
