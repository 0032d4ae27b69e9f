//! Context windows of known models, in tokens.
//!
//! Invariant: a window is never larger than what the provider documents; a configured `context_window` stands over it.

use crate::presets;
use crate::{Kind, ModelSettings, ProviderKind};

/// The window of an unknown model of a hosted provider: nearly all current ones have at least this.
const HOSTED: u64 = 128_000;

/// The beginnings of model names, in lower case and without the organisation. The longest that fits counts.
const WINDOWS: &[(&str, u64)] = &[
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("gpt-oss", 131_072),
    ("chatgpt-4o", 128_000),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("claude", 200_000),
    ("claude-2.0", 100_000),
    ("claude-instant", 100_000),
    ("gemini", 1_048_576),
    ("gemini-1.0", 32_768),
    ("gemma-2", 8_192),
    ("gemma-3", 131_072),
    ("deepseek", 128_000),
    ("deepseek-coder", 16_384),
    ("grok-2", 131_072),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
    ("grok-code", 256_000),
    ("mistral-large", 128_000),
    ("mistral-medium", 128_000),
    ("mistral-small", 128_000),
    ("mistral-nemo", 128_000),
    ("mistral-7b", 32_768),
    ("mixtral-8x7b", 32_768),
    ("mixtral-8x22b", 65_536),
    ("ministral", 128_000),
    ("codestral", 256_000),
    ("magistral", 128_000),
    ("devstral", 128_000),
    ("kimi", 131_072),
    ("kimi-k2-0905", 262_144),
    ("kimi-k2-thinking", 262_144),
    ("moonshot-v1-8k", 8_192),
    ("moonshot-v1-32k", 32_768),
    ("moonshot-v1-128k", 131_072),
    ("glm-4", 128_000),
    ("glm-4.5", 131_072),
    ("glm-4.6", 200_000),
    ("qwen-max", 32_768),
    ("qwen-plus", 131_072),
    ("qwen-turbo", 131_072),
    ("qwen2", 32_768),
    ("qwen2.5", 131_072),
    ("qwen3", 131_072),
    ("qwen3-max", 262_144),
    ("qwen3-coder", 262_144),
    ("qwq", 131_072),
    ("llama-3", 8_192),
    ("llama-3.1", 131_072),
    ("llama-3.2", 131_072),
    ("llama-3.3", 131_072),
    ("llama-4", 131_072),
    ("minimax-m1", 1_000_000),
    ("minimax-m2", 204_800),
    ("command-r", 128_000),
    ("command-a", 256_000),
    ("sonar", 127_072),
];

impl ModelSettings {
    /// The context window: the configured one, else that of a known model. A local server sets its own, which is
    /// usually smaller than the model's.
    pub fn window(&self) -> Option<u64> {
        let is_local = presets::find(&self.provider_name).is_some_and(|preset| preset.local);
        let has_window = self.kind == Kind::Chat && self.provider != ProviderKind::Scripted;
        let known = || {
            let hosted = self.base_url.is_none().then_some(HOSTED);
            known(&self.model).or(hosted).filter(|_| has_window && !is_local)
        };
        self.context_window.or_else(known)
    }
}

fn known(model: &str) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let fitting = WINDOWS.iter().filter(|(start, _)| name.starts_with(start));
    fitting.max_by_key(|(start, _)| start.len()).map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_counts() {
        assert_eq!(known("gpt-4.1-mini"), Some(1_047_576));
        assert_eq!(known("gpt-4-0613"), Some(8_192));
        assert_eq!(known("claude-sonnet-4-5"), Some(200_000));
        assert_eq!(known("meta-llama/Llama-3.3-70B-Instruct"), Some(131_072));
        assert_eq!(known("models/gemini-2.5-flash"), Some(1_048_576));
        assert_eq!(known("my-own"), None);
    }

    #[test]
    fn a_configured_window_stands_and_a_local_server_has_its_own() {
        let mut model = ModelSettings::new("m", ProviderKind::OpenAiChat, "gpt-4o");
        model.provider_name = "openai".to_owned();
        assert_eq!(model.window(), Some(128_000));
        model.context_window = Some(9_000);
        assert_eq!(model.window(), Some(9_000));
        model.context_window = None;
        model.model = "unknown".to_owned();
        assert_eq!(model.window(), Some(HOSTED));
        model.base_url = Some("http://127.0.0.1:1/v1".to_owned());
        assert_eq!(model.window(), None);
        model.provider_name = "vllm".to_owned();
        model.model = "qwen3-8b".to_owned();
        assert_eq!(model.window(), None);
    }
}
