//! Search in transcripts.
//!
//! Invariant: an item that was committed before the search began is found, indexed or not; an item of
//! another workspace, or one that a filter leaves out, never is.

use super::conversations::by_ids;
use crate::StoreError;
use crate::params;
use crate::search::asked::Asked;
use crate::search::fold::fold;
use crate::search::index::{Count, Wanted, propose, text_of, upto};
use crate::search::snippet::snippet;
use crate::search::terms::{Entry, Terms, Text, entry_columns};
use crate::sql::Tx;
use crate::types::ItemRow;
use std::collections::HashSet;

pub use crate::search::snippet::Highlight;

/// Hits that one search returns at most.
pub const TOP_K_MAX: usize = 200;
/// Proposals that one search looks at: more only come together when a query's terms are everywhere and its
/// phrases are not.
const PROPOSALS_MAX: usize = 200_000;
/// Bytes of long texts that one search reads.
const LONG_BYTES_MAX: i64 = 32 * 1024 * 1024;
/// Items not indexed yet that are read at once.
const TAIL_PAGE: i64 = 512;
/// Items with some of the query that are kept on the way.
const NEAR_MAX: usize = 256;

#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    pub workspace: String,
    pub text: String,
    pub conversation: Option<String>,
    pub thread: Option<String>,
    /// Items that came with one of these events; empty means any item.
    pub event_types: Vec<String>,
    /// Items of one of these roles; empty means any.
    pub roles: Vec<String>,
    pub actor_id: Option<String>,
    /// Items of this moment or later.
    pub after_ms: Option<i64>,
    /// Items before this moment.
    pub before_ms: Option<i64>,
    /// In this conversation, items of events before this one only.
    pub event_seq_before: Option<(String, i64)>,
    pub top_k: usize,
}

/// An item that was found. Scores above 1 hold the whole query, others parts of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub item: ItemRow,
    pub score: f64,
    pub snippet: String,
    pub highlights: Vec<Highlight>,
}

/// The best hits, the newest first among equals.
pub fn search(tx: &mut dyn Tx, query: &SearchQuery) -> Result<Vec<Hit>, StoreError> {
    let top_k = query.top_k.min(TOP_K_MAX);
    let Some(asked) = Asked::new(&query.text).filter(|_| top_k > 0) else { return Ok(Vec::new()) };
    // First the mark, then the rest: what is indexed meanwhile is seen twice rather than not at all.
    let upto = upto(tx)?;
    let mut search = Search {
        query,
        asked: &asked,
        seen: HashSet::new(),
        found: Vec::new(),
        near: Vec::new(),
        long_bytes: 0,
    };
    search.scan_tail(tx, upto)?;
    search.ask_index(tx, upto, top_k)?;
    let mut found = std::mem::take(&mut search.found);
    if found.len() < top_k && !asked.parts.is_empty() {
        found.extend(search.find_parts(tx, upto, top_k - found.len())?);
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
    found.truncate(top_k);
    let ids: Vec<i64> = found.iter().map(|found| found.id).collect();
    let mut items = by_ids(tx, &ids)?;
    let hits = found.into_iter().filter_map(|Found { id, score }| {
        let item = items.remove(&id)?;
        let (snippet, highlights) = snippet(item.text.as_deref().unwrap_or_default(), &asked);
        Some(Hit { item, score, snippet, highlights })
    });
    Ok(hits.collect())
}

struct Found {
    id: i64,
    score: f64,
}

struct Search<'a> {
    query: &'a SearchQuery,
    asked: &'a Asked,
    /// Items that were looked at.
    seen: HashSet<i64>,
    found: Vec<Found>,
    /// Items that hold parts of the query, with their folded texts.
    near: Vec<(i64, String)>,
    long_bytes: i64,
}

