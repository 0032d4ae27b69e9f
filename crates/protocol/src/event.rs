//! An event as submitted, and the response (CONTRACT §2).
//!
//! Invariant: unknown keys are rejected, so that the sender notices a misspelt field.

use crate::nesting::{self, NESTING_MAX};
use crate::{ActorContext, AgentInput, Object, SubjectContext, object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEvent {
    pub event_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(default = "api")]
    pub source: String,
    /// Unix seconds.
    #[serde(
        default,
        deserialize_with = "crate::number::whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub event_time: Option<i64>,
    /// The platform's own name of the event type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_event_type: Option<String>,
    /// The language of the event, as a BCP 47 tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bot_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<SubjectContext>,
    #[serde(default)]
    pub input: AgentInput,
    #[serde(
        default,
        deserialize_with = "object::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub delivery: Option<EventDelivery>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub data: Object,
    /// The agent for the event; default: chosen by the bindings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub metadata: Object,
}

/// Longest name or id in an event.
pub const EVENT_ID_BYTES_MAX: usize = 512;
/// The range of RFC 3339: the years 1 to 9999.
pub const EVENT_TIME_RANGE: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

#[derive(Debug, thiserror::Error)]
pub enum InvalidEvent {
    #[error("invalid event: {reason}")]
    Shape { reason: serde_json::Error },
    #[error("`{field}` {reason}")]
    Value { field: &'static str, reason: String },
}

impl NewEvent {
    /// Parses and checks a submitted event.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidEvent> {
        if nesting::depth(json) > NESTING_MAX {
            let reason = format!("is nested deeper than {NESTING_MAX} levels");
            return Err(InvalidEvent::Value { field: "event", reason });
        }
        let event: Self =
            object::from_slice(json).map_err(|reason| InvalidEvent::Shape { reason })?;
        event.check()?;
        Ok(event)
    }

    /// Checks beyond the shape: names are not empty, bounded and without control characters; times are valid;
    /// media have a source.
    pub fn check(&self) -> Result<(), InvalidEvent> {
        let names = [
            ("event_type", Some(&self.event_type)),
            ("source", Some(&self.source)),
            ("event_id", self.event_id.as_ref()),
            ("source_event_type", self.source_event_type.as_ref()),
            ("locale", self.locale.as_ref()),
            ("bot_id", self.bot_id.as_ref()),
            ("workspace_id", self.workspace_id.as_ref()),
            ("conversation_id", self.conversation_id.as_ref()),
            ("thread_id", self.thread_id.as_ref()),
            ("agent", self.agent.as_ref()),
            ("delivery.surface", self.delivery.as_ref().map(|delivery| &delivery.surface)),
            ("actor.actor_type", self.actor.as_ref().map(|actor| &actor.actor_type)),
            ("actor.actor_id", self.actor.as_ref().and_then(|actor| actor.actor_id.as_ref())),
            ("subject.subject_type", self.subject.as_ref().map(|subject| &subject.subject_type)),
        ];
        for (field, name) in names {
            if let Some(reason) = name.and_then(|name| name_problem(name)) {
                return Err(InvalidEvent::Value { field, reason });
            }
        }
        if self.event_time.is_some_and(|time| !EVENT_TIME_RANGE.contains(&time)) {
            let reason = "must be a time in Unix seconds".to_owned();
            return Err(InvalidEvent::Value { field: "event_time", reason });
        }
        match self.input.contents.iter().find_map(|element| element.problem()) {
            Some(reason) => {
                let reason = format!("has an invalid element: {reason}");
                Err(InvalidEvent::Value { field: "input.contents", reason })
            }
            None => Ok(()),
        }
    }
}

fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > EVENT_ID_BYTES_MAX {
        return Some(format!("must have 1 to {EVENT_ID_BYTES_MAX} bytes"));
    }
    name.contains(char::is_control).then(|| "must not contain control characters".to_owned())
}

fn api() -> String {
    "api".to_owned()
}

/// Where replies are delivered: the name of a configured surface, never an address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventDelivery {
    pub surface: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventAnswer {
    pub event_id: String,
    pub run_id: Option<String>,
    /// `queued`, `running`, `steered`, `unbound`; for a duplicate also the final status of the run.
    pub status: String,
    /// Warnings about the accepted event; missing if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
