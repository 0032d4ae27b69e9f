//! What a call is about, for the person who approves it.
//!
//! Invariant: of bounded size, whatever the call contains; text is clipped, never reworded.

mod words;

pub use words::{line, warning};

use greenroom_protocol::Object;
use greenroom_protocol::api::platform::{ApprovalSubject, SubjectField};
use serde_json::Value;

/// Records in an approval.
pub(crate) const RECORDS_MAX: usize = 10;
/// Inputs in an approval.
const FIELDS_MAX: usize = 12;
/// Longest text of each.
const TEXT_CHARS_MAX: usize = 200;

/// The inputs of a call; `shown` selects and orders them.
pub(crate) fn of_inputs(input: &Object, shown: Option<&[String]>) -> ApprovalSubject {
    let fields = match shown {
        Some(names) => {
            let given = |name: &String| Some(field(name, input.get(name)?));
            names.iter().filter_map(given).collect()
        }
        None => input.iter().map(|(name, value)| field(name, value)).collect(),
    };
    ApprovalSubject { fields, ..ApprovalSubject::default() }
}

/// The subject within its limits; `None` if it is empty.
pub(crate) fn bounded(mut subject: ApprovalSubject) -> Option<ApprovalSubject> {
    let more = |count: usize, max: usize| count.saturating_sub(max) as u64;
    let ApprovalSubject { records, fields, left_out } = &mut subject;
    *left_out += more(records.len(), RECORDS_MAX) + more(fields.len(), FIELDS_MAX);
    records.truncate(RECORDS_MAX);
    fields.truncate(FIELDS_MAX);
    let is_empty = records.is_empty() && fields.is_empty();
    (!is_empty).then_some(subject)
}

pub(crate) fn field(name: &str, value: &Value) -> SubjectField {
    SubjectField { name: clip(name), value: clipped(value), before: None }
}

/// A value as one line: text as it is, lists of text with commas, the rest as JSON.
pub(crate) fn clipped(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    clip(&text)
}

fn clip(text: &str) -> String {
    let line = text.replace(char::is_control, " ");
    match line.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn inputs_are_shown_as_text_and_within_limits() {
        let input = object(json!({"to": ["ann", "bob"], "sum": 12, "note": "a\nb", "by": null}));
        let subject = json!(of_inputs(&input, None).fields);
        let expected = json!([{"name": "by", "value": "–"}, {"name": "note", "value": "a b"},
            {"name": "sum", "value": "12"}, {"name": "to", "value": "ann, bob"}]);
        assert_eq!(subject, expected);
        let shown = ["to".to_owned(), "absent".to_owned(), "sum".to_owned()];
        let subject = json!(of_inputs(&input, Some(&shown)).fields);
        let expected = json!([{"name": "to", "value": "ann, bob"}, {"name": "sum", "value": "12"}]);
        assert_eq!(subject, expected);
        let many = (0..20).map(|number| (format!("k{number:02}"), json!("字".repeat(500))));
        let subject = bounded(of_inputs(&many.collect(), None)).unwrap();
        assert_eq!((subject.fields.len(), subject.left_out), (12, 8));
        assert_eq!(subject.fields[0].value.chars().count(), 201);
        assert_eq!(bounded(of_inputs(&Object::new(), None)), None);
    }
}
