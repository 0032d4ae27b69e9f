//! `events.*`: the event log (seed 003 §4.3).
//!
//! Invariant: an event never contains a platform's raw payload, at most a reference to it.

use super::fields::{check_name, check_optional, check_values, fixed, limit, or_default};
use super::{Method, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, Params};
use crate::RawEventRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `events.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventGetParams {
    pub event_id: String,
}

impl Params for EventGetParams {
    const METHOD: Method = Method::EventsGet;

    fn check(&self) -> Result<(), String> {
        check_name("event_id", &self.event_id)
    }
}

/// One entry of the event log, as in `events.get` and `GET /v1/events/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventView {
    pub event_id: String,
    pub source: String,
    pub event_type: String,
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// Position among the events of its conversation.
    #[serde(default)]
    pub conversation_seq: Option<i64>,
    #[serde(default)]
    pub run_id: Option<String>,
    /// Position in the whole log.
    pub seq: i64,
    /// RFC 3339.
    pub created_at: String,
    /// The trigger source; null for events of the host itself (`source` = `host`).
    #[serde(default)]
    pub trigger: Option<Value>,
    /// Where the event's `data` is stored if it was too large to be inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_ref: Option<RawEventRef>,
    /// The event as submitted, or the host's own event.
    #[serde(default)]
    pub event: Value,
    /// Warnings to its sender; missing if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The parameters of `events.page`, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventPageParams {
    /// Default: the run's own conversation, unless the grant allows more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_cursor: Option<String>,
    /// All types if empty.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub event_types: Vec<String>,
    /// At least 1, capped at 200.
    #[serde(
        default = "fixed::<PAGE_LIMIT_DEFAULT>",
        deserialize_with = "limit::<_, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX>"
    )]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub limit: u32,
}

impl Default for EventPageParams {
    fn default() -> Self {
        Self {
            conversation_id: None,
            before_cursor: None,
            event_types: Vec::new(),
            limit: PAGE_LIMIT_DEFAULT,
        }
    }
}

impl Params for EventPageParams {
    const METHOD: Method = Method::EventsPage;

    fn check(&self) -> Result<(), String> {
        check_optional("conversation_id", self.conversation_id.as_deref())?;
        check_values("event_types", &self.event_types)
    }
}

/// The result of `events.page`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    /// Newest first.
    pub items: Vec<EventView>,
    #[serde(default)]
    pub next_cursor: Option<String>,
    pub has_more: bool,
}
