//! Hints: which template shows a result, and the facts it shows.
//!
//! Invariant: only for the nine methods of seed 004 §7; facts are clipped to the size of a card, labels in the
//! reader's language are added when it is compiled.

use greenroom_protocol::Object;
use serde_json::{Value, json};

/// Most items of one list; the total is shown beside it.
const ITEMS_MAX: usize = 50;
const TEXT_CHARS_MAX: usize = 1000;

/// The hints for a result of the project CLI; `None` for methods without a template.
pub fn hints(tool_call_id: &str, result: &Value) -> Option<Value> {
    let get = |key: &str| result.get(key).and_then(Value::as_str);
    let method = format!("{}.{}", get("module")?, get("method")?);
    let data = result.get("data")?.as_object()?;
    let (template, shown) = match method.as_str() {
        "calendar.read" if data.contains_key("items") => ("event_list", event_list(data)),
        "calendar.read" => ("event", event(data)),
        "calendar.create"
        | "calendar.update"
        | "calendar.delete"
        | "calendar.share"
        | "calendar.accept_invite"
        | "calendar.reject_invite" => ("event", event(data)),
        "contacts.read" if data.contains_key("items") => ("contact_list", contact_list(data)),
        "contacts.read" => ("contact", contact(data)),
        "memory.update" => ("memory", memory(data)),
        _ => return None,
    };
    Some(json!({
        "version": 1,
        "surface_id": format!("tool-{tool_call_id}"),
        "method": method,
        "template": template,
        "data": shown,
    }))
}

fn event_list(data: &Object) -> Value {
    let items: Vec<Value> = items(data, "items").take(ITEMS_MAX).map(event).collect();
    json!({
        "when": text(data, "date").or_else(|| when(data)).unwrap_or_default(),
        "timezone": text(data, "timezone").unwrap_or_default(),
        "items": items,
        "count": count(data, "items"),
        "has_more": count(data, "items") > ITEMS_MAX || data.get("has_more") == Some(&true.into()),
    })
}

fn event(data: &Object) -> Value {
    let person = |person: &Object| json!({"name": text(person, "actor_id").unwrap_or_default(), "status": text(person, "status").unwrap_or_default()});
    let people: Vec<Value> = items(data, "attendees").take(ITEMS_MAX).map(person).collect();
    json!({
        "id": text(data, "id").unwrap_or_default(),
        "title": text(data, "title").unwrap_or_default(),
        "when": when(data).unwrap_or_default(),
        "location": text(data, "location").unwrap_or_default(),
        "notes": text(data, "notes").unwrap_or_default(),
        "outcome": text(data, "outcome").unwrap_or_default(),
        "invitation": text(data, "invitation").unwrap_or_default(),
        "attendees": people,
    })
}

fn contact_list(data: &Object) -> Value {
    let people: Vec<Value> = items(data, "items").take(ITEMS_MAX).map(contact).collect();
    json!({
        "items": people,
        "count": count(data, "items"),
        "has_more": count(data, "items") > ITEMS_MAX || data.get("has_more") == Some(&true.into()),
    })
}

fn contact(data: &Object) -> Value {
    let details = ["organization", "email", "phone"];
    let details: Vec<String> = details.iter().filter_map(|key| text(data, key)).collect();
    json!({
        "id": text(data, "id").unwrap_or_default(),
        "name": text(data, "name").unwrap_or_default(),
        "details": details.join(" · "),
        "notes": text(data, "notes").unwrap_or_default(),
    })
}

fn memory(data: &Object) -> Value {
    let fact = |fact: &Object| {
        let value = match fact.get("value") {
            Some(Value::String(value)) => clipped(value),
            Some(value) => clipped(&value.to_string()),
            None => String::new(),
        };
        json!({"key": text(fact, "key").unwrap_or_default(), "value": value})
    };
    let set: Vec<Value> = items(data, "set").take(ITEMS_MAX).map(fact).collect();
    let deleted = data.get("deleted").and_then(Value::as_array);
    let deleted = deleted.into_iter().flatten().filter_map(Value::as_str);
    let deleted: Vec<Value> =
        deleted.take(ITEMS_MAX).map(|key| json!({"key": clipped(key)})).collect();
    json!({"outcome": text(data, "outcome").unwrap_or_default(), "set": set, "deleted": deleted})
}

fn items<'a>(data: &'a Object, key: &str) -> impl Iterator<Item = &'a Object> {
    let items = data.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}

fn count(data: &Object, key: &str) -> usize {
    data.get(key).and_then(Value::as_array).map_or(0, Vec::len)
}

fn text(data: &Object, key: &str) -> Option<String> {
    data.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(clipped)
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `2026-04-21 10:00 – 11:30 (UTC+08:00)`: the same in every language, as short as possible.
fn when(data: &Object) -> Option<String> {
    let start = Written::of(data.get("start_at")?.as_str()?)?;
    let end = Written::of(data.get("end_at")?.as_str()?)?;
    let zone = |offset: &str| match offset {
        "Z" | "+00:00" => "UTC".to_owned(),
        offset => format!("UTC{offset}"),
    };
    let Written { date, time, offset } = start;
    let until =
        if end.date == date { end.time.to_owned() } else { format!("{} {}", end.date, end.time) };
    Some(match end.offset == offset {
        true => format!("{date} {time} – {until} ({})", zone(offset)),
        false => format!("{date} {time} ({}) – {until} ({})", zone(offset), zone(end.offset)),
    })
}

/// The parts of an RFC 3339 time.
struct Written<'a> {
    date: &'a str,
    time: &'a str,
    offset: &'a str,
}

impl<'a> Written<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let seconds = text.get(16..)?;
        let offset = seconds.find(['Z', '+', '-']).and_then(|at| seconds.get(at..))?;
        Some(Self { date: text.get(..10)?, time: text.get(11..16)?, offset })
    }
}
