//! `Command` components of a plugin: together they are one runner, `commands`, which answers slash commands.
//!
//! Invariant: a command ends its run itself; everything it returns becomes a message.

use super::content::from_langbot;
use super::context::session;
use greenroom_protocol::AgentRunContext;
use serde_json::{Value, json};

pub(super) const KIND: &str = "Command";
/// The name of the runner.
pub(super) const RUNNER: &str = "commands";
/// A user without rights of an administrator.
const PRIVILEGE: u8 = 1;

/// The manifest of the runner, from those of its components.
pub(super) fn manifest(components: &[&Value]) -> Value {
    let name = |manifest: &&Value| manifest["metadata"]["name"].clone();
    let names: Vec<Value> = components.iter().map(name).collect();
    json!({
        "kind": KIND,
        "metadata": {"name": RUNNER, "label": {"en_US": "Commands", "zh_Hans": "命令"}},
        "spec": {"usages": ["agent"], "commands": names},
    })
}

/// The data of the action `execute_command`; `number` is the id of the request, by which replies find the run.
pub(super) fn request(number: i64, context: &AgentRunContext) -> Value {
    let text = context.input.text.as_deref().unwrap_or_default().trim();
    let command = text.strip_prefix('/').unwrap_or(text);
    let params: Vec<&str> = command.split_whitespace().collect();
    let name = params.first().copied().unwrap_or_default();
    json!({"command_context": {
        "query_id": number,
        "session": session(context),
        "command_text": command,
        "full_command_text": text,
        "command": name,
        "crt_command": name,
        "params": params,
        "crt_params": params.get(1..).unwrap_or_default(),
        "privilege": PRIVILEGE,
    }})
}

/// The content of the message that one return value of a command becomes; none if it is empty.
pub(super) fn content(returned: &Value) -> Option<Value> {
    let text = |key: &str| returned[key].as_str().filter(|text| !text.is_empty());
    let mut elements = Vec::new();
    let told = text("text").or(text("error"));
    elements.extend(told.map(|text| json!({"type": "text", "text": text})));
    let image = text("image_url")
        .map(|url| json!({"type": "image_url", "image_url": {"url": url}}))
        .or_else(|| {
            let data = text("image_base64")?;
            Some(json!({"type": "image_base64", "image_base64": data}))
        });
    let file = text("file_url").map(
        |url| json!({"type": "file_url", "file_url": url, "file_name": returned["file_name"]}),
    );
    elements.extend(image.into_iter().chain(file).map(|element| from_langbot(&element)));
    match (told, elements.len()) {
        (_, 0) => None,
        (Some(text), 1) => Some(text.into()),
        _ => Some(elements.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_value_is_text_or_elements() {
        let returned = |value: Value| content(&value);
        assert_eq!(returned(json!({"text": "done", "image_url": null})), Some("done".into()));
        assert_eq!(
            returned(json!({"text": null, "error": "no such city"})),
            Some("no such city".into())
        );
        assert_eq!(
            returned(json!({"text": "see", "image_url": "https://example.com/a.png"})),
            Some(json!([{"type": "text", "text": "see"},
                {"type": "image", "url": "https://example.com/a.png"}]))
        );
        assert_eq!(returned(json!({"text": null})), None);
        assert_eq!(returned(json!({"text": ""})), None);
    }
}
