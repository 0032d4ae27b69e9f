//! Full-text search of tools: names, modules, descriptions and parameters, in English and Chinese.
//!
//! Invariant: the same tools and query give the same names in the same order; a tool that is not allowed is not
//! found and does not change the ranking.

mod stem;
mod synonyms;
mod terms;

use crate::Tool;
use crate::project_cli;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use terms::{Concept, Term, concepts, words};

/// BM25 term frequency saturation.
const SATURATION: f64 = 1.2;
/// BM25 length normalisation of the whole text, and of its fields.
const LENGTH: f64 = 0.75;
const FIELD_LENGTH: f64 = 0.6;
/// Weight of BM25 by fields against BM25 over the whole text.
const BY_FIELDS: f64 = 0.35;
/// Bonus for a query that contains the whole name of a tool.
const WHOLE_NAME: f64 = 0.1;
/// Weight of a synonym where other tools have the word itself.
const SYNONYM: f64 = 0.45;
/// Ranks of the two lists are added as `1 / (RANK + rank)`.
const RANK: f64 = 20.0;
/// Weight of vector similarity against words: equal ranks are decided by words.
const NEARNESS: f64 = 0.999;
/// Deepest nesting of a schema that is read for names of parameters.
const SCHEMA_DEPTH: usize = 4;

/// Weights of the fields. Many catalogues say only in their parameters what a tool is for, so these count as much as a
/// long description.
const FIELDS: [f64; 6] = [3.0, 3.0, 2.0, 1.0, 1.0, 1.0];
/// The name without its module.
const NAME: usize = 0;
const MODULE: usize = 1;
/// The first sentence of the description.
const SUMMARY: usize = 2;
const DESCRIPTION: usize = 3;
const PARAMETER: usize = 4;
const PARAMETER_TEXT: usize = 5;

/// The words of a text as the search reads them, for comparisons with other searches.
pub fn words_of(text: &str) -> Vec<String> {
    words(text)
}

/// The tools that can be found.
#[derive(Debug, Default)]
pub struct ToolIndex {
    tools: Vec<Indexed>,
    /// The tools that contain a word.
    postings: HashMap<String, Vec<Posting>>,
}

#[derive(Debug)]
struct Indexed {
    name: String,
    lengths: [usize; FIELDS.len()],
}

/// The vectors of one model: of a query, and of tools by name.
#[derive(Debug, Clone)]
pub struct Vectors {
    pub query: Arc<[f32]>,
    pub tools: HashMap<String, Arc<[f32]>>,
}

#[derive(Debug)]
struct Posting {
    tool: usize,
    counts: [u32; FIELDS.len()],
}

/// Mean lengths of tools.
struct Means {
    fields: [f64; FIELDS.len()],
    /// Of the whole text.
    whole: f64,
}

/// What one tool has of one search term.
struct Hit {
    tool: usize,
    score: f64,
    /// How much of it is in the tool's name.
    named: f64,
}

impl ToolIndex {
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Self {
        let mut index = Self::default();
        for tool in tools {
            index.add(tool);
        }
        index
    }

    /// The text of a tool for the embedding model.
    pub fn vector_text(tool: &Tool) -> String {
        format!("{}: {}", tool.name, tool.description)
    }

    /// The names of the best tools, best first.
    pub fn search(&self, query: &str, top_k: usize, allowed: impl Fn(&str) -> bool) -> Vec<String> {
        self.named(self.by_words(query, &allowed), top_k)
    }

    /// The same with vectors: the ranks by words and by similarity are added.
    pub fn search_near(
        &self,
        query: &str,
        vectors: &Vectors,
        top_k: usize,
        allowed: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut scores = vec![0.0; self.tools.len()];
        let words = (self.by_words(query, &allowed), 1.0);
        let near = (self.by_nearness(vectors, &allowed), NEARNESS);
        for (ranked, weight) in [words, near] {
            for (rank, (tool, _)) in ranked.into_iter().enumerate() {
                scores[tool] += weight / (RANK + rank as f64);
            }
        }
        self.named(self.ranked(scores), top_k)
    }

