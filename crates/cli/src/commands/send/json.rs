//! JSON from the command line: the value itself, `@FILE`, or `-` for standard input.
//!
//! Invariant: an error shows the position of the mistake.

use crate::failure::{Exit, Failure};
use crate::output::{columns_of, plain};
use greenroom_protocol::Object;
use serde_json::Value;

/// Columns shown before and after a mistake.
const SHOWN: usize = 40;

/// Parses the JSON object of an option.
pub(super) fn object(option: &str, value: &str) -> Result<Object, Failure> {
    let text = match (value, value.strip_prefix('@')) {
        ("-", _) => super::stdin()?,
        (_, Some(path)) => std::fs::read_to_string(path).map_err(|error| {
            Failure::new(format!("`{option}` cannot read `{path}`: {error}")).exit(Exit::Usage)
        })?,
        (text, None) => text.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => {
            let kind = match other {
                Value::Array(_) => "a list",
                Value::String(_) => "a string",
                Value::Number(_) => "a number",
                Value::Bool(_) | Value::Null | Value::Object(_) => "a single value",
            };
            let failure = Failure::new(format!("`{option}` must be a JSON object, not {kind}"));
            Err(failure.hint("write it as `{\"name\": value}`").exit(Exit::Usage))
        }
        Err(error) => {
            let message =
                format!("`{option}` is not valid JSON: {error}{}", position(&text, &error));
            let hint = "quote it for the shell with `'…'`, or put it in a file: `@FILE`";
            Err(Failure::new(message).hint(hint).exit(Exit::Usage))
        }
    }
}

/// The line of a mistake with a caret below it; empty without a position.
fn position(text: &str, error: &serde_json::Error) -> String {
    let line = error.line().checked_sub(1).and_then(|line| text.lines().nth(line));
    let Some(line) = line.filter(|line| !line.trim().is_empty()) else { return String::new() };
    let before: Vec<char> = plain(line.get(..error.column().saturating_sub(1)).unwrap_or(line))
        .replace('\t', " ")
        .chars()
        .collect();
    let behind = plain(line.get(error.column().saturating_sub(1)..).unwrap_or_default());
    let lead: String = before[before.len().saturating_sub(SHOWN)..].iter().collect();
    let behind: String = behind.replace('\t', " ").chars().take(SHOWN).collect();
    format!("\n  {lead}{behind}\n  {}^", " ".repeat(columns_of(&lead)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(value: &str) -> String {
        object("--data", value).unwrap_err().to_string()
    }

    #[test]
    fn a_mistake_is_shown_with_its_place() {
        let text = refused(r#"{"a": 1 "b": 2}"#);
        assert!(text.contains("\n  {\"a\": 1 \"b\": 2}\n          ^"), "{text}");
        let text = refused(r#"{"标题": 1 2}"#);
        assert!(text.contains("\n  {\"标题\": 1 2}\n             ^"), "{text}");
        assert!(refused("[1]").contains("must be a JSON object, not a list"));
        assert!(refused("").contains("EOF"));
        assert_eq!(object("--data", r#"{"a":1}"#).unwrap().len(), 1);
    }
}