impl Search<'_> {
    /// Looks at everything that is not indexed yet.
    fn scan_tail(&mut self, tx: &mut dyn Tx, upto: i64) -> Result<(), StoreError> {
        let mut before = i64::MAX;
        loop {
            let rows = tx.query(
                concat!(
                    "SELECT ",
                    entry_columns!(),
                    " FROM transcript t WHERE t.id > ?1 AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3"
                ),
                params![upto, before, TAIL_PAGE],
            )?;
            let count = rows.len() as i64;
            for row in rows {
                let entry = Entry::read(row)?;
                before = entry.id;
                self.look(tx, &entry)?;
            }
            if count < TAIL_PAGE {
                return Ok(());
            }
        }
    }

    /// Asks the index for items with all terms until enough of them match.
    fn ask_index(&mut self, tx: &mut dyn Tx, upto: i64, top_k: usize) -> Result<(), StoreError> {
        let mut wanted = self.filters();
        wanted.all.extend(self.asked.terms(Terms { workspace: &self.query.workspace }));
        // The first page is ranked even when less would do, later ones come while too few match.
        let mut count = Count::Page;
        let (mut before, mut total) = (upto + 1, 0);
        loop {
            let page = propose(tx, &self.query.workspace, &wanted, before, count)?;
            total += page.len();
            for entry in &page {
                self.look(tx, entry)?;
            }
            let enough = self.found.len() >= top_k || total >= PROPOSALS_MAX;
            match page.last() {
                Some(last) if page.len() == count.limit() && !enough => before = last.id,
                _ => return Ok(()),
            }
            count = Count::Many;
        }
    }

    fn look(&mut self, tx: &mut dyn Tx, entry: &Entry) -> Result<(), StoreError> {
        if !self.admits(entry) || !self.seen.insert(entry.id) {
            return Ok(());
        }
        let Some(folded) = self.folded(tx, entry)? else { return Ok(()) };
        if let Some(score) = self.asked.score(&folded) {
            self.found.push(Found { id: entry.id, score });
        } else if self.near.len() < NEAR_MAX
            && self.asked.parts.iter().any(|part| part.is_in(&folded))
        {
            self.near.push((entry.id, folded));
        }
        Ok(())
    }

    /// The text as it is compared; nothing when there is none, or too much was read already.
    fn folded(&mut self, tx: &mut dyn Tx, entry: &Entry) -> Result<Option<String>, StoreError> {
        if let Text::Long { bytes } = entry.text {
            self.long_bytes += bytes;
            if self.long_bytes > LONG_BYTES_MAX {
                return Ok(None);
            }
        }
        Ok(text_of(tx, entry)?.map(|text| fold(&text)))
    }

    /// Items that hold some of the query, those with its rarest parts first.
    fn find_parts(
        &mut self,
        tx: &mut dyn Tx,
        upto: i64,
        count_max: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let mut weights = Vec::new();
        for part in &self.asked.parts {
            let mut wanted = self.filters();
            wanted.all.push(Terms { workspace: &self.query.workspace }.word(part.text()));
            let page = propose(tx, &self.query.workspace, &wanted, upto + 1, Count::Few)?;
            weights.push(weight(&page, upto));
            for entry in page {
                if self.admits(&entry) && self.seen.insert(entry.id) {
                    let folded = self.folded(tx, &entry)?;
                    self.near.extend(folded.map(|folded| (entry.id, folded)));
                }
            }
        }
        let scored = self.near.iter().filter_map(|(id, folded)| {
            let score = self.asked.partial_score(folded, &weights)?;
            Some(Found { id: *id, score })
        });
        let mut found: Vec<Found> = scored.collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
        found.truncate(count_max);
        Ok(found)
    }

    /// What the index can tell of the filters.
    fn filters(&self) -> Wanted {
        let query = self.query;
        let terms = Terms { workspace: &query.workspace };
        let mut wanted = Wanted::default();
        wanted.all.extend(query.conversation.as_deref().map(|id| terms.conversation(id)));
        wanted.all.extend(query.thread.as_deref().map(|id| terms.thread(id)));
        wanted.all.extend(query.actor_id.as_deref().map(|id| terms.actor(id)));
        wanted.any_of(query.event_types.iter().map(|name| terms.event_type(name)).collect());
        wanted.any_of(query.roles.iter().map(|role| terms.role(role)).collect());
        // The newest come first anyway, so only an end makes a difference.
        if let Some(before_ms) = query.before_ms {
            wanted.any_of(terms.span(query.after_ms.unwrap_or(0), before_ms));
        }
        wanted
    }

    fn admits(&self, entry: &Entry) -> bool {
        let query = self.query;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        let one_of = |wanted: &[String], found: Option<&str>| {
            wanted.is_empty() || wanted.iter().any(|wanted| Some(wanted.as_str()) == found)
        };
        entry.workspace_id == query.workspace
            && is(&query.conversation, Some(&entry.conversation_id))
            && is(&query.thread, entry.thread_id.as_deref())
            && is(&query.actor_id, entry.actor_id.as_deref())
            && one_of(&query.event_types, entry.event_type.as_deref())
            && one_of(&query.roles, Some(&entry.role))
            && query.after_ms.is_none_or(|after| entry.created_at >= after)
            && query.before_ms.is_none_or(|before| entry.created_at < before)
            && query.event_seq_before.as_ref().is_none_or(|(conversation, event_seq)| {
                entry.conversation_id != *conversation || entry.event_seq < *event_seq
            })
    }
}

/// What a part is worth: the rarer, the more. How rare it is shows from how far back its newest items go.
fn weight(newest: &[Entry], upto: i64) -> f64 {
    let items = upto.max(1) as f64;
    let share = match newest.last() {
        Some(last) if newest.len() == Count::Few.limit() => {
            newest.len() as f64 / (upto - last.id + 1).max(1) as f64
        }
        _ => newest.len().max(1) as f64 / items,
    };
    (1.0 + 1.0 / share.clamp(1e-9, 1.0)).ln()
}
