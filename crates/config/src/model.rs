//! `[models.NAME]`: which provider, which of its models, and within what limits.
//!
//! Invariant: a provider is known; a key is never written in the file.

use super::Secret;
use super::reader::{Reader, Value};
use super::surface::web_address;
use greenroom_protocol::Object;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const KINDS: [(&str, ModelKind); 3] =
    [("chat", ModelKind::Chat), ("embedding", ModelKind::Embedding), ("rerank", ModelKind::Rerank)];
/// The provider that needs no network, and no name of a model.
pub const SCRIPTED: &str = "scripted";

#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub name: String,
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// `None`: the address of the provider.
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub headers: BTreeMap<String, Secret>,
    pub proxy: Option<String>,
    /// `None`: only if the provider usually runs on the same machine.
    pub allow_private: Option<bool>,
    /// For a whole answer; the deadline of the run also applies.
    pub timeout: Duration,
    /// Between two parts of an answer.
    pub idle_timeout: Duration,
    pub retries: u32,
    pub max_concurrent: Option<u32>,
    pub requests_per_minute: Option<u32>,
    /// Options of every request; those of a call take precedence.
    pub options: Object,
    pub price: Option<Price>,
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub tool_calling: Option<bool>,
    pub kind: ModelKind,
    /// Rules of a scripted model; `None`: the built-in ones.
    pub script: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelKind {
    #[default]
    Chat,
    Embedding,
    Rerank,
}

impl ModelKind {
    /// As it is configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embedding => "embedding",
            Self::Rerank => "rerank",
        }
    }
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cached_input: Option<f64>,
    pub cache_write: Option<f64>,
}

impl Model {
    /// A model without its name.
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let provider = reader.require("provider").and_then(|value| provider(&value));
        let model = match provider {
            Some(SCRIPTED) => reader.get("model"),
            _ => reader.require("model"),
        };
        let kind = reader.get("kind").and_then(|value| value.choice(&KINDS)).unwrap_or_default();
        let mut seconds = |key, default| {
            let value: Option<Value<'_>> = reader.get(key);
            Duration::from_secs(value.and_then(|v| v.integer(1..=86_400)).unwrap_or(default))
        };
        let (timeout, idle_timeout) = (seconds("timeout_s", 600), seconds("idle_timeout_s", 120));
        let mut number = |key, max| reader.get(key).and_then(|value| value.integer(0..=max));
        let small = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        let read = Self {
            name: String::new(),
            provider: provider.unwrap_or_default().to_owned(),
            model: model.and_then(|value| value.filled_text()).unwrap_or(SCRIPTED).to_owned(),
            timeout,
            idle_timeout,
            retries: small(number("retries", 10)).unwrap_or(2),
            max_concurrent: small(number("max_concurrent", 10_000)),
            requests_per_minute: small(number("requests_per_minute", 1_000_000)),
            context_window: number("context_window", 100_000_000),
            max_output_tokens: number("max_output_tokens", 100_000_000),
            base_url: reader.get("base_url").and_then(|value| web_address(&value)),
            api_key: reader.get("api_key").and_then(|value| value.secret()),
            headers: reader.get("headers").and_then(|value| value.headers()).unwrap_or_default(),
            proxy: reader.get("proxy").and_then(|value| web_address(&value)),
            allow_private: reader.get("allow_private").and_then(|value| value.boolean()),
            tool_calling: reader.get("tool_calling").and_then(|value| value.boolean()),
            options: reader.get("options").and_then(|value| value.object()).unwrap_or_default(),
            price: reader.get("price").and_then(|v| v.table()).map(|table| price(table, kind)),
            script: reader.get("script").and_then(|value| value.path()),
            kind,
        };
        reader.finish();
        provider.map(|_| read)
    }
}

fn provider(value: &Value<'_>) -> Option<&'static str> {
    let known = value.cx.surroundings.known.providers;
    let known: Vec<_> = known.iter().map(|name| (*name, *name)).collect();
    value.choice(&known)
}

/// US dollars for a million tokens. A missing price is a mistake, not zero.
fn price(mut reader: Reader<'_>, kind: ModelKind) -> Price {
    let dollars = |value: Option<Value<'_>>| value.and_then(|value| value.amount());
    let input = dollars(reader.require("input"));
    let output = match kind {
        ModelKind::Chat => dollars(reader.require("output")),
        ModelKind::Embedding | ModelKind::Rerank => dollars(reader.get("output")),
    };
    let price = Price {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        cached_input: dollars(reader.get("cached_input")),
        cache_write: dollars(reader.get("cache_write")),
    };
    reader.finish();
    price
}
