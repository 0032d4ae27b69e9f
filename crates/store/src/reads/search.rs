//! Search in transcripts.
//!
//! Invariant: an item that was committed before the search began is found, indexed or not; an item of
//! another workspace, or one that a filter leaves out, never is.

use super::conversations::{Reach, by_ids, get as conversation, is_hidden, within};
use crate::StoreError;
use crate::params;
use crate::search::fold::fold;
use crate::search::index::{Count, TermQuery, locate_range, propose, propose_each, text_of, upto};
use crate::search::query::ParsedQuery;
use crate::search::snippet::snippet;
use crate::search::terms::{Entry, Terms, Text, entry_columns};
use crate::session::thread_of;
use crate::sql::Tx;
use crate::types::ItemRow;
use std::collections::{HashMap, HashSet};

pub use crate::search::snippet::Highlight;

/// Items up to which a conversation is read instead of searched.
const CONVERSATION_MAX: i64 = 512;
/// Hits that one search returns at most.
pub const TOP_K_MAX: usize = 200;
/// Proposals that one search examines: more are needed only when a query's terms are everywhere and its phrases
/// are not.
const PROPOSALS_MAX: usize = 200_000;
/// Bytes of long texts that one search reads.
const LONG_BYTES_MAX: i64 = 32 * 1024 * 1024;
/// Items not indexed yet that are read at once.
const TAIL_PAGE: i64 = 512;
/// Items with all parts are searched in this many times the range that holds a few items with one part.
const REACH_FACTOR: i64 = 4;
/// Items with some of the query that are remembered.
const NEAR_MAX: usize = 256;

#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    pub workspace: String,
    pub text: String,
    pub conversation: Option<String>,
    /// Items of these conversations only.
    pub reach: Reach,
    pub thread: Option<String>,
    /// Items of one session only.
    pub session: Option<String>,
    /// Items that came with one of these events; empty means any item.
    pub event_types: Vec<String>,
    /// Items of one of these roles; empty means any.
    pub roles: Vec<String>,
    pub actor_id: Option<String>,
    /// Items of this time or later.
    pub after_ms: Option<i64>,
    /// Items before this time.
    pub before_ms: Option<i64>,
    /// In this conversation, items of events before this one only.
    pub event_seq_before: Option<(String, i64)>,
    /// In that conversation, no items of these events, as first and last number.
    pub hidden: Vec<[i64; 2]>,
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
    let Some(parsed) = ParsedQuery::new(&query.text).filter(|_| top_k > 0) else {
        return Ok(Vec::new());
    };
    let mut search = Search {
        query,
        parsed: &parsed,
        reached: HashMap::new(),
        seen: HashSet::new(),
        found: Vec::new(),
        near: Vec::new(),
        long_bytes: 0,
    };
    let weights = match search.read_short_conversation(tx)? {
        Some(weights) => weights,
        None => search.search_index(tx, top_k)?,
    };
    let mut found = std::mem::take(&mut search.found);
    if found.len() < top_k {
        found.extend(search.rank_near(&weights, top_k - found.len()));
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
    found.truncate(top_k);
    let ids: Vec<i64> = found.iter().map(|found| found.id).collect();
    let mut items = by_ids(tx, &ids)?;
    let hits = found.into_iter().filter_map(|Scored { id, score }| {
        let item = items.remove(&id)?;
        let (snippet, highlights) = snippet(item.text.as_deref().unwrap_or_default(), &parsed);
        Some(Hit { item, score, snippet, highlights })
    });
    Ok(hits.collect())
}

struct Scored {
    id: i64,
    score: f64,
}

struct Search<'a> {
    query: &'a SearchQuery,
    parsed: &'a ParsedQuery,
    /// Conversations that were checked, and whether they are within reach.
    reached: HashMap<String, bool>,
    /// Items that were examined.
    seen: HashSet<i64>,
    found: Vec<Scored>,
    /// Items that hold parts of the query, with their folded texts.
    near: Vec<(i64, String)>,
    long_bytes: i64,
}

