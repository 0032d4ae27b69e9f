//! An event: its stored and its displayed form.
//!
//! Invariant: its times are stored once, as times of the record; zone and offset only determine how they are shown.

use super::super::input::Zone;
use greenroom_protocol::Object;
use greenroom_protocol::records::{RecordLink as Link, RecordView as Record};
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The body of a record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timezone: Option<String>,
    /// The offset in which its times were written; used when there is no time zone.
    pub(super) utc_offset_s: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notes: Option<String>,
}

impl Event {
    /// Reads a body leniently: another program may have written it.
    pub(super) fn of(record: &Record) -> Self {
        serde_json::from_value(Value::Object(record.body.clone())).unwrap_or_default()
    }

    pub(super) fn body(&self) -> Object {
        match serde_json::to_value(self) {
            Ok(Value::Object(body)) => body,
            _ => Object::new(),
        }
    }

    fn zone(&self) -> TimeZone {
        let named = self.timezone.as_deref().and_then(Zone::get).map(|zone| zone.0);
        named.unwrap_or_else(|| {
            Offset::from_seconds(self.utc_offset_s).map_or(TimeZone::UTC, TimeZone::fixed)
        })
    }
}

/// The event as callers read it; times in its own zone unless another is requested.
pub(in super::super) fn shown(
    record: &Record,
    zone: Option<&TimeZone>,
    links: Option<&[Link]>,
) -> Object {
    let event = Event::of(record);
    let own = event.zone();
    let zone = zone.unwrap_or(&own);
    let at = |at_ms: Option<i64>| at_ms.map(|at_ms| Value::from(rendered(at_ms, zone)));
    let fields = [
        ("id", Some(record.id.clone().into())),
        ("title", Some(event.title.into())),
        ("start_at", at(record.starts_at)),
        ("end_at", at(record.ends_at)),
        ("timezone", event.timezone.map(Value::from)),
        ("location", event.location.map(Value::from)),
        ("notes", event.notes.map(Value::from)),
        ("owner", Some(record.owner.clone().into())),
        ("invitation", record.link_status.map(|status| status.as_str().into())),
        ("attendees", links.map(attendees)),
        ("version", Some(record.version.into())),
        ("updated_at", Some(record.updated_at.clone().into())),
    ];
    let present = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    present.collect()
}

pub(super) fn attendees(links: &[Link]) -> Value {
    let one = |link: &Link| json!({"actor_id": link.actor, "status": link.status});
    links.iter().map(one).collect()
}

/// RFC 3339 with the offset of the zone at that time.
pub(super) fn rendered(at_ms: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or_default();
    at.display_with_offset(zone.to_offset(at)).to_string()
}
