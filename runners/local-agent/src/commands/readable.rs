//! JSON in readable form: a line per value, indentation for depth, no brackets.
//!
//! Invariant: nothing is omitted except beyond the length limit, which is stated.

use crate::texts::Texts;
use greenroom_sdk::Value;

/// Longest text.
const CHARS_MAX: usize = 16_000;

pub(crate) fn result(value: &Value, texts: Texts) -> String {
    let text = match content(value) {
        Value::Null => texts.pick("Done.", "完成。").to_owned(),
        Value::String(text) if text.trim().is_empty() => texts.pick("Done.", "完成。").to_owned(),
        Value::Array(items) if items.is_empty() => texts.pick("Nothing.", "没有结果。").to_owned(),
        value => lines(value, 0).join("\n"),
    };
    cut(text, texts)
}

/// The content of a result: the data of a method, the text of an MCP server.
fn content(result: &Value) -> &Value {
    let Some(fields) = result.as_object() else { return result };
    match (fields.get("module"), fields.get("method"), fields.get("data")) {
        (Some(Value::String(_)), Some(Value::String(_)), Some(data)) if fields.len() == 3 => data,
        _ => match fields.get("content").and_then(Value::as_array).map(Vec::as_slice) {
            Some([block]) if fields.len() == 1 && block["type"] == "text" => &block["text"],
            _ => result,
        },
    }
}

pub(crate) fn lines(value: &Value, depth: usize) -> Vec<String> {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| match flat(value) {
                Some(text) => vec![format!("{indent}{key}: {text}")],
                None => {
                    let mut block = vec![format!("{indent}{key}:")];
                    block.extend(lines(value, depth + 1));
                    block
                }
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(|item| bullet(item, depth)).collect(),
        Value::String(text) => text.lines().map(|line| format!("{indent}{line}")).collect(),
        other => vec![format!("{indent}{other}")],
    }
}

/// A list item with a dash on its first line.
fn bullet(item: &Value, depth: usize) -> Vec<String> {
    let indent = "  ".repeat(depth);
    let mut block = match flat(item) {
        Some(text) => vec![text],
        None => lines(item, 0),
    };
    for (number, line) in block.iter_mut().enumerate() {
        let lead = if number == 0 { "- " } else { "  " };
        *line = format!("{indent}{lead}{line}");
    }
    block
}

/// A value that fits on the line of its key.
fn flat(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.contains('\n') => None,
        Value::String(text) => Some(text.clone()),
        Value::Null => Some("–".to_owned()),
        Value::Array(items) if items.is_empty() => Some("–".to_owned()),
        Value::Object(fields) if fields.is_empty() => Some("–".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

pub(crate) fn cut(text: String, texts: Texts) -> String {
    let Some((end, _)) = text.char_indices().nth(CHARS_MAX) else { return text };
    let more = text[end..].chars().count();
    let note = match texts {
        Texts::English => format!("… and {more} more characters"),
        Texts::Chinese => format!("……还有 {more} 个字符"),
    };
    format!("{}\n{note}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    #[test]
    fn a_result_is_shown_line_by_line() {
        let value = json!({"module": "calendar", "method": "read", "data": {
            "count": 2,
            "items": [
                {"id": "e1", "title": "Lunch", "attendees": [], "notes": "one\ntwo"},
                {"id": "e2", "title": "午餐", "who": ["ann", {"name": "bob"}]},
            ],
        }});
        let expected = "\
count: 2
items:
  - attendees: –
    id: e1
    notes:
      one
      two
    title: Lunch
  - id: e2
    title: 午餐
    who:
      - ann
      - name: bob";
        assert_eq!(result(&value, Texts::English), expected);
    }

    #[test]
    fn simple_values_are_shown_directly() {
        for (value, english, chinese) in [
            (json!(null), "Done.", "完成。"),
            (json!("words\n  more"), "words\n  more", "words\n  more"),
            (json!({"sum": 5}), "sum: 5", "sum: 5"),
            (json!([]), "Nothing.", "没有结果。"),
            (json!({"content": [{"type": "text", "text": "hi"}]}), "hi", "hi"),
            (json!(true), "true", "true"),
        ] {
            assert_eq!(result(&value, Texts::English), english);
            assert_eq!(result(&value, Texts::Chinese), chinese);
        }
    }

    #[test]
    fn a_long_result_is_truncated_with_a_note() {
        let text = result(&json!("é".repeat(CHARS_MAX + 7)), Texts::English);
        assert!(text.ends_with("\n… and 7 more characters"), "{}", &text[text.len() - 60..]);
    }
}
