//! The text of a call's arguments, read.
//!
//! Invariant: what is not JSON is never taken for no arguments.

use serde_json::{Value, json};

/// `needed`: the tool cannot be called without arguments, so that a text that is not there is an error.
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
    fn no_text_means_no_arguments_only_where_none_are_needed() {
        assert_eq!(parse("", false), Ok(json!({})));
        assert_eq!(parse(" null\n", false), Ok(json!({})));
        assert_eq!(parse("", true), Err("the arguments are missing".to_owned()));
        assert!(are_required(&json!({"type": "object", "required": ["path"]})));
        assert!(!are_required(&json!({"type": "object", "properties": {"path": {}}})));
    }

    #[test]
    fn what_is_not_json_is_an_error_that_says_where() {
        for text in ["{", "{\"a\":1}}", "{\"a\":1}{\"a\":1}", "path=/tmp", "{'a':1}"] {
            let error = parse(text, false).unwrap_err();
            assert!(error.starts_with("not JSON: ") && error.contains("column"), "{text}: {error}");
        }
    }
}
