//! The agent's config with defaults.
//!
//! Invariant: unknown keys and invalid values fail the run with `config.invalid`, and the message names the keys.

pub(crate) mod keys;

use crate::texts::Texts;
use greenroom_sdk::{Object, RunCtx, RunFailure, Value};
use serde::Deserialize;

pub(crate) const PROMPT: &str = "You are a helpful assistant. Answer in the language of the user.";
pub(crate) const TOOL_ROUNDS: u32 = 8;
pub(crate) const TOOLS_IN_PROMPT: usize = 40;
pub(crate) const CONTEXT_TOKENS: u64 = 32_000;
pub(crate) const COMPACT_AT_PERCENT: u64 = 80;
pub(crate) const MODEL_TIMEOUT_S: u64 = 120;
pub(crate) const KNOWLEDGE_TOP_K: u32 = 5;

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) prompt: String,
    /// Default: the first granted chat model.
    pub(crate) model: String,
    /// Tried in this order if the model fails.
    pub(crate) fallback_models: Vec<String>,
    pub(crate) temperature: Option<f64>,
    pub(crate) reasoning: Reasoning,
    /// Passed to the provider with every request.
    pub(crate) options: Object,
    pub(crate) tool_calling: ToolCalling,
    pub(crate) max_tool_rounds: u32,
    /// With more tools, only relevant ones and `search_tools` are offered.
    pub(crate) tools_in_prompt: usize,
    /// The context window of models for which the host knows none.
    pub(crate) context_tokens: u64,
    /// The part of the window at which the conversation is compacted.
    pub(crate) compact_at_percent: u64,
    /// 0 means no limit, as for the next two.
    pub(crate) max_tokens_per_run: u64,
    pub(crate) max_cost_usd: f64,
    pub(crate) max_seconds: u64,
    /// Idle timeout of a model.
    pub(crate) model_timeout_s: u64,
    /// Passages of knowledge per run; 0 disables retrieval.
    pub(crate) knowledge_top_k: u32,
    /// Default: the host's, else UTC.
    pub(crate) timezone: String,
    /// Whether user messages start with the sender's name.
    pub(crate) sender_names: bool,
    /// Whether text that starts with `/` may be a command.
    pub(crate) commands: bool,
}

/// Reasoning effort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reasoning {
    /// The provider's default.
    #[default]
    Default,
    None,
    Low,
    Medium,
    High,
}

/// How tools are offered to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolCalling {
    /// By the model's capabilities.
    #[default]
    Auto,
    Native,
    /// In the prompt, for models without native tool calls.
    Prompted,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            prompt: PROMPT.to_owned(),
            model: String::new(),
            fallback_models: Vec::new(),
            temperature: None,
            reasoning: Reasoning::Default,
            options: Object::new(),
            tool_calling: ToolCalling::Auto,
            max_tool_rounds: TOOL_ROUNDS,
            tools_in_prompt: TOOLS_IN_PROMPT,
            context_tokens: CONTEXT_TOKENS,
            compact_at_percent: COMPACT_AT_PERCENT,
            max_tokens_per_run: 0,
            max_cost_usd: 0.0,
            max_seconds: 0,
            model_timeout_s: MODEL_TIMEOUT_S,
            knowledge_top_k: KNOWLEDGE_TOP_K,
            timezone: String::new(),
            sender_names: false,
            commands: true,
        }
    }
}

impl Config {
    pub(crate) fn load(ctx: &RunCtx) -> Result<Self, RunFailure> {
        let texts = Texts::for_text(ctx.text());
        Self::parse(&ctx.config, texts)
            .map_err(|problem| RunFailure::new("config.invalid", problem))
    }

    /// Null means the default, because forms write null for an empty field. The error is in the language of `texts`.
    pub(crate) fn parse(config: &Object, texts: Texts) -> Result<Self, String> {
        let given: Object = config.clone().into_iter().filter(|(_, v)| !v.is_null()).collect();
        match keys::error(&given, texts) {
            None => serde_json::from_value(Value::Object(given)).map_err(|error| error.to_string()),
            Some(wrong) => Err(wrong),
        }
    }

    /// Options of every request; the dedicated settings override `options`.
    pub(crate) fn model_options(&self) -> Object {
        let mut options = self.options.clone();
        if let Some(temperature) = self.temperature {
            options.insert("temperature".to_owned(), temperature.into());
        }
        let reasoning = match self.reasoning {
            Reasoning::Default => return options,
            Reasoning::None => "none",
            Reasoning::Low => "low",
            Reasoning::Medium => "medium",
            Reasoning::High => "high",
        };
        options.insert("reasoning".to_owned(), reasoning.into());
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn read(config: Value) -> Result<Config, String> {
        Config::parse(config.as_object().expect("an object"), Texts::English)
    }

    #[test]
    fn missing_keys_and_nulls_are_defaults() {
        for config in [json!({}), json!({"prompt": null, "temperature": null})] {
            let config = read(config).unwrap();
            assert_eq!(config.prompt, PROMPT);
            assert_eq!((config.max_tool_rounds, config.tools_in_prompt), (8, 40));
            assert_eq!((config.context_tokens, config.compact_at_percent), (32_000, 80));
            assert!(config.commands);
            assert_eq!(config.model_options(), Object::new());
        }
    }

    #[test]
    fn dedicated_settings_override_options() {
        let config = read(json!({"temperature": 0.5, "reasoning": "low",
            "options": {"temperature": 1, "top_p": 0.9}}));
        let expected = json!({"temperature": 0.5, "top_p": 0.9, "reasoning": "low"});
        assert_eq!(Value::Object(config.unwrap().model_options()), expected);
    }

    #[test]
    fn invalid_keys_are_named() {
        for (config, message) in [
            (json!({"max_tool_rounds": "8"}), "`max_tool_rounds`: expected an integer"),
            (json!({"model": 7, "prompt": "p"}), "`model`: expected a string"),
            (json!({"promt": "p"}), "unknown field `promt`: did you mean `prompt`?"),
            (json!({"reasoning": "wild"}), "`reasoning`: expected one of `default`, `none`"),
            (json!({"compact_at_percent": 100}), "`compact_at_percent`: expected 10 to 95"),
            (json!({"max_cost_usd": -1}), "`max_cost_usd`: expected 0 or more"),
            (json!({"max_seconds": -1}), "`max_seconds`: expected 0 or more"),
            (json!({"timezone": "Mars/Base"}), "`timezone`: expected the name of a time zone"),
        ] {
            let error = read(config).unwrap_err();
            let expected = format!("invalid agent config: {message}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
