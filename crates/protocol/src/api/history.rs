//! `history.*`: the transcript of a conversation, by page or search (seed 003 §4.1, §4.2).
//!
//! Invariant: items are oldest first in either direction; a cursor belongs to one conversation.

use super::fields::{check_optional, check_query, check_values, fixed, limit, or_default};
use super::{Method, Moment, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, Params, TOP_K_MAX};
use crate::{TranscriptItem, TranscriptRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Page direction relative to the cursor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the beginning of the conversation.
    #[default]
    Backward,
    /// Towards its end.
    Forward,
}

/// The parameters of `history.page`. Without a cursor, `backward` starts right before the run's own event
/// and `forward` at the first item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPageParams {
    /// Default: the run's own conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Only items before this position (exclusive).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_cursor: Option<String>,
    /// Only items after this position (exclusive).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_cursor: Option<String>,
    /// At least 1, capped at 200.
    #[serde(
        default = "fixed::<PAGE_LIMIT_DEFAULT>",
        deserialize_with = "limit::<_, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX>"
    )]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub limit: u32,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Direction>")]
    pub direction: Direction,
    /// Include each item's artifacts.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub include_artifacts: bool,
}

impl Default for HistoryPageParams {
    fn default() -> Self {
        Self {
            conversation_id: None,
            before_cursor: None,
            after_cursor: None,
            limit: PAGE_LIMIT_DEFAULT,
            direction: Direction::Backward,
            include_artifacts: false,
        }
    }
}

impl Params for HistoryPageParams {
    const METHOD: Method = Method::HistoryPage;

    fn check(&self) -> Result<(), String> {
        check_optional("conversation_id", self.conversation_id.as_deref())
    }
}

/// The result of `history.page`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPage {
    /// Oldest first.
    pub items: Vec<TranscriptItem>,
    /// Continues in the requested direction; null at the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// Goes back in the opposite direction.
    #[serde(default)]
    pub prev_cursor: Option<String>,
    /// There are more items in the requested direction.
    pub has_more: bool,
}

/// The parameters of `history.search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySearchParams {
    /// Search text in any language; 1 to 4096 bytes.
    pub query: String,
    #[serde(default, deserialize_with = "crate::object::or_default")]
    #[schemars(with = "Option<HistoryFilters>")]
    pub filters: HistoryFilters,
    /// At least 1, capped at 100.
    #[serde(default = "fixed::<10>", deserialize_with = "limit::<_, 10, TOP_K_MAX>")]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub top_k: u32,
}

impl HistorySearchParams {
    /// The ten best hits without filters.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), filters: HistoryFilters::default(), top_k: 10 }
    }
}

impl Params for HistorySearchParams {
    const METHOD: Method = Method::HistorySearch;

    fn check(&self) -> Result<(), String> {
        let filters = &self.filters;
        check_query("query", &self.query)?;
        check_optional("filters.conversation_id", filters.conversation_id.as_deref())?;
        check_optional("filters.thread_id", filters.thread_id.as_deref())?;
        check_optional("filters.actor_id", filters.actor_id.as_deref())?;
        for event_type in &filters.event_types {
            check_optional("filters.event_types", Some(event_type))?;
        }
        check_values("filters.event_types", &filters.event_types)?;
        check_values("filters.roles", &filters.roles)
    }
}

/// Filters of a search; an empty list matches everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistoryFilters {
    /// Default: the run's own conversation, unless the grant allows more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub event_types: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<TranscriptRole>>")]
    pub roles: Vec<TranscriptRole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    /// At this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Moment>,
    /// Before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Moment>,
}

/// The result of `history.search`, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySearchResult {
    pub items: Vec<SearchHit>,
}

/// A matching transcript item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    #[serde(flatten)]
    pub item: TranscriptItem,
    /// Greater is better; only comparable within one result.
    pub score: f64,
    /// The part of the text around the match.
    pub snippet: String,
    /// Positions of the matches in the snippet.
    #[serde(default)]
    pub highlights: Vec<Highlight>,
}

/// A range of Unicode characters, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Highlight {
    pub start: u32,
    pub end: u32,
}
