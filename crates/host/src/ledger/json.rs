//! JSON text in its stored form: objects, one line each, failures complete.

use greenroom_protocol::RunError;
use serde_json::value::{RawValue, to_raw_value};

pub(super) fn empty_object() -> Box<RawValue> {
    to_raw_value(&serde_json::Map::new()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

pub(super) fn is_object(json: &RawValue) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json.get()).is_ok()
}

/// JSON text without line breaks between its tokens, for one line of a stream.
pub(super) fn one_line(json: Box<RawValue>) -> Box<RawValue> {
    let bytes = json.get().as_bytes();
    if !bytes.contains(&b'\n') && !bytes.contains(&b'\r') {
        return json;
    }
    let value: Result<serde_json::Value, _> = serde_json::from_str(json.get());
    value.and_then(|value| to_raw_value(&value)).unwrap_or(json)
}

/// `run.failed` with `code`, `message` and `retryable`, which readers rely on.
pub(super) fn complete_failure(data: &RawValue, error: &RunError) -> Box<RawValue> {
    let mut object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(data.get()).unwrap_or_default();
    object.entry("code").or_insert_with(|| error.code.clone().into());
    object.entry("message").or_insert_with(|| error.message.clone().into());
    object.entry("retryable").or_insert_with(|| error.retryable.into());
    to_raw_value(&object).unwrap_or_else(|_| data.to_owned())
}
