//! Tool calling for models that know text alone: the tools in the prompt, the calls parsed out of prose.

use greenroom_sdk::{ModelMessage, ModelToolCall, ToolResource};

pub(crate) struct Parsed {
    pub(crate) text_before: String,
    pub(crate) calls: Vec<ModelToolCall>,
}

pub(crate) fn catalogue(tools: &[ToolResource]) -> String {
    tools.iter().map(|tool| format!("- {}\n", tool.tool_name)).collect()
}

pub(crate) fn parse(text: &str, _is_known: &dyn Fn(&str) -> bool) -> Parsed {
    Parsed { text_before: text.to_owned(), calls: Vec::new() }
}

pub(crate) fn as_text(messages: &[ModelMessage]) -> Vec<ModelMessage> {
    messages.to_vec()
}

/// Holds back what may turn out to be a call.
#[derive(Default)]
pub(crate) struct Screen;

impl Screen {
    pub(crate) fn push(&mut self, delta: &str) -> String {
        delta.to_owned()
    }

    pub(crate) fn finish(self) -> String {
        String::new()
    }
}
