//! What external harnesses show of their work: plans and changed files.
//!
//! Invariant: bounded lines without terminal control characters; what has another form is left out.

use crate::calls::short;
use greenroom_protocol::Object;
use greenroom_tools::ui::Language;
use serde_json::Value;

/// Width of one step, and of one path.
const COLUMNS: usize = 100;
/// Steps and files that are shown.
const LINES_MAX: usize = 30;
/// Lines of output that are shown.
const OUTPUT_LINES_MAX: usize = 8;

/// The list of steps, with what is done.
pub(super) fn plan(data: &Object, language: Language) -> String {
    let entries = data.get("entries").and_then(Value::as_array);
    let entries: Vec<&Value> = entries.into_iter().flatten().collect();
    let done = entries.iter().filter(|entry| entry["status"] == "completed").count();
    let count = entries.len();
    let mut lines = vec![match language {
        Language::English => format!("plan: {done} of {count} done"),
        Language::Chinese => format!("计划\u{ff1a}已完成 {done}/{count}"),
    }];
    lines.extend(entries.iter().take(LINES_MAX).map(|entry| {
        let mark = match entry["status"].as_str() {
            Some("completed") => "✓",
            Some("in_progress") => "→",
            _ => "○",
        };
        format!("  {mark} {}", short(entry["content"].as_str().unwrap_or_default(), COLUMNS))
    }));
    lines.join("\n")
}

/// What a call of a harness changed and printed; none if it is a call of another kind.
pub(super) fn lines(result: &Value) -> Option<Vec<String>> {
    result.get("kind").and(result.get("title")).and(result.get("status"))?;
    let text = printed(&result["output"]).or(result["text"].as_str()).unwrap_or_default();
    let mut lines = changes(result);
    let count = text.lines().count();
    lines.extend(text.lines().take(OUTPUT_LINES_MAX).map(|line| short(line, COLUMNS)));
    if count > OUTPUT_LINES_MAX {
        lines.push("…".to_owned());
    }
    Some(lines)
}

/// What a command printed, where a harness says it apart.
fn printed(output: &Value) -> Option<&str> {
    let part = |name: &str| output.get(name).and_then(Value::as_str);
    output.as_str().or_else(|| part("formatted_output")).or_else(|| part("stdout"))
}

/// The files that a call changed, with the number of lines.
fn changes(result: &Value) -> Vec<String> {
    let changes = result.get("changes").and_then(Value::as_array);
    let line = |change: &Value| {
        let path = short(change["path"].as_str()?, COLUMNS);
        let (old, new) = (change["old_text"].as_str(), change["new_text"].as_str()?);
        let (removed, added) = differing(old.unwrap_or_default(), new);
        Some(format!("{path} +{added} -{removed}"))
    };
    changes.into_iter().flatten().filter_map(line).take(LINES_MAX).collect()
}

/// Lines between the common beginning and the common end.
fn differing(old: &str, new: &str) -> (usize, usize) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[begin..], &new[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other);
    let end = end.count();
    (old.len() - end, new.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plan_is_a_list_with_marks() {
        let data = json!({"entries": [{"content": "look\u{1b}[2J", "status": "completed"},
            {"content": "write", "status": "in_progress"}, {"content": "test", "status": "pending"}]});
        let data = data.as_object().unwrap();
        let english = plan(data, Language::English);
        assert_eq!(english, "plan: 1 of 3 done\n  ✓ look<U+001B>[2J\n  → write\n  ○ test");
        assert!(plan(data, Language::Chinese).starts_with("计划\u{ff1a}已完成 1/3\n"));
    }

    #[test]
    fn changed_files_are_counted_by_lines() {
        let result = json!({"changes": [{"path": "/a", "old_text": "1\n2\n3", "new_text": "1\nx\ny\n3"},
            {"path": "/b", "old_text": null, "new_text": "n\n"}]});
        assert_eq!(changes(&result), ["/a +2 -1", "/b +1 -0"]);
        assert!(lines(&result).is_none() && lines(&json!("text")).is_none());
        let mut ran =
            json!({"kind": "execute", "title": "ls", "status": "completed", "text": "a\nb"});
        assert_eq!(lines(&ran), Some(vec!["a".to_owned(), "b".to_owned()]));
        ran["output"] = json!({"stdout": "c"});
        assert_eq!(lines(&ran), Some(vec!["c".to_owned()]));
    }
}
