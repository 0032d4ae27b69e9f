//! One request to a model, as every wire gets it.
//!
//! Invariant: media are here by value or by address, never by artifact; who asks is settled elsewhere.

use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelMessage;
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRequest {
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<ToolSpec>,
    /// The caller's options (`extra_args`), laid over those of the configuration.
    pub options: Object,
}

/// A tool that the model may ask for; the schema reaches it unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: Option<String>,
    pub parameters: Value,
}
