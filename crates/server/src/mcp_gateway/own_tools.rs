//! The host's own methods as MCP tools.
//!
//! Invariant: a tool is one method of the proxy with the same parameters, except that bytes may be given as text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_host::{RunProgram, Scopes};
use greenroom_protocol::Object;
use greenroom_protocol::api::Method;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnTool {
    HistoryPage,
    HistorySearch,
    KnowledgeRetrieve,
    ArtifactRead,
    ArtifactCreate,
    StateGet,
    StateSet,
    StorageGet,
    StorageSet,
    StorageList,
    StorageDelete,
    RequestAction,
}

impl OwnTool {
    pub(super) const ALL: [OwnTool; 12] = [
        OwnTool::HistoryPage,
        OwnTool::HistorySearch,
        OwnTool::KnowledgeRetrieve,
        OwnTool::ArtifactRead,
        OwnTool::ArtifactCreate,
        OwnTool::StateGet,
        OwnTool::StateSet,
        OwnTool::StorageGet,
        OwnTool::StorageSet,
        OwnTool::StorageList,
        OwnTool::StorageDelete,
        OwnTool::RequestAction,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            OwnTool::HistoryPage => "history_page",
            OwnTool::HistorySearch => "history_search",
            OwnTool::KnowledgeRetrieve => "knowledge_retrieve",
            OwnTool::ArtifactRead => "artifact_read",
            OwnTool::ArtifactCreate => "artifact_create",
            OwnTool::StateGet => "state_get",
            OwnTool::StateSet => "state_set",
            OwnTool::StorageGet => "storage_get",
            OwnTool::StorageSet => "storage_set",
            OwnTool::StorageList => "storage_list",
            OwnTool::StorageDelete => "storage_delete",
            OwnTool::RequestAction => "request_action",
        }
    }

    pub(super) fn method(self) -> Method {
        match self {
            OwnTool::HistoryPage => Method::HistoryPage,
            OwnTool::HistorySearch => Method::HistorySearch,
            OwnTool::KnowledgeRetrieve => Method::KnowledgeRetrieve,
            OwnTool::ArtifactRead => Method::ArtifactsReadRange,
            OwnTool::ArtifactCreate => Method::ArtifactsCreate,
            OwnTool::StateGet => Method::StateGet,
            OwnTool::StateSet => Method::StateSet,
            OwnTool::StorageGet => Method::StorageGet,
            OwnTool::StorageSet => Method::StorageSet,
            OwnTool::StorageList => Method::StorageList,
            OwnTool::StorageDelete => Method::StorageDelete,
            OwnTool::RequestAction => Method::PlatformRequestAction,
        }
    }

    pub(super) fn is_granted(self, program: &RunProgram) -> bool {
        let has_names = match self {
            OwnTool::KnowledgeRetrieve => !program.scopes().knowledge.is_empty(),
            _ => true,
        };
        has_names && program.is_granted(self.method())
    }

    fn is_read(self) -> bool {
        !matches!(
            self,
            OwnTool::ArtifactCreate
                | OwnTool::StateSet
                | OwnTool::StorageSet
                | OwnTool::StorageDelete
                | OwnTool::RequestAction
        )
    }

    /// The parameters of the method; the error is for the client.
    pub(super) fn params(self, mut arguments: Object) -> Result<Object, String> {
        let field = match self {
            OwnTool::ArtifactCreate => "content_base64",
            OwnTool::StorageSet => "value",
            _ => return Ok(arguments),
        };
        let text = arguments.remove("text");
        let bytes = arguments.remove("base64");
        let encoded = match (text, bytes) {
            (Some(Value::String(text)), None) => STANDARD.encode(text),
            (None, Some(Value::String(bytes))) => bytes,
            _ => return Err("exactly one of `text` and `base64` is needed, a string".to_owned()),
        };
        arguments.insert(field.to_owned(), encoded.into());
        Ok(arguments)
    }

    /// The content of an answer.
    pub(super) fn content(self, answer: &Value) -> Value {
        let bytes = answer.get("data_base64").and_then(Value::as_str);
        match (self, bytes) {
            (OwnTool::ArtifactRead | OwnTool::StorageGet, Some(encoded)) => {
                let bytes = STANDARD.decode(encoded).unwrap_or_default();
                let mut shown = answer.clone();
                // Text as text: a model reads base64 badly.
                if let (Ok(text), Some(fields)) = (String::from_utf8(bytes), shown.as_object_mut())
                {
                    fields.remove("data_base64");
                    fields.insert("text".to_owned(), text.into());
                }
                json!([{"type": "text", "text": shown.to_string()}])
            }
            _ => json!([{"type": "text", "text": answer.to_string()}]),
        }
    }
}

