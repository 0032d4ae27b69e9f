//! `calendar.*`: events with a start, an end and invited people.
//!
//! Invariant: only the owner changes, deletes and shares an event; a change never overwrites a version that was
//! not read.

mod change;
mod event;

pub(super) use change::{answer, delete, share, update};
pub(super) use event::shown;

use super::input::{Day, Id, Moment, Text, Trouble, Zone, given, read as strict};
use super::records::{Module, Put, RecordWithLinks, Records};
use event::{Event, rendered};
use greenroom_protocol::Object;
use greenroom_protocol::records::{RecordLink as Link, RecordView as Record};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

/// Most events of one read.
const EVENTS_MAX: usize = 200;
const CALENDAR: Module = Module::Calendar;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadDay {
    date: Day,
    timezone: Zone,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadRange {
    start_at: Moment,
    end_at: Moment,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneEvent {
    event_id: Id,
}

pub(super) async fn read(input: &Object, records: &dyn Records) -> Result<Value, Trouble> {
    let mut rest = input.clone();
    let mode = rest.remove("mode").ok_or_else(|| Trouble::input("mode", "missing field `mode`"))?;
    match mode.as_str() {
        Some("day") => read_day(strict(&rest)?, records).await,
        Some("range") => read_range(strict(&rest)?, records).await,
        Some("event") => {
            let OneEvent { event_id } = strict(&rest)?;
            let (record, links) = load(&event_id, records).await?;
            Ok(Value::Object(shown(&record, None, Some(&links))))
        }
        _ => Err(Trouble::input("mode", "`mode` is not one of day, range, event")),
    }
}

async fn read_day(input: ReadDay, records: &dyn Records) -> Result<Value, Trouble> {
    let ReadDay { date: Day(date), timezone } = input;
    // From the first moment of a day to that of the next: 23 or 25 hours when clocks change, none where a
    // zone skipped a day.
    let first_ms = |date: jiff::civil::Date| {
        let first = date.to_zoned(timezone.0.clone()).and_then(|zoned| zoned.start_of_day());
        first.map(|zoned| zoned.timestamp().as_millisecond())
    };
    let out_of_range = |_| Trouble::input("date", "`date` is out of range");
    let from = first_ms(date).map_err(out_of_range)?;
    let to = first_ms(date.tomorrow().map_err(out_of_range)?).map_err(out_of_range)?;
    let mut data = span(from, to, Some(&timezone.0), records).await?;
    data.insert("mode".to_owned(), "day".into());
    data.insert("date".to_owned(), date.to_string().into());
    data.insert("timezone".to_owned(), timezone.name().into());
    data.insert("start_at".to_owned(), rendered(from, &timezone.0).into());
    data.insert("end_at".to_owned(), rendered(to, &timezone.0).into());
    Ok(Value::Object(data))
}

async fn read_range(input: ReadRange, records: &dyn Records) -> Result<Value, Trouble> {
    let ReadRange { start_at, end_at } = input;
    in_order(start_at.at_ms, end_at.at_ms)?;
    let mut data = span(start_at.at_ms, end_at.at_ms, None, records).await?;
    data.insert("mode".to_owned(), "range".into());
    for (key, moment) in [("start_at", start_at), ("end_at", end_at)] {
        data.insert(key.to_owned(), rendered(moment.at_ms, &TimeZone::fixed(moment.offset)).into());
    }
    Ok(Value::Object(data))
}

/// The events that overlap `from..to`, by their start.
async fn span(
    from: i64,
    to: i64,
    zone: Option<&TimeZone>,
    records: &dyn Records,
) -> Result<Object, Trouble> {
    let limit = EVENTS_MAX as u32 + 1;
    let mut found = match from < to {
        true => records.list(CALENDAR, Some((from, to)), limit).await?,
        false => Vec::new(),
    };
    found.retain(|record| {
        let start = record.starts_at.unwrap_or(i64::MAX);
        start < to && record.ends_at.unwrap_or(start).max(start + 1) > from
    });
    found.sort_by(|a, b| (a.starts_at, &a.id).cmp(&(b.starts_at, &b.id)));
    let has_more = found.len() > EVENTS_MAX;
    found.truncate(EVENTS_MAX);
    let items: Vec<Value> =
        found.iter().map(|record| Value::Object(shown(record, zone, None))).collect();
    let mut data = Object::new();
    data.insert("count".to_owned(), items.len().into());
    data.insert("items".to_owned(), items.into());
    data.insert("has_more".to_owned(), has_more.into());
    Ok(data)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    title: Text<200>,
    start_at: Moment,
    end_at: Moment,
    #[serde(default, deserialize_with = "given")]
    timezone: Option<Zone>,
    #[serde(default, deserialize_with = "given")]
    location: Option<Text<500>>,
    #[serde(default, deserialize_with = "given")]
    notes: Option<Text<10_000>>,
}

pub(super) async fn create(input: &Object, records: &dyn Records) -> Result<Value, Trouble> {
    let Create { title, start_at, end_at, timezone, location, notes } = strict(input)?;
    let event = Event {
        title: title.0,
        timezone: timezone.map(|zone| zone.name().to_owned()),
        utc_offset_s: start_at.offset.seconds(),
        location: location.map(|text| text.0),
        notes: notes.map(|text| text.0),
    };
    let put = placed(event, start_at.at_ms, end_at.at_ms)?;
    let record = records.put(CALENDAR, put).await?;
    Ok(outcome("created", shown(&record, None, Some(&[]))))
}

/// The record of an event at this time.
fn placed(event: Event, start_ms: i64, end_ms: i64) -> Result<Put, Trouble> {
    in_order(start_ms, end_ms)?;
    Ok(Put {
        id: None,
        if_version: None,
        starts_at: Some(start_ms),
        ends_at: Some(end_ms),
        body: event.body(),
    })
}

fn in_order(start_ms: i64, end_ms: i64) -> Result<(), Trouble> {
    match start_ms < end_ms {
        true => Ok(()),
        false => Err(Trouble::input("end_at", "`end_at` is not after `start_at`")),
    }
}

/// An event that the actor can see; otherwise it does not exist.
async fn load(id: &Id, records: &dyn Records) -> Result<(Record, Vec<Link>), Trouble> {
    let RecordWithLinks { record, links } = records.get(CALENDAR, &id.0).await?;
    let record = record.ok_or_else(|| no_event(id))?;
    Ok((record, links))
}

fn no_event(id: &Id) -> Trouble {
    Trouble::Failure(
        crate::ToolFailure::new("NOT_FOUND", format!("there is no event `{}`", id.0))
            .detail("event_id", id.0.clone()),
    )
}

fn outcome(word: &str, mut event: Object) -> Value {
    event.insert("outcome".to_owned(), word.into());
    Value::Object(event)
}
