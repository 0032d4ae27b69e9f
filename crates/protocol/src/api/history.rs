//! `history.*`: the transcript of a conversation, page by page or by search (seed 003 §4.1, §4.2).
//!
//! Invariant: items are oldest first whichever way is paged; a cursor belongs to one conversation.

use super::fields::{check_optional, check_query, check_values, fixed, limit, or_default};
use super::{Method, Moment, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, Params, TOP_K_MAX};
use crate::{TranscriptItem, TranscriptRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way a page goes from its cursor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the beginning of the conversation.
    #[default]
    Backward,
    /// Towards its end.
    Forward,
}

/// The parameters of `history.page`. Without a cursor, `backward` begins right before the run's own event
/// and `forward` at the first item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPageParams {
    /// The run's own conversation when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Only items before this place; not the one it stands at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_cursor: Option<String>,
    /// Only items after this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_cursor: Option<String>,
    /// From 1 on; more than 200 is taken as 200.
    #[serde(
        default = "fixed::<PAGE_LIMIT_DEFAULT>",
        deserialize_with = "limit::<_, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX>"
    )]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub limit: u32,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Direction>")]
    pub direction: Direction,
    /// Also list each item's artifacts; they are left out otherwise.
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

/// The answer to `history.page`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPage {
    /// Oldest first.
    pub items: Vec<TranscriptItem>,
    /// Goes on in the direction that was asked for; null when there is nothing more.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// Goes the other way.
    #[serde(default)]
    pub prev_cursor: Option<String>,
    /// There is more in the direction that was asked for.
    pub has_more: bool,
}

/// The parameters of `history.search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySearchParams {
    /// What to look for, in any language; 1 to 4096 bytes.
    pub query: String,
    #[serde(default, deserialize_with = "crate::object::or_default")]
    #[schemars(with = "Option<HistoryFilters>")]
    pub filters: HistoryFilters,
    /// From 1 on; more than 100 is taken as 100.
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

/// What a hit must be; an empty list takes everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistoryFilters {
    /// The run's own conversation when absent, unless the grant says more.
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

/// The answer to `history.search`, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySearchResult {
    pub items: Vec<SearchHit>,
}

/// An item of the transcript that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    #[serde(flatten)]
    pub item: TranscriptItem,
    /// Greater is better; only comparable within one answer.
    pub score: f64,
    /// The part of the text around the match.
    pub snippet: String,
    /// Where the matches are within the snippet.
    #[serde(default)]
    pub highlights: Vec<Highlight>,
}

/// A range of Unicode characters, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Highlight {
    pub start: u32,
    pub end: u32,
}
