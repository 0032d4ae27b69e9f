//! Reading JSON that others wrote, and writing events.
//!
//! Invariant: what is missing is an error with its name, or absent; nothing here panics on any value.

use greenroom_protocol::content::MediaElement;
use greenroom_protocol::{ContentElement, Object};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Twelve bytes of a hash, for ids.
pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn needed_list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    let found = value.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
    found.as_array().map(Vec::as_slice).ok_or_else(|| format!("`{key}` is not a list"))
}

/// Arguments as they are sent: JSON in a text, which may be broken.
pub(super) fn args(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Everything of a body that is not what a request is made of.
pub(super) fn options(body: &Value, without: &[&str]) -> Object {
    let fields = body.as_object().into_iter().flatten();
    let fields =
        fields.filter(|(name, value)| !without.contains(&name.as_str()) && !value.is_null());
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

pub(super) fn event(out: &mut String, name: &str, data: &Value) {
    out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
}

pub(super) fn data(out: &mut String, data: &Value) {
    out.push_str(&format!("data: {data}\n\n"));
}

/// Media by address; one that holds its bytes is taken apart.
pub(super) fn media_of_url(url: &str) -> MediaElement {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((mime_type, bytes)) => inline_media(mime_type, bytes),
        None => MediaElement { url: Some(url.to_owned()), ..MediaElement::default() },
    }
}

pub(super) fn inline_media(mime_type: &str, bytes: &str) -> MediaElement {
    MediaElement {
        data_base64: Some(bytes.to_owned()),
        mime_type: Some(mime_type.to_owned()),
        ..MediaElement::default()
    }
}

/// What kind of element media are, by their type.
pub(super) fn element(media: MediaElement) -> ContentElement {
    match media.mime_type.as_deref().and_then(|mime| mime.split('/').next()) {
        Some("image") => ContentElement::Image(media),
        Some("audio") => ContentElement::Audio(media),
        Some("video") => ContentElement::Video(media),
        _ => ContentElement::File(media),
    }
}

/// Puts a value under a key unless there is none: unknown is absent, never 0.
pub(super) fn put(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let (Some(fields), Some(value)) = (object.as_object_mut(), value) {
        fields.insert(key.to_owned(), value.into());
    }
}
