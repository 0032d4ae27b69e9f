//! Parses the arguments of a call.
//!
//! Invariant: text that is not JSON never counts as empty arguments.

use serde_json::{Value, json};

/// `needed`: the tool cannot be called without arguments, so missing text is an error.
pub(super) fn parse(text: &str, needed: bool) -> Result<Value, String> {
    match text.trim() {
        "" | "null" if needed => Err("the arguments are missing".to_owned()),
        "" | "null" => Ok(json!({})),
        text => serde_json::from_str(text).map_err(|error| format!("not JSON: {error}")),
    }
}

pub(super) fn are_required(schema: &Value) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_text_means_no_arguments_unless_some_are_required() {
        assert_eq!(parse("", false), Ok(json!({})));
        assert_eq!(parse(" null\n", false), Ok(json!({})));
        assert_eq!(parse("", true), Err("the arguments are missing".to_owned()));
        assert!(are_required(&json!({"type": "object", "required": ["path"]})));
        assert!(!are_required(&json!({"type": "object", "properties": {"path": {}}})));
    }

    #[test]
    fn invalid_json_is_an_error_with_its_position() {
        for text in ["{", "{\"a\":1}}", "{\"a\":1}{\"a\":1}", "path=/tmp", "{'a':1}"] {
            let error = parse(text, false).unwrap_err();
            assert!(error.starts_with("not JSON: ") && error.contains("column"), "{text}: {error}");
        }
    }
}
