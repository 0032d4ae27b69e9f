//! Secrets in JSON: searched in the decoded strings, not in their escaped form.
//!
//! Invariant: the output is valid JSON. A string that is base64 as a whole stays base64.

use super::MARK;
use super::scan::Rules;
use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

const ENGINES: [&GeneralPurpose; 4] = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];

/// The same JSON without secrets; none if it holds no secret.
pub(super) fn clean(rules: &Rules, json: &RawValue) -> Option<Box<RawValue>> {
    let text = json.get();
    // Without escapes every string equals its decoded form.
    let is_plain = memchr::memchr(b'\\', text.as_bytes()).is_none();
    if is_plain && !rules.finds_any(text.as_bytes()) {
        return None;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            let changed = clean_value(rules, &mut value);
            changed.then(|| to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
        }
        Err(_) => unreadable(rules, text),
    }
}

/// JSON that cannot be parsed, e.g. too deep, but may be stored or quoted.
fn unreadable(rules: &Rules, text: &str) -> Option<Box<RawValue>> {
    match rules.text(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => {
            Some(RawValue::from_string(clean).unwrap_or_else(|_| RawValue::NULL.to_owned()))
        }
    }
}

/// Whether something was removed.
pub(super) fn clean_value(rules: &Rules, value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => {
            let found = rules.finds_any(number.to_string().as_bytes());
            if found {
                *value = MARK.into();
            }
            found
        }
        Value::String(text) => match clean_text(rules, text) {
            Some(clean) => {
                *text = clean;
                true
            }
            None => false,
        },
        Value::Array(items) => {
            items.iter_mut().fold(false, |changed, item| clean_value(rules, item) | changed)
        }
        Value::Object(fields) => {
            let mut changed = false;
            if fields.keys().any(|name| rules.finds_any(name.as_bytes())) {
                let named = std::mem::take(fields).into_iter();
                *fields = named.map(|(name, v)| (rules.text(&name).into_owned(), v)).collect();
                changed = true;
            }
            fields.values_mut().fold(changed, |changed, item| clean_value(rules, item) | changed)
        }
    }
}

fn clean_text(rules: &Rules, text: &str) -> Option<String> {
    let Cow::Owned(clean) = rules.text(text) else { return None };
    let as_base64 = ENGINES.iter().find_map(|engine| {
        let bytes = engine.decode(text).ok()?;
        match rules.bytes(&bytes) {
            Cow::Owned(bytes) => Some(engine.encode(bytes)),
            Cow::Borrowed(_) => None,
        }
    });
    Some(as_base64.filter(|text| !rules.finds_any(text.as_bytes())).unwrap_or(clean))
}
