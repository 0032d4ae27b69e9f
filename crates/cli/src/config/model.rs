//! `[models.NAME]`: which provider, which of its models, and within what limits.
//!
//! Invariant: a provider is known or its wire and address are given; a key never stands in the file.

use super::reader::{Reader, Value};
use super::surface::web_address;
use greenroom_models::presets::{self, Preset};
use greenroom_models::{Kind, ModelSettings, Price, ProviderKind, Secret};
use std::time::Duration;

const KINDS: [(&str, Kind); 3] =
    [("chat", Kind::Chat), ("embedding", Kind::Embedding), ("rerank", Kind::Rerank)];

/// A model as it is configured, without its name.
pub(super) fn read(mut reader: Reader<'_>) -> Option<ModelSettings> {
    let preset = reader.require("provider").and_then(|value| provider(&value));
    let model = match preset {
        Some(preset) if preset.kind == ProviderKind::Scripted => reader.get("model"),
        _ => reader.require("model"),
    };
    let model = model.and_then(|value| value.filled_text()).unwrap_or("scripted").to_owned();
    let base_url = reader.get("base_url").and_then(|value| web_address(&value));
    let key = reader.get("api_key").map(|value| value.secret());
    let headers = reader.get("headers").and_then(|value| value.headers()).unwrap_or_default();
    let headers = headers.into_iter().map(|(name, value)| (name, Secret::new(value.expose())));
    let proxy = reader.get("proxy").and_then(|value| web_address(&value));
    let allow_private = reader.get("allow_private").and_then(|value| value.boolean());
    let mut seconds = |key, default| {
        let value: Option<Value<'_>> = reader.get(key);
        Duration::from_secs(value.and_then(|v| v.integer(1..=86_400)).unwrap_or(default))
    };
    let (timeout, idle_timeout) = (seconds("timeout_s", 600), seconds("idle_timeout_s", 120));
    let mut number = |key, max| reader.get(key).and_then(|value| value.integer(0..=max));
    let retries = number("retries", 10).unwrap_or(2);
    let (max_concurrent, per_minute) =
        (number("max_concurrent", 10_000), number("requests_per_minute", 1_000_000));
    let (context_window, max_output_tokens) =
        (number("context_window", 100_000_000), number("max_output_tokens", 100_000_000));
    let tool_calling = reader.get("tool_calling").and_then(|value| value.boolean());
    let options = reader.get("options").and_then(|value| value.object()).unwrap_or_default();
    let kind = reader.get("kind").and_then(|value| value.choice(&KINDS)).unwrap_or_default();
    let price = reader.get("price").and_then(|value| value.table()).map(|table| price(table, kind));
    let script = reader.get("script").and_then(|value| value.path());
    reader.finish();
    let preset = preset?;
    let limit = |number: Option<u64>| number.and_then(|n| u32::try_from(n).ok());
    Some(ModelSettings {
        provider_name: preset.name.to_owned(),
        base_url,
        api_key: key.flatten().map(|key| Secret::new(key.expose())),
        headers: headers.collect(),
        proxy,
        // A provider that runs beside the host is private by its nature.
        allow_private: allow_private.unwrap_or(preset.local),
        timeout,
        idle_timeout,
        retries: u32::try_from(retries).unwrap_or(0),
        max_concurrent: limit(max_concurrent),
        requests_per_minute: limit(per_minute),
        options,
        price,
        context_window,
        max_output_tokens,
        tool_calling,
        kind,
        script,
        ..ModelSettings::new("", preset.kind, &model)
    })
}

fn provider(value: &Value<'_>) -> Option<&'static Preset> {
    let known: Vec<(&'static str, &'static Preset)> =
        presets::NAMES.iter().filter_map(|name| Some((*name, presets::find(name)?))).collect();
    value.choice(&known)
}

/// US dollars for a million tokens. A price that was forgotten is not taken for none.
fn price(mut reader: Reader<'_>, kind: Kind) -> Price {
    let dollars = |value: Option<Value<'_>>| value.and_then(|value| value.amount());
    let input = dollars(reader.require("input"));
    let output = match kind {
        Kind::Chat => dollars(reader.require("output")),
        Kind::Embedding | Kind::Rerank => dollars(reader.get("output")),
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
