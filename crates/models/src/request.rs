//! A model request, independent of the wire.
//!
//! Invariant: media are inline or URLs, never artifacts; authorization happens elsewhere.

use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelMessage;
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRequest {
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<ToolSpec>,
    /// The caller's options (`extra_args`), which override the configured ones.
    pub options: Object,
}

/// A tool that the model may call; the schema is passed on unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: Option<String>,
    pub parameters: Value,
}
