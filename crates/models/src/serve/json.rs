//! Helpers to read foreign JSON and to write events.
//!
//! Invariant: a missing field is an error with its name, or absent; nothing here panics on any value.

use greenroom_protocol::content::MediaElement;
use greenroom_protocol::{ContentElement, Object};
use serde_json::Value;
use sha2::{Digest, Sha256};

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

pub(super) fn required_list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    let value = value.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("`{key}` must be a list"))
}

/// Arguments as sent: JSON text, possibly invalid.
pub(super) fn args(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// All fields of a body except these.
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

/// Media by URL; a `data:` URL becomes inline media.
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

/// The element for a media type.
pub(super) fn element(media: MediaElement) -> ContentElement {
    match media.mime_type.as_deref().and_then(|mime| mime.split('/').next()) {
        Some("image") => ContentElement::Image(media),
        Some("audio") => ContentElement::Audio(media),
        Some("video") => ContentElement::Video(media),
        _ => ContentElement::File(media),
    }
}

/// Sets a field unless the value is `None`: unknown is absent, never 0.
pub(super) fn put(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let (Some(fields), Some(value)) = (object.as_object_mut(), value) {
        fields.insert(key.to_owned(), value.into());
    }
}
