//! The properties of a request that rules can match.
//!
//! Invariant: derived from the request alone.

use super::rule::contains;
use crate::ModelRequest;
use greenroom_protocol::Role;
use greenroom_protocol::api::models::ModelMessage;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// The last user message.
    pub text: String,
    pub system: String,
    messages: &'a [ModelMessage],
    pub last_role: Option<Role>,
    /// Number of user messages.
    pub turn: u32,
    /// Model requests since the last user message, this one included.
    pub round: u32,
    /// Tool results since the last user message.
    pub results: Vec<ToolResult<'a>>,
    pub offered: Vec<&'a str>,
    /// The requested JSON schema; `true` for any JSON.
    pub requested_schema: Option<Value>,
}

#[derive(Debug)]
pub(super) struct ToolResult<'a> {
    pub name: &'a str,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Lang {
    Zh,
    En,
}

impl<'a> Facts<'a> {
    pub(super) fn new(request: &'a ModelRequest) -> Self {
        let messages = &request.messages;
        let last_user = messages.iter().rposition(|message| message.role == Role::User);
        let since = messages.get(last_user.map_or(0, |at| at + 1)..).unwrap_or_default();
        let count = |role, messages: &[ModelMessage]| {
            let count = messages.iter().filter(|message| message.role == role).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let system = messages.iter().filter(|message| message.role == Role::System).map(text_of);
        Self {
            text: last_user.map(|at| text_of(&messages[at])).unwrap_or_default(),
            system: system.collect::<Vec<_>>().join("\n"),
            messages,
            last_role: messages.last().map(|message| message.role),
            turn: count(Role::User, messages),
            round: count(Role::Assistant, since).saturating_add(1),
            results: since
                .iter()
                .filter(|message| message.role == Role::Tool)
                .map(|message| ToolResult {
                    name: tool_name(message, messages),
                    text: text_of(message),
                })
                .collect(),
            offered: request.tools.iter().map(|tool| tool.name.as_str()).collect(),
            requested_schema: requested_schema(request),
        }
    }

    /// Whether any message contains the text.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.messages.iter().any(|message| contains(&text_of(message), word))
    }

    /// Chinese if any character is Chinese, else English.
    pub(super) fn lang(&self) -> Lang {
        let chinese = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
        match self.text.chars().any(chinese) {
            true => Lang::Zh,
            false => Lang::En,
        }
    }
}

pub(super) fn text_of(message: &ModelMessage) -> String {
    message.content.as_ref().map(|content| content.text()).unwrap_or_default()
}

/// The message's own name, or that of the call it answers.
fn tool_name<'a>(message: &'a ModelMessage, messages: &'a [ModelMessage]) -> &'a str {
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let call = message
        .tool_call_id
        .as_ref()
        .and_then(|id| calls.into_iter().find(|call| call.id == *id))
        .map(|call| call.name.as_str());
    message.name.as_deref().or(call).unwrap_or_default()
}

/// In our form or OpenAI's.
fn requested_schema(request: &ModelRequest) -> Option<Value> {
    let format = request.options.get("response_format")?;
    match format.get("type")?.as_str()? {
        "json_schema" => {
            let schema = format.get("json_schema").unwrap_or(format).get("schema");
            Some(schema.cloned().unwrap_or(Value::Bool(true)))
        }
        "json" | "json_object" => Some(Value::Bool(true)),
        _ => None,
    }
}