/// What a model is told of a tool: description, properties and required ones.
type Shape = (&'static str, Value, &'static [&'static str]);

/// The tool as `tools/list` shows it.
pub(super) fn described(tool: OwnTool, scopes: &Scopes) -> Value {
    let (about, properties, required) = shape(tool, scopes);
    json!({"name": tool.name(), "description": about,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": tool.is_read(), "openWorldHint": false}})
}

fn shape(tool: OwnTool, scopes: &Scopes) -> Shape {
    match tool {
        OwnTool::HistoryPage => (
            "Read earlier messages of this conversation, a page at a time, newest page first.",
            json!({"limit": count("Messages per page."),
                "before_cursor": text("`next_cursor` of the page before, for older messages.")}),
            &[],
        ),
        OwnTool::HistorySearch => (
            "Search the messages of this conversation by words.",
            json!({"query": text("What to search for."), "top_k": count("How many hits.")}),
            &["query"],
        ),
        OwnTool::KnowledgeRetrieve => (
            "Find passages in a knowledge base.",
            json!({"kb_id": one_of(&scopes.knowledge, "Which knowledge base."),
                "query_text": text("What to search for."), "top_k": count("How many passages.")}),
            &["kb_id", "query_text"],
        ),
        OwnTool::ArtifactRead => (
            "Read a file of this conversation, as a whole or in parts.",
            json!({"artifact_id": text("The id of the file."), "length": count("How many bytes."),
                "offset": {"type": "integer", "minimum": 0, "description": "First byte."}}),
            &["artifact_id"],
        ),
        OwnTool::ArtifactCreate => (
            "Give the user a file: store it as an artifact of this conversation.",
            json!({"name": text("The file name."), "mime_type": text("Its MIME type."),
                "text": text("The content, if it is text."), "base64": bytes()}),
            &["name"],
        ),
        OwnTool::RequestAction => (
            "Ask the host to act on the platform of this conversation. A person may have to approve it first; \
             the call waits for that.",
            json!({"action": one_of(&scopes.actions, "What to do."),
                "target": {"type": "object", "description": "On what."},
                "payload": {"type": "object", "description": "With what."}}),
            &["action"],
        ),
        OwnTool::StateGet | OwnTool::StateSet => state(tool, scopes),
        OwnTool::StorageGet
        | OwnTool::StorageSet
        | OwnTool::StorageList
        | OwnTool::StorageDelete => storage(tool, scopes),
    }
}

fn state(tool: OwnTool, scopes: &Scopes) -> Shape {
    let scope = one_of(&scopes.state, "Whose state.");
    match tool {
        OwnTool::StateSet => (
            "Store a small JSON value, which later runs can read.",
            json!({"scope": scope, "key": key(), "value": {"description": "Any JSON."},
                "if_version": {"type": "integer", "minimum": 0,
                    "description": "Store only over this version; 0 for none."}}),
            &["scope", "key", "value"],
        ),
        _ => (
            "Read a small JSON value that was stored with `state_set`.",
            json!({"scope": scope, "key": key()}),
            &["scope", "key"],
        ),
    }
}

fn storage(tool: OwnTool, scopes: &Scopes) -> Shape {
    let area = one_of(&scopes.storage, "Which storage area.");
    match tool {
        OwnTool::StorageSet => (
            "Write bytes to storage.",
            json!({"area": area, "key": key(),
                "text": text("The content, if it is text."), "base64": bytes()}),
            &["area", "key"],
        ),
        OwnTool::StorageList => (
            "List the keys of a storage area.",
            json!({"area": area, "prefix": text("Keys with this prefix only."),
                "cursor": text("`next_cursor` of the page before.")}),
            &["area"],
        ),
        OwnTool::StorageDelete => {
            ("Delete a key from storage.", json!({"area": area, "key": key()}), &["area", "key"])
        }
        _ => ("Read bytes from storage.", json!({"area": area, "key": key()}), &["area", "key"]),
    }
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn one_of(names: &[String], about: &str) -> Value {
    json!({"type": "string", "enum": names, "description": about})
}

fn count(about: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": about})
}

fn bytes() -> Value {
    text("Bytes in base64, instead of `text`.")
}

fn key() -> Value {
    text("The key, at most 256 bytes.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn bytes_are_given_as_text_or_base64() {
        let create = |value| OwnTool::ArtifactCreate.params(object(value));
        let made = create(json!({"name": "a.txt", "text": "hé"})).unwrap();
        assert_eq!(Value::Object(made), json!({"name": "a.txt", "content_base64": "aMOp"}));
        let set = OwnTool::StorageSet.params(object(json!({"area": "plugin", "base64": "AA=="})));
        assert_eq!(Value::Object(set.unwrap()), json!({"area": "plugin", "value": "AA=="}));
        assert!(create(json!({"name": "a"})).is_err());
        assert!(create(json!({"name": "a", "text": "x", "base64": "AA=="})).is_err());
        assert!(create(json!({"name": "a", "text": 7})).is_err());
    }

    #[test]
    fn bytes_that_are_text_are_shown_as_text() {
        let text = |answer| OwnTool::StorageGet.content(&answer)[0]["text"].clone();
        let shown = text(json!({"data_base64": "aMOp", "size_bytes": 3}));
        assert_eq!(shown, r#"{"size_bytes":3,"text":"hé"}"#);
        let raw = text(json!({"data_base64": "//8=", "size_bytes": 2}));
        assert_eq!(raw, r#"{"data_base64":"//8=","size_bytes":2}"#);
    }
}
