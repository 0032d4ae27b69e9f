//! Localized texts and configuration form items (named in seed 000 §4.2).
//!
//! Invariant: a form loads whatever its item types are. Decided here: a text is a string or a map from locale
//! (`en_US`, `zh_Hans`, …) to string; a form item has what is needed to render and check it, and preserves unknown
//! fields.

mod values;

pub use values::{fill, problems, unknown};

use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum I18nObject {
    Plain(String),
    /// Null locales are dropped: the Python SDK writes missing translations so.
    ByLocale(
        #[serde(deserialize_with = "present_texts")]
        #[schemars(with = "BTreeMap<String, Option<String>>")]
        BTreeMap<String, String>,
    ),
}

impl I18nObject {
    /// The text for a locale: that language, else English, else any.
    pub fn text(&self, locale: &str) -> &str {
        match self {
            I18nObject::Plain(text) => text,
            I18nObject::ByLocale(texts) => texts
                .get(locale)
                .or_else(|| texts.get("en_US"))
                .or_else(|| texts.values().next())
                .map_or("", String::as_str),
        }
    }
}

fn present_texts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let texts = BTreeMap::<String, Option<String>>::deserialize(from)?;
    Ok(texts.into_iter().filter_map(|(locale, text)| Some((locale, text?))).collect())
}

impl From<&str> for I18nObject {
    fn from(text: &str) -> Self {
        I18nObject::Plain(text.to_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DynamicFormItemSchema {
    pub name: String,
    pub label: I18nObject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<I18nObject>,
    /// `string`, `text`, `integer`, `float`, `boolean`, `select`, `array[string]`,
    /// `model-selector`, `knowledge-base-selector`, `prompt-editor`, …; an unknown type is rendered as text.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub default: Value,
    #[serde(default, deserialize_with = "null_is_none", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<FormOption>>")]
    pub options: Vec<FormOption>,
    #[serde(flatten)]
    pub extra: Object,
}

fn null_is_none<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<FormOption>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormOption {
    pub name: String,
    pub label: I18nObject,
    #[serde(flatten)]
    pub extra: Object,
}