    fn named(&self, ranked: Vec<(usize, f64)>, top_k: usize) -> Vec<String> {
        ranked.into_iter().take(top_k).map(|(tool, _)| self.tools[tool].name.clone()).collect()
    }

    /// Tools with a score, the best first, then by name.
    fn ranked(&self, scores: Vec<f64>) -> Vec<(usize, f64)> {
        let mut found: Vec<(usize, f64)> =
            scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
        found.sort_by(|(a, left), (b, right)| {
            right.total_cmp(left).then_with(|| self.tools[*a].name.cmp(&self.tools[*b].name))
        });
        found
    }

    fn by_words(&self, query: &str, allowed: &dyn Fn(&str) -> bool) -> Vec<(usize, f64)> {
        let open: Vec<bool> = self.tools.iter().map(|tool| allowed(&tool.name)).collect();
        let count = open.iter().filter(|open| **open).count() as f64;
        let means = self.means(&open, count);
        let mut scores = vec![0.0; self.tools.len()];
        let mut named = vec![0.0; self.tools.len()];
        for concept in concepts(query) {
            for hit in self.hits(concept, &open, count, &means) {
                scores[hit.tool] += hit.score;
                named[hit.tool] += hit.named;
            }
        }
        for ((score, named), tool) in scores.iter_mut().zip(named).zip(&self.tools) {
            *score *= 1.0 + WHOLE_NAME * (named / tool.lengths[NAME].max(1) as f64).min(1.0);
        }
        // A query that names a tool means it.
        let named = query.trim().to_lowercase();
        for (tool, score) in scores.iter_mut().enumerate().filter(|(tool, _)| open[*tool]) {
            if self.tools[tool].name.to_lowercase() == named {
                *score += 1000.0;
            }
        }
        self.ranked(scores)
    }

    fn means(&self, open: &[bool], count: f64) -> Means {
        let mut totals = [0; FIELDS.len()];
        for (tool, _) in self.tools.iter().zip(open).filter(|(_, open)| **open) {
            totals.iter_mut().zip(&tool.lengths).for_each(|(total, length)| *total += length);
        }
        let mean = |total: usize| (total as f64 / count.max(1.0)).max(1.0);
        Means { fields: totals.map(mean), whole: mean(totals.iter().sum()) }
    }

    /// What each tool has of one search term: the best of its synonyms counts.
    fn hits(&self, Concept(terms): Concept, open: &[bool], count: f64, means: &Means) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        let holders = |word: &str| -> Vec<&Posting> {
            let postings = self.postings.get(word).into_iter().flatten();
            postings.filter(|at| open[at.tool]).collect()
        };
        // Synonyms count fully only where nobody uses the words themselves.
        let is_used = terms.iter().any(|term| !term.is_synonym && !holders(&term.word).is_empty());
        for Term { word, weight, is_synonym } in terms {
            let weight = if is_synonym && is_used { weight * SYNONYM } else { weight };
            let holders = holders(&word);
            let holding = holders.len() as f64;
            let rarity = (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln();
            hits.extend(holders.into_iter().map(|posting| {
                let often = self.weighted(posting, means);
                let plain = self.plain(posting, means);
                let named = if posting.counts[NAME] > 0 { weight } else { 0.0 };
                // Over the whole text, as a rare word counts wherever it is, and by fields.
                let both = plain / (SATURATION + plain) + BY_FIELDS * often / (SATURATION + often);
                let score = weight * rarity * both;
                Hit { tool: posting.tool, score, named }
            }));
        }
        hits.sort_by(|a, b| a.tool.cmp(&b.tool).then(b.score.total_cmp(&a.score)));
        hits.dedup_by_key(|hit| hit.tool);
        hits
    }

