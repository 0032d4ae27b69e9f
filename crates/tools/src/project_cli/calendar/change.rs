//! Changes, deletions and sharing of events, and answers to invitations.
//!
//! Invariant: a change applies to the version that was read, or fails.

use super::super::input::{
    Id, Moment, Text, Trouble, Zone, clearable, given, is_conflict, read as strict,
};
use super::super::records::{Put, Records};
use super::event::{Event, attendees, shown};
use super::{CALENDAR, OneEvent, in_order, load, no_event, outcome, placed};
use crate::ToolFailure;
use greenroom_protocol::Object;
use greenroom_protocol::records::{RecordLinkStatus as LinkStatus, RecordView as Record};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most people that one call invites.
const INVITED_MAX: usize = 50;
/// How often a change is retried after a concurrent one.
const TRIES: usize = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    event_id: Id,
    #[serde(default, deserialize_with = "given")]
    title: Option<Text<200>>,
    #[serde(default, deserialize_with = "given")]
    start_at: Option<Moment>,
    #[serde(default, deserialize_with = "given")]
    end_at: Option<Moment>,
    #[serde(default, deserialize_with = "clearable")]
    timezone: Option<Option<Zone>>,
    #[serde(default, deserialize_with = "clearable")]
    location: Option<Option<Text<500>>>,
    #[serde(default, deserialize_with = "clearable")]
    notes: Option<Option<Text<10_000>>>,
    #[serde(default, deserialize_with = "given")]
    if_version: Option<i64>,
}

pub(in super::super) async fn update(
    input: &Object,
    records: &dyn Records,
) -> Result<Value, Trouble> {
    let update: Update = strict(input)?;
    let is_change = |key: &&String| !matches!(key.as_str(), "event_id" | "if_version");
    let changed: Vec<&String> = input.keys().filter(is_change).collect();
    if changed.is_empty() {
        return Err(Trouble::input("", "there is nothing to change"));
    }
    if let (Some(start_at), Some(end_at)) = (update.start_at, update.end_at) {
        in_order(start_at.at_ms, end_at.at_ms)?;
    }
    let mut tries = 0;
    let (record, links) = loop {
        tries += 1;
        let (record, links) = load(&update.event_id, records).await?;
        own(&record, "change")?;
        let put = update.applied(&record)?;
        match records.put(CALENDAR, put).await {
            Ok(record) => break (record, links),
            // Without a version from the caller the fields are applied to the present event.
            Err(error) if is_conflict(&error) && update.if_version.is_none() && tries < TRIES => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut event = shown(&record, None, Some(&links));
    event.insert("changed".to_owned(), json!(changed));
    Ok(outcome("updated", event))
}

impl Update {
    fn applied(&self, record: &Record) -> Result<Put, Trouble> {
        let mut event = Event::of(record);
        if let Some(title) = &self.title {
            event.title = title.0.clone();
        }
        if let Some(zone) = &self.timezone {
            event.timezone = zone.as_ref().map(|zone| zone.name().to_owned());
        }
        if let Some(location) = &self.location {
            event.location = location.as_ref().map(|text| text.0.clone());
        }
        if let Some(notes) = &self.notes {
            event.notes = notes.as_ref().map(|text| text.0.clone());
        }
        if let Some(start_at) = self.start_at {
            event.utc_offset_s = start_at.offset.seconds();
        }
        let at = |given: Option<Moment>, field: &str, kept: Option<i64>| {
            given.map(|moment| moment.at_ms).or(kept).ok_or_else(|| {
                Trouble::input(field, format!("`{field}` is needed: the event has none yet"))
            })
        };
        let start_ms = at(self.start_at, "start_at", record.starts_at)?;
        let end_ms = at(self.end_at, "end_at", record.ends_at)?;
        Ok(Put {
            id: Some(record.id.clone()),
            if_version: Some(self.if_version.unwrap_or(record.version)),
            ..placed(event, start_ms, end_ms)?
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delete {
    event_id: Id,
    #[serde(default, deserialize_with = "given")]
    if_version: Option<i64>,
}

pub(in super::super) async fn delete(
    input: &Object,
    records: &dyn Records,
) -> Result<Value, Trouble> {
    let Delete { event_id, if_version } = strict(input)?;
    let (record, _) = load(&event_id, records).await?;
    own(&record, "delete")?;
    if !records.delete(CALENDAR, &event_id.0, if_version).await? {
        return Err(no_event(&event_id));
    }
    Ok(outcome("deleted", shown(&record, None, None)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Share {
    event_id: Id,
    with: Vec<Id>,
}

pub(in super::super) async fn share(
    input: &Object,
    records: &dyn Records,
) -> Result<Value, Trouble> {
    let Share { event_id, with } = strict(input)?;
    let mut invited: Vec<String> = with.into_iter().map(|id| id.0).collect();
    invited.sort();
    invited.dedup();
    if invited.is_empty() || invited.len() > INVITED_MAX {
        let message = format!("`with` does not name 1 to {INVITED_MAX} actors");
        return Err(Trouble::input("with", message));
    }
    let (record, _) = load(&event_id, records).await?;
    own(&record, "share")?;
    if invited.contains(&record.owner) {
        return Err(Trouble::input("with", "`with` names the owner of the event"));
    }
    let links = records.share(CALENDAR, &event_id.0, invited.clone()).await?;
    let mut event = shown(&record, None, Some(&links));
    let invited: Vec<_> = links.into_iter().filter(|link| invited.contains(&link.actor)).collect();
    event.insert("count".to_owned(), invited.len().into());
    event.insert("invited".to_owned(), attendees(&invited));
    Ok(outcome("shared", event))
}

/// `accept_invite` and `reject_invite`.
pub(in super::super) async fn answer(
    input: &Object,
    status: LinkStatus,
    records: &dyn Records,
) -> Result<Value, Trouble> {
    let OneEvent { event_id } = strict(input)?;
    let (mut record, _) = load(&event_id, records).await?;
    if record.link_status.is_none() {
        return Err(Trouble::failure("FORBIDDEN", "this is your own event, not an invitation"));
    }
    if records.answer(CALENDAR, &event_id.0, status).await?.is_none() {
        return Err(no_event(&event_id));
    }
    record.link_status = Some(status);
    let mut event = shown(&record, None, None);
    event.insert("status".to_owned(), status.as_str().into());
    Ok(outcome(status.as_str(), event))
}

fn own(record: &Record, verb: &str) -> Result<(), Trouble> {
    match record.link_status {
        None => Ok(()),
        Some(_) => Err(Trouble::Failure(
            ToolFailure::new("FORBIDDEN", format!("only the owner may {verb} this event"))
                .detail("event_id", record.id.clone())
                .detail("owner", record.owner.clone()),
        )),
    }
}
