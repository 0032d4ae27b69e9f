//! `contacts.read`: the actor's contacts.
//!
//! Invariant: pages have a fixed order (name, then id), so that a cursor means the same on every call.

use super::input::{Id, Text, Trouble, given, read as strict};
use super::records::{LIST_MAX, Module, Records};
use crate::ToolFailure;
use greenroom_protocol::Object;
use greenroom_protocol::records::RecordView as Record;
use serde::Deserialize;
use serde_json::{Value, json};

const PAGE: u32 = 20;
const PAGE_MAX: u32 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    #[serde(default, deserialize_with = "given")]
    contact_id: Option<Id>,
    #[serde(default, deserialize_with = "given")]
    query: Option<Text<500>>,
    #[serde(default, deserialize_with = "given")]
    limit: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    cursor: Option<Id>,
}

pub(super) async fn read(input: &Object, records: &dyn Records) -> Result<Value, Trouble> {
    let Read { contact_id, query, limit, cursor } = strict(input)?;
    let Some(id) = contact_id else {
        let limit = limit.unwrap_or(PAGE);
        if !(1..=PAGE_MAX).contains(&limit) {
            let message = format!("`limit` is not between 1 and {PAGE_MAX}");
            return Err(Trouble::input("limit", message));
        }
        return page(query, limit as usize, cursor, records).await;
    };
    if input.len() > 1 {
        return Err(Trouble::input("contact_id", "`contact_id` does not go with other fields"));
    }
    match records.get(Module::Contacts, &id.0).await?.record {
        Some(record) => Ok(Value::Object(shown(&record))),
        None => Err(Trouble::Failure(
            ToolFailure::new("NOT_FOUND", format!("there is no contact `{}`", id.0))
                .detail("contact_id", id.0),
        )),
    }
}

async fn page(
    query: Option<Text<500>>,
    limit: usize,
    cursor: Option<Id>,
    records: &dyn Records,
) -> Result<Value, Trouble> {
    let mut found = records.list(Module::Contacts, None, LIST_MAX).await?;
    let incomplete = found.len() >= LIST_MAX as usize;
    if let Some(query) = &query {
        found.retain(|record| holds_all(&query.0, &Value::Object(record.body.clone()).to_string()));
    }
    found.sort_by_cached_key(|record| (name(record).to_lowercase(), record.id.clone()));
    let total = found.len();
    let from = match cursor {
        None => 0,
        Some(Text(id)) => {
            1 + found
                .iter()
                .position(|record| record.id == id)
                .ok_or_else(|| Trouble::input("cursor", "`cursor` does not belong to this list"))?
        }
    };
    let items: Vec<&Record> = found.iter().skip(from).take(limit).collect();
    let has_more = from + items.len() < total;
    let next = items.last().filter(|_| has_more).map(|record| record.id.clone());
    let mut data = json!({
        "items": items.iter().map(|record| shown(record)).collect::<Vec<_>>(),
        "count": items.len(),
        "total": total,
        "has_more": has_more,
        "next_cursor": next,
    });
    if incomplete {
        data["incomplete"] = true.into();
    }
    Ok(data)
}

/// The body with the id; its fields are chosen by the owner.
fn shown(record: &Record) -> Object {
    let mut contact = record.body.clone();
    contact.insert("id".to_owned(), record.id.clone().into());
    contact.insert("name".to_owned(), name(record).into());
    contact
}

fn name(record: &Record) -> &str {
    record.body.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a text contains every word, ignoring case.
pub(super) fn holds_all(words: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
}
