//! The agent's config, with defaults that work.

use greenroom_sdk::{Object, RunCtx, RunFailure, Value};
use serde::Deserialize;

pub(crate) const PROMPT: &str = "You are a helpful assistant. Answer in the language of the user.";
pub(crate) const TOOL_ROUNDS: u32 = 8;
pub(crate) const HISTORY_ITEMS: u32 = 50;

#[derive(Debug, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) prompt: String,
    pub(crate) model: String,
    pub(crate) max_tool_rounds: u32,
    pub(crate) history_items: u32,
    /// Handed to the provider with every request.
    pub(crate) options: Object,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            prompt: PROMPT.to_owned(),
            model: String::new(),
            max_tool_rounds: TOOL_ROUNDS,
            history_items: HISTORY_ITEMS,
            options: Object::new(),
        }
    }
}

impl Config {
    pub(crate) fn of(ctx: &RunCtx) -> Result<Self, RunFailure> {
        serde_json::from_value(Value::Object(ctx.config.clone())).map_err(|error| {
            RunFailure::new("config.invalid", format!("the agent's config: {error}"))
        })
    }
}