impl Search<'_> {
    /// Reads a whole conversation if that is cheaper than a search, and returns the weight of each part of the
    /// query there.
    fn read_short_conversation(&mut self, tx: &mut dyn Tx) -> Result<Option<Vec<f64>>, StoreError> {
        if self.conversation_items(tx)?.is_none_or(|items| items > CONVERSATION_MAX) {
            return Ok(None);
        }
        let rows = tx.query(
            concat!(
                "SELECT ",
                entry_columns!(),
                " FROM transcript t WHERE t.workspace_id = ?1 AND t.conversation_id = ?2
                  ORDER BY t.event_seq DESC, t.seq DESC"
            ),
            params![&self.query.workspace, &self.query.conversation],
        )?;
        let items = rows.len() as f64;
        for row in rows {
            self.examine(tx, &Entry::read(row)?)?;
        }
        let weights = self.parsed.parts.iter().map(|part| {
            let near = self.near.iter().filter(|(_, folded)| part.is_in(folded)).count();
            rarity((near + self.found.len()) as f64 / items)
        });
        Ok(Some(weights.collect()))
    }

    /// How many items the query's conversation has had, if it names one.
    fn conversation_items(&self, tx: &mut dyn Tx) -> Result<Option<i64>, StoreError> {
        let Some(id) = &self.query.conversation else { return Ok(None) };
        let found = conversation(tx, &self.query.workspace, id)?;
        Ok(found.map(|conversation| conversation.transcript_seq))
    }

    /// Examines items that are not indexed yet and those that the index proposes, and returns the weight of each
    /// part of the query.
    fn search_index(&mut self, tx: &mut dyn Tx, top_k: usize) -> Result<Vec<f64>, StoreError> {
        // First the mark, then the rest: an item that is indexed meanwhile is seen twice, not missed.
        let upto = upto(tx)?;
        self.scan_tail(tx, upto)?;
        let wanted = self.filters(tx, upto)?;
        let parts = self.propose_parts(tx, &wanted, upto)?;
        let weights = parts.iter().map(|part| weight(part, upto)).collect();
        self.propose_all(tx, wanted, &parts, upto, top_k)?;
        if self.found.len() < top_k {
            for entry in parts.into_iter().flatten() {
                if self.admits(tx, &entry)? && self.seen.insert(entry.id) {
                    let folded = self.folded(tx, &entry)?;
                    self.near.extend(folded.map(|folded| (entry.id, folded)));
                }
            }
        }
        Ok(weights)
    }

    /// Examines everything that is not indexed yet.
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
                self.examine(tx, &entry)?;
            }
            if count < TAIL_PAGE {
                return Ok(());
            }
        }
    }

    /// A few of the newest items for each part of the query.
    fn propose_parts(
        &self,
        tx: &mut dyn Tx,
        wanted: &TermQuery,
        upto: i64,
    ) -> Result<Vec<Vec<Entry>>, StoreError> {
        if self.parsed.parts.is_empty() {
            return Ok(Vec::new());
        }
        let terms = Terms { workspace: &self.query.workspace };
        let parts: Vec<u32> =
            self.parsed.parts.iter().map(|part| terms.word(part.text())).collect();
        propose_each(tx, &self.query.workspace, wanted, &parts, upto + 1)
    }

    /// Gets items with all terms from the index until enough of them match.
    fn propose_all(
        &mut self,
        tx: &mut dyn Tx,
        mut wanted: TermQuery,
        parts: &[Vec<Entry>],
        upto: i64,
        top_k: usize,
    ) -> Result<(), StoreError> {
        // An item with all terms is among the items of each.
        if let Some(rare) = parts.iter().find(|part| part.len() < Count::Few.limit()) {
            return rare.iter().try_for_each(|entry| self.examine(tx, entry));
        }
        let last = wanted.range.and_then(|range| range.end).unwrap_or(upto);
        let oldest = parts.iter().filter_map(|part| part.last()).map(|entry| entry.id).min();
        wanted.reach = oldest.map_or(0, |oldest| (last - oldest).max(0) * REACH_FACTOR);
        wanted.all.extend(self.parsed.terms(Terms { workspace: &self.query.workspace }));
        // The first page is always ranked; more follow while too few match.
        let mut count = Count::Page;
        let (mut before, mut total) = (upto + 1, 0);
        loop {
            let page = propose(tx, &self.query.workspace, &wanted, before, count)?;
            total += page.len();
            for entry in &page {
                self.examine(tx, entry)?;
            }
            let enough = self.found.len() >= top_k || total >= PROPOSALS_MAX;
            match page.last() {
                Some(last) if page.len() == count.limit() && !enough => before = last.id,
                _ => return Ok(()),
            }
            count = Count::Many;
        }
    }

    fn examine(&mut self, tx: &mut dyn Tx, entry: &Entry) -> Result<(), StoreError> {
        if !self.admits(tx, entry)? || !self.seen.insert(entry.id) {
            return Ok(());
        }
        let Some(folded) = self.folded(tx, entry)? else { return Ok(()) };
        if let Some(score) = self.parsed.score(&folded) {
            self.found.push(Scored { id: entry.id, score });
        } else if self.near.len() < NEAR_MAX
            && self.parsed.parts.iter().any(|part| part.is_in(&folded))
        {
            self.near.push((entry.id, folded));
        }
        Ok(())
    }

    /// The folded text; none when there is none, or too much was read already.
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
    fn rank_near(&self, weights: &[f64], count_max: usize) -> Vec<Scored> {
        let scored = self.near.iter().filter_map(|(id, folded)| {
            let score = self.parsed.partial_score(folded, weights)?;
            Some(Scored { id: *id, score })
        });
        let mut found: Vec<Scored> = scored.collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
        found.truncate(count_max);
        found
    }

    /// The filters that the index knows.
    fn filters(&self, tx: &mut dyn Tx, upto: i64) -> Result<TermQuery, StoreError> {
        let query = self.query;
        let terms = Terms { workspace: &query.workspace };
        let mut wanted = TermQuery::default();
        wanted.all.extend(query.conversation.as_deref().map(|id| terms.conversation(id)));
        let in_session = query.session.as_deref().and_then(thread_of);
        wanted.all.extend(query.thread.as_deref().map(|id| terms.thread(id)));
        wanted.all.extend(in_session.map(|id| terms.thread(id)));
        wanted.all.extend(query.actor_id.as_deref().map(|id| terms.actor(id)));
        wanted.any_of(query.event_types.iter().map(|name| terms.event_type(name)).collect());
        wanted.any_of(query.roles.iter().map(|role| terms.role(role)).collect());
        // The newest come first anyway, so only an end makes a difference.
        if let Some(before_ms) = query.before_ms {
            let after_ms = query.after_ms.unwrap_or(0);
            wanted.any_of(terms.span(after_ms, before_ms));
            wanted.range = locate_range(tx, upto, after_ms, before_ms)?;
        }
        Ok(wanted)
    }

    fn admits(&mut self, tx: &mut dyn Tx, entry: &Entry) -> Result<bool, StoreError> {
        Ok(self.fits(entry) && self.is_reached(tx, &entry.conversation_id)?)
    }

    fn is_reached(&mut self, tx: &mut dyn Tx, id: &str) -> Result<bool, StoreError> {
        if self.query.reach == Reach::All {
            return Ok(true);
        }
        if let Some(known) = self.reached.get(id) {
            return Ok(*known);
        }
        let found = within(tx, &self.query.workspace, id, &self.query.reach)?.is_some();
        self.reached.insert(id.to_owned(), found);
        Ok(found)
    }

    fn fits(&self, entry: &Entry) -> bool {
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
            && is(&query.session, Some(&entry.session))
            && is(&query.actor_id, entry.actor_id.as_deref())
            && one_of(&query.event_types, entry.event_type.as_deref())
            && one_of(&query.roles, Some(&entry.role))
            && query.after_ms.is_none_or(|after| entry.created_at >= after)
            && query.before_ms.is_none_or(|before| entry.created_at < before)
            && query.event_seq_before.as_ref().is_none_or(|(conversation, event_seq)| {
                entry.conversation_id != *conversation
                    || (entry.event_seq < *event_seq && !is_hidden(&query.hidden, entry.event_seq))
            })
    }
}

/// The weight of a part, by its newest items: how far back they go shows how rare it is.
fn weight(newest: &[Entry], upto: i64) -> f64 {
    rarity(match newest.last() {
        Some(last) if newest.len() == Count::Few.limit() => {
            newest.len() as f64 / (upto - last.id + 1).max(1) as f64
        }
        _ => newest.len().max(1) as f64 / upto.max(1) as f64,
    })
}

/// Rarer parts weigh more.
fn rarity(share: f64) -> f64 {
    (1.0 + 1.0 / share.clamp(1e-9, 1.0)).ln()
}
