//! `[models.NAME]` as plain values.
//!
//! Invariant: a key is never printed; two entries with the same address and key share their limits.

pub use greenroom_config::{ModelKind as Kind, Price};
use greenroom_protocol::Object;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// The name in the configuration: the model's id for runners.
    pub name: String,
    pub provider: ProviderKind,
    /// As the user wrote the provider, e.g. `groq`.
    pub provider_name: String,
    /// The provider's own name of the model.
    pub model: String,
    /// Without it that of the provider.
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub headers: BTreeMap<String, Secret>,
    pub proxy: Option<String>,
    pub allow_private: bool,
    /// For the whole of an answer; the run's deadline also counts.
    pub timeout: Duration,
    /// Between two pieces of an answer.
    pub idle_timeout: Duration,
    pub retries: u32,
    pub max_concurrent: Option<u32>,
    pub requests_per_minute: Option<u32>,
    /// Options of every request, below the caller's.
    pub options: Object,
    pub price: Option<Price>,
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// Whether the model takes tools by the wire; told to runners, not known without it.
    pub tool_calling: Option<bool>,
    pub kind: Kind,
    /// Rules of a scripted model; without it the built-in ones.
    pub script: Option<PathBuf>,
}

/// The wire that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// Chat completions, of OpenAI and of everyone who speaks the same.
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
    /// No network: rules in a file.
    Scripted,
}

/// A value that does not print itself.
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
    /// A model of which only the name, the wire and the provider's own name are known.
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
