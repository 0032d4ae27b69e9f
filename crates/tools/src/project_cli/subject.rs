//! What a call of a built-in method is about, with the titles of its records.
//!
//! Invariant: pure. First the records that a call names are determined; the caller looks them up with the actor's
//! rights.

use super::calendar::shown;
use super::records::Module;
use super::{Action, Call, MethodSpec, find};
use crate::subject::{RECORDS_MAX, clipped, field};
use greenroom_protocol::Object;
use greenroom_protocol::api::platform::{ApprovalSubject, SubjectField, SubjectRecord};
use greenroom_protocol::records::RecordView as Record;
use serde_json::Value;
use std::collections::BTreeMap;

/// The ids of the records that a call names, at most as many as an approval shows.
pub(crate) fn named(call: &Call) -> Option<(Module, Vec<String>)> {
    let spec = find(&call.module, &call.method)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (module, ids): (Module, Vec<String>) = match spec.action {
        Action::CalendarUpdate
        | Action::CalendarDelete
        | Action::CalendarShare
        | Action::CalendarAcceptInvite
        | Action::CalendarRejectInvite => {
            (Module::Calendar, call.input.get("event_id").and_then(text).into_iter().collect())
        }
        Action::MemoryUpdate => (Module::Memory, memory_keys(&call.input).collect()),
        Action::CalendarRead
        | Action::CalendarCreate
        | Action::ContactsRead
        | Action::MemoryRead => return None,
    };
    let ids: Vec<String> = ids.into_iter().take(RECORDS_MAX).collect();
    (!ids.is_empty()).then_some((module, ids))
}

/// The subject of a call; a record that is not in `found` does not exist for the actor.
pub(crate) fn subject(call: &Call, found: &BTreeMap<String, Record>) -> ApprovalSubject {
    let Some(spec) = find(&call.module, &call.method) else { return ApprovalSubject::default() };
    match spec.action {
        Action::MemoryUpdate => memory(&call.input, found),
        _ => of_event(spec, &call.input, found),
    }
}

fn of_event(
    spec: &MethodSpec,
    input: &Object,
    found: &BTreeMap<String, Record>,
) -> ApprovalSubject {
    let id = input.get("event_id").and_then(Value::as_str);
    let before = id.and_then(|id| found.get(id)).map(|record| shown(record, None, None));
    let is_input = |name: &&str| !matches!(*name, "event_id" | "if_version");
    let names = spec.fields.iter().map(|(name, _)| *name).filter(is_input);
    let fields = names.filter_map(|name| {
        let present = before.as_ref().and_then(|before| before.get(name));
        Some(SubjectField { before: present.map(clipped), ..field(name, input.get(name)?) })
    });
    ApprovalSubject {
        fields: fields.collect(),
        records: id.map(|id| event(id, before.as_ref())).into_iter().collect(),
        left_out: 0,
    }
}

fn event(id: &str, found: Option<&Object>) -> SubjectRecord {
    let text = |key: &str| found.and_then(|event| event.get(key)).map(clipped);
    SubjectRecord {
        id: id.to_owned(),
        title: text("title"),
        detail: None,
        start_at: text("start_at"),
        end_at: text("end_at"),
    }
}

fn memory(input: &Object, found: &BTreeMap<String, Record>) -> ApprovalSubject {
    let value = |key: &str| found.get(key).map(|record| clipped(&record.body["value"]));
    let set = input.get("set").and_then(Value::as_object).into_iter().flatten();
    let fields: Vec<SubjectField> =
        set.map(|(key, new)| SubjectField { before: value(key), ..field(key, new) }).collect();
    let records: Vec<SubjectRecord> = deleted(input)
        .map(|key| SubjectRecord {
            id: key.clone(),
            title: found.contains_key(&key).then(|| key.clone()),
            detail: value(&key),
            ..SubjectRecord::default()
        })
        .collect();
    ApprovalSubject { records, fields, left_out: 0 }
}

/// Keys to delete first: they matter most.
fn memory_keys(input: &Object) -> impl Iterator<Item = String> + '_ {
    let set = input.get("set").and_then(Value::as_object).into_iter().flat_map(Object::keys);
    deleted(input).chain(set.cloned())
}

fn deleted(input: &Object) -> impl Iterator<Item = String> + '_ {
    let keys = input.get("delete").and_then(Value::as_array).into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(module: &str, method: &str, input: Value) -> Call {
        let Value::Object(input) = input else { panic!("an object") };
        Call { module: module.to_owned(), method: method.to_owned(), input }
    }

    fn dinner() -> BTreeMap<String, Record> {
        let record = serde_json::from_value(json!({"id": "rec_1", "owner": "ann", "version": 1,
            "starts_at": 1_776_769_200_000_i64, "ends_at": 1_776_772_800_000_i64,
            "body": {"title": "dinner", "utc_offset_s": 28_800}, "updated_at": ""}));
        BTreeMap::from([("rec_1".to_owned(), record.unwrap())])
    }

    #[test]
    fn a_deletion_names_the_event_and_its_time() {
        let call = call("calendar", "delete", json!({"event_id": "rec_1", "if_version": 1}));
        assert_eq!(named(&call), Some((Module::Calendar, vec!["rec_1".to_owned()])));
        let expected = json!({"records": [{"id": "rec_1", "title": "dinner",
            "start_at": "2026-04-21T19:00:00+08:00", "end_at": "2026-04-21T20:00:00+08:00"}]});
        assert_eq!(json!(subject(&call, &dinner())), expected);
        let unknown = json!({"records": [{"id": "rec_1"}]});
        assert_eq!(json!(subject(&call, &BTreeMap::new())), unknown);
    }

    #[test]
    fn a_change_shows_the_present_values() {
        let call = call(
            "calendar",
            "update",
            json!({"event_id": "rec_1", "title": "supper", "location": "B2"}),
        );
        let shown = json!(subject(&call, &dinner()));
        let fields = json!([{"name": "title", "value": "supper", "before": "dinner"},
            {"name": "location", "value": "B2"}]);
        assert_eq!((&shown["fields"], &shown["records"][0]["title"]), (&fields, &json!("dinner")));
    }

    #[test]
    fn facts_to_delete_are_shown_with_their_values() {
        let tea = serde_json::from_value(json!({"id": "tea", "owner": "ann", "version": 1,
            "body": {"value": "green"}, "updated_at": ""}));
        let found = BTreeMap::from([("tea".to_owned(), tea.unwrap())]);
        let call =
            call("memory", "update", json!({"set": {"tea": "black"}, "delete": ["tea", "age"]}));
        let expected = json!({
            "records": [{"id": "tea", "title": "tea", "detail": "green"}, {"id": "age"}],
            "fields": [{"name": "tea", "value": "black", "before": "green"}]});
        assert_eq!(json!(subject(&call, &found)), expected);
    }

    #[test]
    fn a_read_names_no_record() {
        assert_eq!(named(&call("memory", "read", json!({"keys": ["tea"]}))), None);
    }
}
