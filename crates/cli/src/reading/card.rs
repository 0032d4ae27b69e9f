//! The result of a tool as text: the card of the web interface, or the plain result.
//!
//! Invariant: renders the same A2UI as other clients, without interactive parts.

use crate::calls::short;
use greenroom_tools::project_cli::TOOL_NAME;
use greenroom_tools::ui::{self, Language, Options};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum nesting of components.
const DEPTH_MAX: usize = 16;
const LINE_COLUMNS: usize = 100;

/// The lines of a result; none for an empty one.
pub(super) fn lines(tool_name: &str, result: &Value, language: Language) -> Vec<String> {
    let card = match tool_name {
        TOOL_NAME => ui::hints("terminal", result),
        _ => None,
    };
    let options = Options { language, ..Options::default() };
    let card = card.and_then(|hints| ui::compile(&hints, &options));
    let lines = card.and_then(|ui_schema| rendered(&ui_schema)).unwrap_or_default();
    match (lines.is_empty(), result) {
        (false, _) => lines,
        (true, Value::Null) => Vec::new(),
        (true, Value::String(text)) => vec![short(text, LINE_COLUMNS)],
        (true, result) => {
            let shown = result.get("data").filter(|_| tool_name == TOOL_NAME).unwrap_or(result);
            vec![short(&shown.to_string(), LINE_COLUMNS)]
        }
    }
}

/// A `ui_schema` as text; `None` if it is not valid A2UI.
fn rendered(ui_schema: &Value) -> Option<Vec<String>> {
    let operations = ui_schema.get("operations")?.as_array()?;
    let find = |name: &str, key: &str| operations.iter().find_map(|one| one.get(name)?.get(key));
    let components = find("updateComponents", "components")?.as_array()?;
    let id = |component: &'_ Value| component.get("id").and_then(Value::as_str).map(str::to_owned);
    let components: BTreeMap<String, &Value> =
        components.iter().filter_map(|component| Some((id(component)?, component))).collect();
    let data = find("updateDataModel", "value").unwrap_or(&Value::Null);
    Some(Surface { components, data }.lines("root", data, 0))
}

struct Surface<'a> {
    components: BTreeMap<String, &'a Value>,
    data: &'a Value,
}

impl Surface<'_> {
    /// The lines of a component; paths within a list start at its item.
    fn lines(&self, id: &str, item: &Value, depth: usize) -> Vec<String> {
        let Some(component) = self.components.get(id).filter(|_| depth < DEPTH_MAX) else {
            return Vec::new();
        };
        let children = || self.children(component, item, depth);
        match component.get("component").and_then(Value::as_str).unwrap_or_default() {
            "Text" => self.text(&component["text"], item).into_iter().collect(),
            "Card" => match component.get("child").and_then(Value::as_str) {
                Some(child) => self.lines(child, item, depth + 1),
                None => Vec::new(),
            },
            "Row" => {
                let cells: Vec<String> = children().into_iter().flatten().collect();
                if cells.is_empty() { cells } else { vec![cells.join("  ")] }
            }
            "List" => children().into_iter().flat_map(bulleted).collect(),
            "Column" => children().concat(),
            _ => Vec::new(),
        }
    }

    /// The lines of each child, or of each item of a list.
    fn children(&self, component: &Value, item: &Value, depth: usize) -> Vec<Vec<String>> {
        match &component["children"] {
            Value::Array(ids) => {
                let ids = ids.iter().filter_map(Value::as_str);
                ids.map(|id| self.lines(id, item, depth + 1)).collect()
            }
            Value::Object(template) => {
                let word = |key: &str| template.get(key).and_then(Value::as_str);
                let id = word("componentId").unwrap_or_default();
                let items = word("path").and_then(|path| self.find(path, item)?.as_array());
                let items = items.into_iter().flatten();
                items.map(|item| self.lines(id, item, depth + 1)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn text(&self, text: &Value, item: &Value) -> Option<String> {
        let value = match text.get("path").and_then(Value::as_str) {
            Some(path) => self.find(path, item)?,
            None => text,
        };
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(short(&text, LINE_COLUMNS)).filter(|text| !text.trim().is_empty())
    }

    fn find<'v>(&'v self, path: &str, item: &'v Value) -> Option<&'v Value> {
        match path.starts_with('/') {
            true => self.data.pointer(path),
            false => item.pointer(&format!("/{path}")),
        }
    }
}

fn bulleted(lines: Vec<String>) -> Vec<String> {
    let mark = |(number, line): (usize, String)| match number {
        0 => format!("• {line}"),
        _ => format!("  {line}"),
    };
    lines.into_iter().enumerate().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(id: &str, title: &str) -> Value {
        json!({"id": id, "title": title, "start_at": "2026-04-21T10:00:00+08:00",
            "end_at": "2026-04-21T11:00:00+08:00", "location": "B2"})
    }

    #[test]
    fn a_day_of_the_calendar_is_a_list_in_the_readers_language() {
        let data = json!({"date": "2026-04-21", "timezone": "Asia/Shanghai", "count": 2,
            "items": [event("e1", "周会"), event("e2", "Lunch")]});
        let result = json!({"module": "calendar", "method": "read", "data": data});
        let expected = [
            "日程",
            "2026-04-21",
            "Asia/Shanghai",
            "• 周会",
            "  2026-04-21 10:00 – 11:00 (UTC+08:00)",
            "  B2",
            "• Lunch",
            "  2026-04-21 10:00 – 11:00 (UTC+08:00)",
            "  B2",
        ];
        assert_eq!(lines("project_cli", &result, Language::Chinese), expected);
        let english = lines("project_cli", &result, Language::English);
        assert_eq!((english.len(), english[0].as_str()), (9, "Events"));
    }

    #[test]
    fn a_new_event_is_shown_without_its_buttons() {
        let mut data = event("e1", "Lunch");
        data["outcome"] = "created".into();
        let result = json!({"module": "calendar", "method": "create", "data": data});
        let expected = ["Event created", "Lunch", "2026-04-21 10:00 – 11:00 (UTC+08:00)", "B2"];
        assert_eq!(lines("project_cli", &result, Language::English), expected);
    }

    #[test]
    fn what_has_no_card_is_one_short_line() {
        let facts = json!({"module": "memory", "method": "read", "data": {"count": 0}});
        assert_eq!(lines("project_cli", &facts, Language::English), [r#"{"count":0}"#]);
        assert_eq!(lines("files.read", &json!("a\nb"), Language::English), ["a b"]);
        assert_eq!(lines("files.read", &Value::Null, Language::English), [""; 0]);
    }
}
