//! Tool results as readable text.
//!
//! Invariant: text that is not JSON or has an unknown shape is returned unchanged.

use serde_json::Value;

/// `- Lunch (2026-01-31 12:00 – 13:00)` for events, `- tea: green` for facts, the message of an error.
pub(super) fn readable(text: &str) -> String {
    let Ok(result) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    if let Some(error) = result.get("error").filter(|error| !error.is_null()) {
        let message = word(error, "message").unwrap_or_default();
        return format!("{message} ({})", word(error, "code").unwrap_or("?"));
    }
    let data = result.get("data").unwrap_or(&result);
    let lists = ["items", "set", "deleted"].map(|key| data.get(key).and_then(Value::as_array));
    let lines: Vec<String> = match lists.iter().any(Option::is_some) {
        true => lists.into_iter().flatten().flatten().filter_map(line).collect(),
        false => line(data).into_iter().collect(),
    };
    if lines.is_empty() { text.to_owned() } else { lines.join("\n") }
}

/// `“Lunch” (2026-01-31 12:00 – 13:00)`: name and time of a result.
pub(super) fn title(text: &str) -> String {
    let result: Option<Value> = serde_json::from_str(text).ok();
    let data = result.as_ref().map(|result| result.get("data").unwrap_or(result));
    let name = data.and_then(|data| word(data, "title").or(word(data, "name")));
    let when = data.and_then(when).map(|when| format!(" ({when})")).unwrap_or_default();
    match name {
        Some(name) => format!("“{name}”{when}"),
        None => readable(text),
    }
}

/// A list item; `None` without a name.
fn line(item: &Value) -> Option<String> {
    if let Value::String(text) = item {
        return Some(format!("- {text}"));
    }
    let name = word(item, "title").or(word(item, "name")).or(word(item, "key"))?;
    let value = match item.get("value") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) => Some(value.to_string()),
        None => None,
    };
    let value = value.map(|value| format!(": {value}")).unwrap_or_default();
    let details = ["location", "organization", "email", "phone"];
    let details = details.iter().filter_map(|key| word(item, key).map(str::to_owned));
    let details: Vec<String> = when(item).into_iter().chain(details).collect();
    let details = match details.is_empty() {
        true => String::new(),
        false => format!(" ({})", details.join(", ")),
    };
    let id = word(item, "id").map(|id| format!(" [{id}]")).unwrap_or_default();
    Some(format!("- {name}{value}{details}{id}"))
}

fn when(item: &Value) -> Option<String> {
    let (start, end) = (word(item, "start_at")?, word(item, "end_at")?);
    let (day, from, until) = (start.get(..10)?, start.get(11..16)?, end.get(11..16)?);
    Some(format!("{day} {from} – {until}"))
}

fn word<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_lines() {
        let events = r#"{"data":{"count":1,"items":[{"id":"evt_1","title":"Sync",
            "start_at":"2026-04-21T10:00:00Z","end_at":"2026-04-21T11:00:00Z","location":"B2"}]}}"#;
        assert_eq!(readable(events), "- Sync (2026-04-21 10:00 – 11:00, B2) [evt_1]");
        let facts = r#"{"data":{"set":[{"key":"喜欢","value":"喝茶"}],"deleted":["age"]}}"#;
        assert_eq!(readable(facts), "- 喜欢: 喝茶\n- age");
        let failed = r#"{"status":"failure","error":{"code":"NOT_FOUND","message":"no event"}}"#;
        assert_eq!(readable(failed), "no event (NOT_FOUND)");
        let event = r#"{"data":{"id":"e","title":"x"}}"#;
        assert_eq!(readable(event), "- x [e]");
        let deleted = r#"{"data":{"outcome":"deleted","id":"e","title":"Sync",
            "start_at":"2026-04-21T10:00:00Z","end_at":"2026-04-21T11:00:00Z"}}"#;
        assert_eq!(title(deleted), "“Sync” (2026-04-21 10:00 – 11:00)");
        for unknown in ["three meetings", r#"{"a":1}"#, "[1]"] {
            assert_eq!(readable(unknown), unknown);
        }
    }
}