    /// The weighted frequency of a word in a tool, by field and length.
    fn weighted(&self, posting: &Posting, means: &Means) -> f64 {
        let lengths = &self.tools[posting.tool].lengths;
        let fields = FIELDS.iter().zip(&posting.counts).zip(lengths.iter().zip(&means.fields));
        fields
            .map(|((weight, count), (length, mean))| {
                weight * f64::from(*count)
                    / (1.0 - FIELD_LENGTH + FIELD_LENGTH * *length as f64 / mean)
            })
            .sum()
    }

    /// The frequency of a word in the whole text of a tool, by length.
    fn plain(&self, posting: &Posting, means: &Means) -> f64 {
        let count: u32 = posting.counts.iter().sum();
        let length: usize = self.tools[posting.tool].lengths.iter().sum();
        f64::from(count) / (1.0 - LENGTH + LENGTH * length as f64 / means.whole)
    }

    fn by_nearness(&self, vectors: &Vectors, allowed: &dyn Fn(&str) -> bool) -> Vec<(usize, f64)> {
        let near = |tool: &Indexed| match vectors.tools.get(&tool.name) {
            // Rounded: a model's vectors may differ slightly between calls.
            Some(own) if allowed(&tool.name) => (cosine(own, &vectors.query) * 1e4).round(),
            _ => 0.0,
        };
        self.ranked(self.tools.iter().map(near).collect())
    }

    fn add(&mut self, tool: &Tool) {
        let place = self.tools.len();
        let mut fields: [Vec<String>; FIELDS.len()] = Default::default();
        let (module, own) = tool.name.rsplit_once(['.', '/']).unwrap_or(("", &tool.name));
        let (summary, rest) = first_sentence(&tool.description);
        fields[NAME] = words(own);
        fields[MODULE] = words(module);
        fields[SUMMARY] = words(summary);
        fields[DESCRIPTION] = words(rest);
        if tool.name == project_cli::TOOL_NAME {
            // Its modules and methods share one name: a search for them finds it.
            for spec in project_cli::specs() {
                fields[MODULE].extend(words(&spec.name()));
                fields[SUMMARY].extend(words(spec.about));
            }
        }
        parameters(&tool.input_schema, SCHEMA_DEPTH, &mut fields);
        let mut counts: BTreeMap<String, [u32; FIELDS.len()]> = BTreeMap::new();
        let lengths = std::array::from_fn(|field| fields[field].len());
        for (field, words) in fields.into_iter().enumerate() {
            for word in words {
                counts.entry(word).or_default()[field] += 1;
            }
        }
        for (word, counts) in counts {
            self.postings.entry(word).or_default().push(Posting { tool: place, counts });
        }
        self.tools.push(Indexed { name: tool.name.clone(), lengths });
    }
}

/// The first sentence or line of a text, and the rest.
fn first_sentence(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let ends = [". ", ".\n", "\n", "。", "；", "! ", "? "];
    let end = ends.iter().filter_map(|end| Some(text.find(end)? + end.len())).min();
    text.split_at(end.unwrap_or(text.len()))
}

/// Names, descriptions and choices of parameters.
fn parameters(schema: &Value, depth: usize, fields: &mut [Vec<String>; FIELDS.len()]) {
    if depth == 0 {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        fields[PARAMETER].extend(words(name));
        if let Some(text) = property.get("description").and_then(Value::as_str) {
            fields[PARAMETER_TEXT].extend(words(text));
        }
        let choices = property.get("enum").and_then(Value::as_array);
        for choice in choices.into_iter().flatten().filter_map(Value::as_str) {
            fields[PARAMETER_TEXT].extend(words(choice));
        }
        parameters(property, depth - 1, fields);
        if let Some(items) = property.get("items") {
            parameters(items, depth - 1, fields);
        }
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return 0.0;
    }
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let norm = (dot(a, a) * dot(b, b)).sqrt();
    if norm > 0.0 { dot(a, b) / norm } else { 0.0 }
}

#[cfg(test)]
mod tests;
