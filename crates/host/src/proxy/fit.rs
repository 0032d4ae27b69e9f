//! Fits stored things into an answer.
//!
//! Invariant: no list is refused for its size; a shortened thing is marked (`metadata.truncated`), and keeps
//! its ids, position and references as far as they fit.

use super::call::Call;
use serde_json::{Value, json};

/// Shortest text limit that is tried.
const TEXT_BYTES_MIN: usize = 256;
/// Parts to leave out where shorter texts are not enough.
const PARTS: [&str; 8] =
    ["segments", "event", "trigger", "raw_ref", "metadata", "artifacts", "actor", "content"];

/// Bytes for the items of an answer, besides cursors and brackets.
pub(super) fn bytes_max(call: &Call<'_>) -> usize {
    let bytes_max = call.settings.limits.response_bytes;
    bytes_max - bytes_max / 4
}

/// Keeps as many items as fit, in order: at least the first, shortened if needed.
pub(super) fn first_of(items: &mut Vec<Value>, bytes_max: usize) {
    let mut left = bytes_max;
    let fitting = items.iter().take_while(|item| {
        let rest = left.checked_sub(bytes_of(item));
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    let fitting = fitting.count().max(1);
    items.truncate(fitting);
    if let [item] = items.as_mut_slice() {
        shorten(item, bytes_max);
    }
}

/// Keeps all items; shortens the large ones if they do not fit together.
pub(super) fn all_of(items: &mut [Value], bytes_max: usize) {
    if items.iter().map(bytes_of).sum::<usize>() > bytes_max {
        let share = bytes_max / items.len();
        items.iter_mut().for_each(|item| shorten(item, share));
    }
}

/// Makes one thing fit: shortens its texts, then leaves parts out.
pub(super) fn shorten(item: &mut Value, bytes_max: usize) {
    if bytes_of(item) <= bytes_max {
        return;
    }
    // A character may take six bytes once it is escaped.
    let mut text_max = (bytes_max / 8).max(TEXT_BYTES_MIN);
    loop {
        cut_texts(item, text_max);
        mark(item);
        if bytes_of(item) <= bytes_max {
            return;
        }
        if text_max == TEXT_BYTES_MIN {
            break;
        }
        text_max = (text_max / 8).max(TEXT_BYTES_MIN);
    }
    for part in PARTS {
        if let Some(part) = item.get_mut(part) {
            *part = match part {
                Value::Array(_) => json!([]),
                Value::Object(_) => json!({}),
                _ => Value::Null,
            };
        }
        mark(item);
        if bytes_of(item) <= bytes_max {
            return;
        }
    }
}

fn mark(item: &mut Value) {
    match item.get_mut("metadata") {
        Some(Value::Object(metadata)) => {
            metadata.insert("truncated".to_owned(), true.into());
        }
        _ => item["metadata"] = json!({"truncated": true}),
    }
}

fn cut_texts(value: &mut Value, bytes_max: usize) {
    match value {
        Value::String(text) if text.len() > bytes_max => {
            text.truncate(text.floor_char_boundary(bytes_max));
            text.push_str(" …");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, bytes_max)),
        Value::Object(fields) => fields.values_mut().for_each(|v| cut_texts(v, bytes_max)),
        _ => {}
    }
}

fn bytes_of(value: &Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(seq: i64, text: &str) -> Value {
        json!({"item_id": format!("item_{seq}"), "seq": seq, "text": text, "segments": [],
            "artifacts": [{"artifact_id": "art_1"}], "metadata": {"message_id": "m"}})
    }

    #[test]
    fn as_many_items_as_fit_are_kept_in_their_order() {
        let mut items = vec![item(1, "a"), item(2, &"b".repeat(600)), item(3, "c")];
        first_of(&mut items, 500);
        assert_eq!(items, [item(1, "a")]);
        first_of(&mut Vec::new(), 500);
    }

    #[test]
    fn an_item_that_is_too_large_alone_is_cut_and_says_so() {
        let mut items = vec![item(1, &"\u{1}".repeat(90_000)), item(2, "b")];
        first_of(&mut items, 8_000);
        let expected = json!({"item_id": "item_1", "seq": 1,
            "text": format!("{} …", "\u{1}".repeat(1_000)), "segments": [],
            "artifacts": [{"artifact_id": "art_1"}],
            "metadata": {"message_id": "m", "truncated": true}});
        assert_eq!(items, [expected]);
    }

    #[test]
    fn parts_without_a_long_text_are_left_out_where_they_are_too_much() {
        let mut event = json!({"event_id": "e1", "event": {"data": vec![7; 5_000]}});
        shorten(&mut event, 1_000);
        let expected = json!({"event_id": "e1", "event": {}, "metadata": {"truncated": true}});
        assert_eq!(event, expected);
    }

    #[test]
    fn hits_are_shortened_by_their_share_and_none_is_lost() {
        let mut items = vec![item(1, &"a".repeat(50_000)), item(2, "b"), item(3, "c")];
        all_of(&mut items, 9_000);
        assert_eq!(items[0]["text"], format!("{} …", "a".repeat(375)));
        assert_eq!(items[1..], [item(2, "b"), item(3, "c")]);
    }
}
