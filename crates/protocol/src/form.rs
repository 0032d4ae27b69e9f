//! Texts in several languages and the items of a configuration form (seed 000 §4.2 names both).
//!
//! Decided here: a text is a plain string or a map from locale (`en_US`, `zh_Hans`, …) to string;
//! a form item is what a form needs to be drawn and checked, and keeps what it does not know.

use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum I18nObject {
    Plain(String),
    ByLocale(BTreeMap<String, String>),
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
    /// `model-selector`, `knowledge-base-selector`, `prompt-editor`, …; an unknown type is shown as text.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub default: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<FormOption>,
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormOption {
    pub name: String,
    pub label: I18nObject,
}
