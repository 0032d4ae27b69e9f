//! Translates content elements and attachments to LangBot's form and back.
//!
//! Invariant: bytes that the host sends with an element are inline; any other artifact appears as `artifact:ID`
//! in place of a URL, and becomes a reference again when a plugin returns it.

use super::Dialect;
use serde_json::{Map, Value, json};

/// Prefix of an artifact id in place of a URL.
pub(super) const ARTIFACT: &str = "artifact:";

/// One of our elements in LangBot's form.
pub(crate) fn to_langbot(element: &Value) -> Value {
    let text = |key: &str| element[key].as_str();
    let kind = text("type").unwrap_or_default();
    if kind == "text" {
        return json!({"type": "text", "text": element["text"]});
    }
    let address = text("artifact_id").map(|id| format!("{ARTIFACT}{id}"));
    let address = address.or_else(|| text("url").map(str::to_owned));
    let mime_type = text("mime_type").unwrap_or("application/octet-stream");
    let data = text("data_base64").map(|data| format!("data:{mime_type};base64,{data}"));
    let name = text("name").unwrap_or(kind);
    match (kind, address, data) {
        ("image", _, Some(data)) => json!({"type": "image_base64", "image_base64": data}),
        (_, _, Some(data)) => {
            json!({"type": "file_base64", "file_base64": data, "file_name": name})
        }
        ("image", url, None) => json!({"type": "image_url", "image_url": {"url": url}}),
        (_, url, None) => json!({"type": "file_url", "file_url": url, "file_name": name}),
    }
}

/// One of LangBot's elements in our form. What is missing stays missing: the host checks it.
pub(crate) fn from_langbot(element: &Value) -> Value {
    let text = |key: &str| element[key].as_str();
    let name = text("file_name");
    match text("type").unwrap_or_default() {
        "text" => json!({"type": "text", "text": text("text").unwrap_or_default()}),
        "image_url" => media("image", element["image_url"]["url"].as_str(), None, name),
        "image_base64" => media("image", None, text("image_base64"), name),
        "file_url" => media("file", text("file_url"), None, name),
        "file_base64" => media("file", None, text("file_base64"), name),
        // Already in our form, or of an unknown kind: the host checks it.
        _ => element.clone(),
    }
}

/// The content of a message in our form: text, or elements.
pub(crate) fn message_content(content: &Value) -> Value {
    match content {
        Value::Array(elements) => elements.iter().map(from_langbot).collect(),
        Value::Null => Value::Null,
        other => other.clone(),
    }
}

/// The text of LangBot's content.
pub(crate) fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(elements) => {
            let texts = elements.iter().filter_map(|element| element["text"].as_str());
            Some(texts.collect())
        }
        _ => None,
    }
}

/// One of our attachments as a content element, for inputs that only name it there.
pub(crate) fn element(artifact: &Value) -> Value {
    let kind = match kind_of(artifact["mime_type"].as_str()) {
        "image" => "image",
        _ => "file",
    };
    json!({"type": kind, "artifact_id": artifact["artifact_id"], "data_base64": artifact["data_base64"],
        "mime_type": artifact["mime_type"], "name": artifact["name"]})
}

/// A media element or an attachment in the form of LangBot's attachments, which refuse unknown fields.
pub(crate) fn attachment(media: &Value, dialect: Dialect) -> Value {
    let text = |key: &str| media[key].as_str();
    let mime_type = text("mime_type");
    let kind = match text("type") {
        Some("audio") => "voice",
        Some("image") => "image",
        _ => kind_of(mime_type),
    };
    let content = text("data_base64").map(|data| {
        format!("data:{};base64,{data}", mime_type.unwrap_or("application/octet-stream"))
    });
    let source = match (&content, text("url")) {
        (Some(_), _) => "base64",
        (None, Some(_)) => "url",
        (None, None) => "artifact",
    };
    let mut attachment = json!({
        "id": media["artifact_id"], "type": kind, "mime_type": mime_type, "size": media["size_bytes"],
        "name": media["name"], "url": media["url"], "content": content, "source": source,
    });
    if dialect == Dialect::Runner {
        attachment["ref"] = media["artifact_id"].clone();
    }
    attachment
}

