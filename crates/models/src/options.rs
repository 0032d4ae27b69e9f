//! The options of a request, parsed once for all wires.
//!
//! Invariant: the caller's options override the configured ones; unknown options are passed to the provider, but
//! never override the fields that build a request.

use crate::ModelError;
use greenroom_protocol::Object;
use serde_json::{Number, Value};

/// Fields that options must not override.
const RESERVED: [&str; 15] = [
    "model",
    "messages",
    "input",
    "contents",
    "tools",
    "stream",
    "system",
    "systemInstruction",
    "system_instruction",
    // Cost and usage reporting.
    "stream_options",
    "n",
    "max_completion_tokens",
    "max_output_tokens",
    "generationConfig",
    "generation_config",
];

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) temperature: Option<Number>,
    pub(crate) top_p: Option<Number>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stop: Vec<String>,
    /// Best effort; omitted by wires without it.
    pub(crate) seed: Option<Number>,
    pub(crate) tool_choice: Option<ToolChoice>,
    pub(crate) parallel_tool_calls: Option<bool>,
    pub(crate) response_format: Option<ResponseFormat>,
    pub(crate) reasoning: Option<Reasoning>,
    pub(crate) cache: Cache,
    /// Requests with the same key share a prompt cache, where the provider routes by it.
    pub(crate) cache_key: Option<String>,
    /// Unknown options, passed to the provider's body.
    pub(crate) rest: Object,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    Auto,
    None,
    Required,
    Named(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResponseFormat {
    Json,
    Schema { name: Option<String>, schema: Value, strict: Option<bool> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    Effort(Effort),
    Budget(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Cache {
    #[default]
    Auto,
    Off,
}

impl Effort {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }
}

impl Options {
    pub(crate) fn new(configured: &Object, requested: &Object) -> Result<Self, ModelError> {
        let mut all = configured.clone();
        all.extend(requested.clone());
        let mut this = Self::default();
        for (name, value) in all.into_iter().filter(|(_, value)| !value.is_null()) {
            this.set(&name, value)?;
        }
        Ok(this)
    }

    fn set(&mut self, name: &str, value: Value) -> Result<(), ModelError> {
        let wrong = |expected: &str| {
            ModelError::InvalidRequest(format!("the option `{name}` must be {expected}"))
        };
        match name {
            "temperature" => self.temperature = Some(number(value).ok_or(wrong("a number"))?),
            "top_p" => self.top_p = Some(number(value).ok_or(wrong("a number"))?),
            "seed" => self.seed = Some(number(value).ok_or(wrong("a number"))?),
            "max_tokens" => {
                self.max_tokens = Some(value.as_u64().ok_or(wrong("an integer"))?);
            }
            "stop" => self.stop = texts(value).ok_or(wrong("a string or a list of strings"))?,
            "parallel_tool_calls" => {
                self.parallel_tool_calls = Some(value.as_bool().ok_or(wrong("true or false"))?);
            }
            "tool_choice" => {
                let choice = tool_choice(&value).ok_or(wrong("auto, none, required or {name}"))?;
                self.tool_choice = Some(choice);
            }
            "response_format" => {
                let format = response_format(&value);
                self.response_format =
                    Some(format.ok_or(wrong("{type:\"json\"} or {type:\"json_schema\", schema}"))?);
            }
            "reasoning" => {
                let reasoning = reasoning(&value);
                self.reasoning = Some(
                    reasoning
                        .ok_or(wrong("none, minimal, low, medium, high or {budget_tokens}"))?,
                );
            }
            "cache_key" => {
                let key = value.as_str().filter(|key| (1..=64).contains(&key.len()));
                self.cache_key = Some(key.ok_or(wrong("a string of 1 to 64 bytes"))?.to_owned());
            }
            "cache" => {
                self.cache = match value.as_str() {
                    Some("auto") => Cache::Auto,
                    Some("off") => Cache::Off,
                    _ => return Err(wrong("auto or off")),
                };
            }
            _ if RESERVED.contains(&name) => {}
            _ => {
                let value = match value {
                    // Ollama's own options; the output limit is not among them.
                    Value::Object(mut inner) if name == "options" => {
                        inner.remove("num_predict");
                        Value::Object(inner)
                    }
                    value => value,
                };
                self.rest.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// OpenAI's `prompt_cache_key`; compatible providers reject unknown fields.
    pub(crate) fn prompt_cache_key(&self, provider: &str) -> Option<&str> {
        let has_field = matches!(provider, "openai" | "openai-responses");
        self.cache_key.as_deref().filter(|_| has_field && self.cache == Cache::Auto)
    }

    /// Merges unknown options into the body; objects are merged one level deep.
    pub(crate) fn merge_rest_into(&self, body: &mut Object) {
        for (name, value) in &self.rest {
            match (body.get_mut(name), value) {
                (Some(Value::Object(existing)), Value::Object(more)) => {
                    existing.extend(more.clone())
                }
                _ => {
                    body.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

fn number(value: Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

fn texts(value: Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(list) => {
            list.into_iter().map(|text| text.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

/// Also in OpenAI's form.
fn tool_choice(value: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        Some(_) => None,
        None => {
            let name = value.get("name").or_else(|| value.get("function")?.get("name"));
            name?.as_str().map(|name| ToolChoice::Named(name.to_owned()))
        }
    }
}

/// Also in OpenAI's form.
fn response_format(value: &Value) -> Option<ResponseFormat> {
    match value.get("type")?.as_str()? {
        "json" | "json_object" => Some(ResponseFormat::Json),
        "json_schema" => {
            let inner = value.get("json_schema").unwrap_or(value);
            Some(ResponseFormat::Schema {
                name: inner.get("name").and_then(Value::as_str).map(str::to_owned),
                schema: inner.get("schema").filter(|schema| schema.is_object())?.clone(),
                strict: inner.get("strict").and_then(Value::as_bool),
            })
        }
        _ => None,
    }
}

fn reasoning(value: &Value) -> Option<Reasoning> {
    if let Some(budget) = value.get("budget_tokens") {
        return budget.as_u64().map(Reasoning::Budget);
    }
    let effort = value.as_str().or_else(|| value.get("effort")?.as_str())?;
    Some(Reasoning::Effort(match effort {
        "none" => Effort::None,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_callers_options_win_and_null_removes_one() {
        let configured = object(json!({"temperature": 0.5, "seed": 7, "top_k": 3, "stop": "END"}));
        let asked = object(json!({"temperature": 1, "seed": null, "reasoning": "low"}));
        let options = Options::new(&configured, &asked).unwrap();
        let expected = Options {
            temperature: Some(1.into()),
            stop: vec!["END".to_owned()],
            reasoning: Some(Reasoning::Effort(Effort::Low)),
            rest: object(json!({"top_k": 3})),
            ..Options::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn reserved_fields_cannot_be_overridden() {
        let asked = object(json!({"messages": [], "model": "x", "stream": false, "user": "u1"}));
        let options = Options::new(&Object::new(), &asked).unwrap();
        let mut body = object(json!({"model": "m", "messages": [1], "stream": true}));
        options.merge_rest_into(&mut body);
        assert_eq!(
            Value::Object(body),
            json!({"model": "m", "messages": [1], "stream": true, "user": "u1"})
        );
    }

    #[test]
    fn an_invalid_option_is_named() {
        for (asked, message) in [
            (json!({"temperature": "hot"}), "the option `temperature` must be a number"),
            (
                json!({"tool_choice": "maybe"}),
                "the option `tool_choice` must be auto, none, required or {name}",
            ),
            (json!({"cache": true}), "the option `cache` must be auto or off"),
            (
                json!({"reasoning": "extreme"}),
                "the option `reasoning` must be none, minimal, low, medium, high or {budget_tokens}",
            ),
        ] {
            let error = Options::new(&Object::new(), &object(asked)).unwrap_err();
            assert_eq!(error, ModelError::InvalidRequest(message.to_owned()));
        }
    }
}
