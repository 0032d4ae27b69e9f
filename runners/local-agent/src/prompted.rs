//! Tool calling for models without native support: tools in the prompt, calls parsed from the text.
//!
//! Invariant: the same tools give the same text, with unchanged schemas. Earlier calls are shown in the format that the
//! model is asked to use.

mod lead;
mod parse;
mod screen;

pub(crate) use parse::Parsed;
pub(crate) use screen::Screen;

use greenroom_sdk::protocol::{ContentElement, MessageContent};
use greenroom_sdk::{ModelMessage, ModelToolCall, Role, ToolResource, Value, json};

const HOW_TO_CALL: &str = r#"# Tools

You can call tools. To call one, write one JSON object on a line of its own:

{"tool": "NAME", "args": {}}

- `NAME` is the exact name of a tool below; `args` fits the JSON Schema of its parameters.
- You may make several calls: one object after the other.
- Write nothing behind your calls, and never make up a result: you are texts what each call gave.
- When you need no tool, answer in plain text without such an object."#;

/// The tools section of the prompt.
pub(crate) fn catalogue(tools: &[ToolResource]) -> String {
    let described = tools.iter().map(|tool| {
        let description = tool.description.as_deref().unwrap_or("(no description)");
        let schema = Value::Object(tool.parameters.clone());
        format!("\n\n## {}\n{description}\nparameters: {schema}", tool.tool_name)
    });
    std::iter::once(HOW_TO_CALL.to_owned()).chain(described).collect()
}

/// Messages without tool calls: calls as the model would have written them, the results of a turn as one user
/// message.
pub(crate) fn as_text(messages: &[ModelMessage]) -> Vec<ModelMessage> {
    let mut texts: Vec<ModelMessage> = Vec::with_capacity(messages.len());
    let mut last_is_result = false;
    for message in messages {
        let is_result = message.role == Role::Tool;
        let text = match message.role {
            Role::Tool => ModelMessage { content: Some(result(message)), ..plain(Role::User) },
            Role::Assistant => {
                ModelMessage { content: assistant_text(message), ..plain(Role::Assistant) }
            }
            Role::System | Role::User => message.clone(),
        };
        match texts.last_mut().filter(|_| last_is_result && is_result) {
            Some(before) => join(before, text.content),
            None => texts.push(text),
        }
        last_is_result = is_result;
    }
    texts
}

fn plain(role: Role) -> ModelMessage {
    ModelMessage::text(role, "")
}

fn assistant_text(message: &ModelMessage) -> Option<MessageContent> {
    if message.tool_calls.is_empty() {
        return message.content.clone();
    }
    let text_before = message.content.as_ref().map(MessageContent::text).unwrap_or_default();
    let calls = message.tool_calls.iter().map(call_text);
    let lines =
        Some(text_before).filter(|text_before| !text_before.is_empty()).into_iter().chain(calls);
    Some(MessageContent::Text(lines.collect::<Vec<_>>().join("\n")))
}

/// A call in the format that the model is asked to use.
fn call_text(call: &ModelToolCall) -> String {
    match &call.args_text {
        Some(text) => text.clone(),
        None => format!("{{\"tool\": {}, \"args\": {}}}", json!(call.name), call.args),
    }
}

fn result(message: &ModelMessage) -> MessageContent {
    let head = format!("Result of `{}`:", message.name.as_deref().unwrap_or("the call"));
    match &message.content {
        Some(MessageContent::Parts(parts)) => {
            let head = std::iter::once(ContentElement::Text { text: head });
            MessageContent::Parts(head.chain(parts.iter().cloned()).collect())
        }
        Some(MessageContent::Text(text)) => MessageContent::Text(format!("{head}\n{text}")),
        None => MessageContent::Text(format!("{head}\n(nothing)")),
    }
}

fn join(before: &mut ModelMessage, more: Option<MessageContent>) {
    let parts = |content: Option<MessageContent>| match content {
        Some(MessageContent::Parts(parts)) => parts,
        Some(MessageContent::Text(text)) => vec![ContentElement::Text { text }],
        None => Vec::new(),
    };
    before.content = Some(match (before.content.take(), more) {
        (Some(MessageContent::Text(one)), Some(MessageContent::Text(other))) => {
            MessageContent::Text(format!("{one}\n\n{other}"))
        }
        (one, other) => MessageContent::Parts([parts(one), parts(other)].concat()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> ToolResource {
        ToolResource {
            tool_name: name.to_owned(),
            description: Some(format!("Does {name}")),
            parameters: schema.as_object().cloned().unwrap_or_default(),
            ..ToolResource::default()
        }
    }

    #[test]
    fn the_catalogue_lists_every_tool_with_its_unchanged_schema() {
        let schema = json!({"type": "object", "properties": {"n": {"type": ["integer", "null"],
            "minimum": 1, "maximum": 9, "default": null, "enum": [1, 2, null]},
            "x": {"oneOf": [{"type": "string"}, {"const": 7}]}}, "additionalProperties": false});
        let tools = [tool("fs.read", schema.clone()), tool("clock", json!({"type": "object"}))];
        let text = catalogue(&tools);
        let line = text.lines().find_map(|line| line.strip_prefix("parameters: ")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(line).unwrap(), schema);
        assert!(text.contains("## fs.read\nDoes fs.read\n"), "{text}");
        assert!(text.contains("## clock\n"), "{text}");
        assert_eq!(text, catalogue(&tools));
    }

    #[test]
    fn calls_and_results_become_text_that_the_model_could_have_written() {
        let call = |id: &str, args: Value| ModelToolCall {
            id: id.to_owned(),
            name: "fs.read".to_owned(),
            args,
            args_text: None,
            args_error: None,
        };
        let answer = |id: &str, text: &str| ModelMessage {
            tool_call_id: Some(id.to_owned()),
            name: Some("fs.read".to_owned()),
            ..ModelMessage::text(Role::Tool, text)
        };
        let messages = [
            ModelMessage::text(Role::User, "read both"),
            ModelMessage {
                tool_calls: vec![call("1", json!({"path": "a"})), call("2", json!({"path": "b"}))],
                ..ModelMessage::text(Role::Assistant, "I look.")
            },
            answer("1", "one"),
            answer("2", "two"),
            ModelMessage::text(Role::User, "and?"),
        ];
        let texts = as_text(&messages);
        let text = |message: &ModelMessage| {
            message.content.as_ref().map(MessageContent::text).unwrap_or_default()
        };
        let texts: Vec<(Role, String)> = texts.iter().map(|one| (one.role, text(one))).collect();
        let calls = "I look.\n{\"tool\": \"fs.read\", \"args\": {\"path\":\"a\"}}\n\
                     {\"tool\": \"fs.read\", \"args\": {\"path\":\"b\"}}";
        let expected = [
            (Role::User, "read both".to_owned()),
            (Role::Assistant, calls.to_owned()),
            (Role::User, "Result of `fs.read`:\none\n\nResult of `fs.read`:\ntwo".to_owned()),
            (Role::User, "and?".to_owned()),
        ];
        assert_eq!(texts, expected);
    }
}