fn kind_of(mime_type: Option<&str>) -> &'static str {
    match mime_type.and_then(|mime| mime.split('/').next()) {
        Some("image") => "image",
        Some("audio") => "voice",
        _ => "file",
    }
}

fn media(kind: &str, address: Option<&str>, data: Option<&str>, name: Option<&str>) -> Value {
    let mut media = Map::new();
    let mut put = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            media.insert(key.to_owned(), value.into());
        }
    };
    put("name", name);
    if let Some(address) = address {
        match address.strip_prefix(ARTIFACT) {
            Some(id) => put("artifact_id", Some(id)),
            None => put("url", Some(address)),
        }
    }
    let mut kind = kind;
    if let Some(data) = data {
        let (mime_type, bytes) = split_data(data);
        let mime_type = mime_type.unwrap_or_else(|| guessed(kind, bytes));
        put("data_base64", Some(bytes));
        put("mime_type", Some(mime_type));
        kind = match mime_type.split('/').next() {
            Some("image") => "image",
            Some("audio") => "audio",
            Some("video") => "video",
            _ => kind,
        };
    }
    put("type", Some(kind));
    Value::Object(media)
}

/// The type and the bytes of a `data:` URL, or bytes alone.
fn split_data(data: &str) -> (Option<&str>, &str) {
    let split = data.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    match split {
        Some((head, bytes)) => (head.split(';').next().filter(|mime| !mime.is_empty()), bytes),
        None => (None, data),
    }
}

/// The type of an image by its first bytes.
fn guessed(kind: &str, base64: &str) -> &'static str {
    let beginnings = [
        ("/9j/", "image/jpeg"),
        ("R0lG", "image/gif"),
        ("UklG", "image/webp"),
        ("iVBOR", "image/png"),
    ];
    let found = beginnings.iter().find(|(beginning, _)| base64.starts_with(beginning));
    match (found, kind) {
        (Some((_, mime_type)), _) => mime_type,
        (None, "image") => "image/png",
        (None, _) => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_comes_back_as_it_went() {
        for element in [
            json!({"type": "text", "text": "hi"}),
            json!({"type": "image", "url": "https://example.com/a.png"}),
            json!({"type": "image", "artifact_id": "art_1"}),
            json!({"type": "image", "data_base64": "iVBORw0K", "mime_type": "image/png"}),
            json!({"type": "file", "artifact_id": "art_2", "name": "a.pdf"}),
            json!({"type": "audio", "data_base64": "AAAA", "mime_type": "audio/wav", "name": "a.wav"}),
        ] {
            assert_eq!(from_langbot(&to_langbot(&element)), element);
        }
    }

    #[test]
    fn a_picture_without_its_type_gets_the_one_of_its_first_bytes() {
        let picture = from_langbot(&json!({"type": "image_base64", "image_base64": "/9j/4AAQ"}));
        assert_eq!(
            picture,
            json!({"type": "image", "data_base64": "/9j/4AAQ", "mime_type": "image/jpeg"})
        );
    }

    #[test]
    fn an_attachment_has_only_fields_that_the_sdk_takes() {
        let artifact = json!({"artifact_id": "art_1", "name": "a.png", "mime_type": "image/png",
            "size_bytes": 5, "sha256": "00", "metadata": {"x": 1}, "data_base64": "iVBOR"});
        let older = json!({"id": "art_1", "type": "image", "mime_type": "image/png", "size": 5,
            "name": "a.png", "url": null, "content": "data:image/png;base64,iVBOR",
            "source": "base64"});
        assert_eq!(attachment(&artifact, Dialect::AgentRunner), older);
        let mut newer = older;
        newer["ref"] = "art_1".into();
        assert_eq!(attachment(&artifact, Dialect::Runner), newer);
        let large = attachment(&json!({"artifact_id": "art_2"}), Dialect::AgentRunner);
        assert_eq!((&large["source"], &large["content"]), (&json!("artifact"), &Value::Null));
    }
}
