//! `[models.NAME]` as plain values.
//!
//! Invariant: a key is never printed; two entries with the same URL and key share their limits.

pub use greenroom_config::{ModelKind as Kind, Price};
use greenroom_protocol::Object;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// The name in the configuration, which is the model id for runners.
    pub name: String,
    pub provider: ProviderKind,
    /// The provider as configured, e.g. `groq`.
    pub provider_name: String,
    /// The provider's name of the model.
    pub model: String,
    /// Default: the provider's.
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub headers: BTreeMap<String, Secret>,
    pub proxy: Option<String>,
    pub allow_private: bool,
    /// For a complete response; the run's deadline also applies.
    pub timeout: Duration,
    /// Between two pieces of a response.
    pub idle_timeout: Duration,
    pub retries: u32,
    pub max_concurrent: Option<u32>,
    pub requests_per_minute: Option<u32>,
    /// Default options, overridden by the caller's.
    pub options: Object,
    pub price: Option<Price>,
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// Whether the model supports tool calls natively; passed to runners. Unknown if `None`.
    pub tool_calling: Option<bool>,
    pub kind: Kind,
    /// Rules of a scripted model; default: the built-in ones.
    pub script: Option<PathBuf>,
}

/// The wire format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// Chat completions of OpenAI and compatible providers.
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
    /// No network: rules in a file.
    Scripted,
}

/// A value that `Debug` does not print.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl ModelSettings {
    /// Settings with defaults.
    pub fn new(name: &str, provider: ProviderKind, model: &str) -> Self {
        Self {
            name: name.to_owned(),
            provider,
            provider_name: String::new(),
            model: model.to_owned(),
            base_url: None,
            api_key: None,
            headers: BTreeMap::new(),
            proxy: None,
            allow_private: false,
            timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            retries: 2,
            max_concurrent: None,
            requests_per_minute: None,
            options: Object::new(),
            price: None,
            context_window: None,
            max_output_tokens: None,
            tool_calling: None,
            kind: Kind::Chat,
            script: None,
        }
    }
}
