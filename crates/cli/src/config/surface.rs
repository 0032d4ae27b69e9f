//! `[surfaces.NAME]`: where output goes.
//!
//! Invariant: an address comes from the configuration alone, never from a sender.

use super::Secret;
use super::reader::{Reader, Value, clean};
use greenroom_surfaces::{Surface, TextMax, Webhook, action};
use std::collections::BTreeSet;
use std::time::Duration;

/// A surface, and the secrets that were read for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurfaceEntry {
    pub surface: Surface,
    pub secrets: Vec<Secret>,
}

type ReadEntry = fn(&mut Reader<'_>) -> SurfaceEntry;

/// How the keys of each kind are read.
const KINDS: [(&str, ReadEntry); 1] = [("webhook", webhook)];

impl SurfaceEntry {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let kind = reader.require("kind").and_then(|value| value.choice(&KINDS));
        let entry = kind.unwrap_or(webhook)(&mut reader);
        reader.finish();
        kind.map(|_| entry)
    }
}

fn webhook(reader: &mut Reader<'_>) -> SurfaceEntry {
    let url = reader.require("url").and_then(|value| web_address(&value));
    let secret = reader.get("secret").and_then(|value| value.secret());
    let timeout_s = reader.get("timeout_s").and_then(|v| v.integer(1..=300)).unwrap_or(10);
    let text_max = reader.get("max_message_size").and_then(|v| v.integer(1..=10_000_000));
    let actions = reader.get("actions").and_then(|v| v.list(action_name));
    let webhook = Webhook {
        url: url.unwrap_or_default(),
        secret: secret.as_ref().map(|secret| secret.expose().as_bytes().to_vec()),
        allow_private: reader.get("allow_private").and_then(|v| v.boolean()).unwrap_or(false),
        idempotent: reader.get("idempotent").and_then(|v| v.boolean()).unwrap_or(false),
        timeout: Duration::from_secs(timeout_s),
        text_max: text_max.map(|max| TextMax::Characters(max as usize)),
        actions: actions
            .map_or_else(|| BTreeSet::from([action::MESSAGE_SEND.to_owned()]), BTreeSet::from_iter),
    };
    SurfaceEntry { surface: Surface::Webhook(webhook), secrets: secret.into_iter().collect() }
}

fn action_name(value: &Value<'_>) -> Option<String> {
    value.choice(&action::ALL.map(|name| (name, name))).map(str::to_owned)
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
