//! `memory.*`: small facts that an actor wants to keep.
//!
//! Invariant: a fact is one record, its key the record's id; an update reports the outcome of every key.

use super::contacts::holds_all;
use super::input::{Text, Trouble, given, read as strict};
use super::records::{LIST_MAX, Module, Put, Records, RecordsError};
use greenroom_protocol::Object;
use greenroom_protocol::records::RecordView as Record;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most keys in one call.
const KEYS_MAX: usize = 50;
/// Longest value, as JSON text.
const VALUE_BYTES_MAX: usize = 4096;

type Key = Text<128>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    #[serde(default, deserialize_with = "given")]
    keys: Option<Vec<Key>>,
    #[serde(default, deserialize_with = "given")]
    query: Option<Text<500>>,
}

pub(super) async fn read(input: &Object, records: &dyn Records) -> Result<Value, Trouble> {
    match strict(input)? {
        Read { keys: Some(_), query: Some(_) } => {
            Err(Trouble::input("query", "`query` does not go with `keys`"))
        }
        Read { keys: Some(keys), query: None } => by_key(keys, records).await,
        Read { keys: None, query } => by_words(query, records).await,
    }
}

async fn by_key(keys: Vec<Key>, records: &dyn Records) -> Result<Value, Trouble> {
    check_count("keys", keys.len())?;
    let (mut items, mut missing) = (Vec::new(), Vec::new());
    for Text(key) in keys {
        match records.get(Module::Memory, &key).await?.record {
            Some(record) => items.push(shown(&record)),
            None => missing.push(key),
        }
    }
    Ok(json!({"count": items.len(), "items": items, "missing": missing}))
}

async fn by_words(query: Option<Text<500>>, records: &dyn Records) -> Result<Value, Trouble> {
    let mut found = records.list(Module::Memory, None, LIST_MAX).await?;
    let has_more = found.len() >= LIST_MAX as usize;
    if let Some(query) = &query {
        found.retain(|record| holds_all(&query.0, &format!("{} {}", record.id, value(record))));
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    let items: Vec<Value> = found.iter().map(shown).collect();
    Ok(json!({"count": items.len(), "items": items, "has_more": has_more}))
}

fn shown(record: &Record) -> Value {
    json!({
        "key": record.id,
        "value": value(record),
        "version": record.version,
        "updated_at": record.updated_at,
    })
}

fn value(record: &Record) -> &Value {
    record.body.get("value").unwrap_or(&Value::Null)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    #[serde(default, deserialize_with = "given")]
    set: Option<BTreeMap<Key, Value>>,
    #[serde(default, deserialize_with = "given")]
    delete: Option<Vec<Key>>,
}

pub(super) async fn update(input: &Object, records: &dyn Records) -> Result<Value, Trouble> {
    let Update { set, delete } = strict(input)?;
    let (set, mut delete) = (set.unwrap_or_default(), delete.unwrap_or_default());
    delete.sort();
    delete.dedup();
    check_count("set", set.len() + delete.len())?;
    for (key, value) in &set {
        check_value(&key.0, value)?;
        if delete.contains(key) {
            let message = format!("`{}` is both set and deleted", key.0);
            return Err(Trouble::input(&format!("delete.{}", key.0), message));
        }
    }
    let set = set.into_iter().map(|(key, value)| (key.0, Some(value)));
    let mut changes = set.chain(delete.into_iter().map(|key| (key.0, None)));
    let mut done = Done::default();
    while let Some((key, value)) = changes.next() {
        let Err(error) = done.make(&key, value, records).await else { continue };
        if done.is_nothing() {
            return Err(error.into());
        }
        let mut data = done.into_value("partial");
        data["failed"] = json!({"key": key, "message": error.to_string()});
        data["not_tried"] = changes.map(|(key, _)| key).collect();
        return Ok(data);
    }
    Ok(done.into_value("updated"))
}

#[derive(Default)]
struct Done {
    set: Vec<Value>,
    deleted: Vec<String>,
    /// Keys to delete that do not exist.
    missing: Vec<String>,
}

impl Done {
    async fn make(
        &mut self,
        key: &str,
        value: Option<Value>,
        records: &dyn Records,
    ) -> Result<(), RecordsError> {
        let Some(value) = value else {
            match records.delete(Module::Memory, key, None).await? {
                true => self.deleted.push(key.to_owned()),
                false => self.missing.push(key.to_owned()),
            }
            return Ok(());
        };
        let body = [("value".to_owned(), value.clone())].into_iter().collect();
        let put = Put { id: Some(key.to_owned()), body, ..Put::default() };
        let record = records.put(Module::Memory, put).await?;
        self.set.push(json!({"key": key, "value": value, "version": record.version}));
        Ok(())
    }

    fn is_nothing(&self) -> bool {
        self.set.is_empty() && self.deleted.is_empty() && self.missing.is_empty()
    }

    fn into_value(self, outcome: &str) -> Value {
        json!({
            "outcome": outcome,
            "count": self.set.len() + self.deleted.len(),
            "set": self.set,
            "deleted": self.deleted,
            "missing": self.missing,
        })
    }
}

fn check_count(field: &str, count: usize) -> Result<(), Trouble> {
    match (1..=KEYS_MAX).contains(&count) {
        true => Ok(()),
        false => {
            Err(Trouble::input(field, format!("the input does not name 1 to {KEYS_MAX} keys")))
        }
    }
}

fn check_value(key: &str, value: &Value) -> Result<(), Trouble> {
    let field = format!("set.{key}");
    if value.is_null() {
        let message = format!("`{field}` is null; name the key in `delete` to forget it");
        return Err(Trouble::input(&field, message));
    }
    match value.to_string().len() > VALUE_BYTES_MAX {
        true => {
            Err(Trouble::input(&field, format!("`{field}` is longer than {VALUE_BYTES_MAX} bytes")))
        }
        false => Ok(()),
    }
}
