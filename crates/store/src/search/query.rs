//! A parsed query, and the score of a text for it.
//!
//! Invariant: a text matches when it holds every phrase of the query; a phrase is a part of the query
//! without a blank. Dense scripts match anywhere, words at their borders.

use super::fold::{Kind, fold, kind, parts_phrases};
use super::terms::{Terms, pieces};
use memchr::memmem::Finder;

/// The length of a usual folded text in bytes.
const USUAL_BYTES: f64 = 240.0;
/// Occurrences of one phrase that count.
const OCCURRENCES_MAX: usize = 16;
/// Characters of a query that count.
const QUERY_CHARS_MAX: usize = 16_384;
/// Terms in one request to the index: the text decides in the end.
const TERMS_MAX: usize = 24;
/// Parts of a query that an item may match alone.
const PARTS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct ParsedQuery {
    phrases: Vec<Needle>,
    /// The whole query, where it is more than one phrase.
    whole: Option<Needle>,
    /// Single terms, a few of them, spread over the query.
    pub(crate) parts: Vec<Needle>,
    terms: Vec<String>,
}

/// A string to find in folded texts.
#[derive(Debug)]
pub(crate) struct Needle {
    finder: Finder<'static>,
    /// Whether it begins, and ends, with a whole word.
    words: (bool, bool),
}

impl ParsedQuery {
    /// None when the query has nothing to search for.
    pub(crate) fn new(query: &str) -> Option<ParsedQuery> {
        let end = query.char_indices().nth(QUERY_CHARS_MAX).map_or(query.len(), |(at, _)| at);
        let query = &query[..end];
        let mut phrases: Vec<String> = Vec::new();
        for section in query.split(parts_phrases) {
            for phrase in phrases_of(&fold(section)) {
                if !phrases.contains(&phrase) {
                    phrases.push(phrase);
                }
            }
        }
        let terms = terms_of(&phrases);
        let parts = spread(&terms, if terms.len() > 1 { PARTS_MAX } else { 0 });
        let parts = parts.into_iter().map(Needle::new).collect();
        let whole = (phrases.len() > 1).then(|| Needle::new(&fold(query)));
        (!phrases.is_empty()).then(|| ParsedQuery {
            phrases: phrases.iter().map(|phrase| Needle::new(phrase)).collect(),
            whole,
            parts,
            terms,
        })
    }

    /// The terms that every match has.
    pub(crate) fn terms(&self, terms: Terms<'_>) -> Vec<u32> {
        spread(&self.terms, TERMS_MAX).into_iter().map(|term| terms.word(term)).collect()
    }

    /// The score of a folded text, above 1; none when it does not match.
    pub(crate) fn score(&self, folded: &str) -> Option<f64> {
        let mut sum = 0.0;
        for phrase in &self.phrases {
            let count = phrase.positions(folded).take(OCCURRENCES_MAX).count();
            if count == 0 {
                return None;
            }
            sum += saturated(count, folded);
        }
        let together = self.whole.as_ref().is_none_or(|whole| whole.is_in(folded));
        let mean = sum / self.phrases.len() as f64;
        Some(1.0 + 0.6 * mean + if together { 0.4 } else { 0.0 })
    }

    /// The score of a folded text that holds only some parts, below 1; `weights` are those of the parts.
    pub(crate) fn partial_score(&self, folded: &str, weights: &[f64]) -> Option<f64> {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        for (part, weight) in self.parts.iter().zip(weights) {
            let count = part.positions(folded).take(OCCURRENCES_MAX).count();
            if count > 0 {
                sum += weight * (0.75 + 0.25 * saturated(count, folded));
            }
        }
        (sum > 0.0 && total > 0.0).then(|| (sum / total).min(0.999))
    }

    /// Positions of phrases in a folded text, or else of parts: byte offsets, sorted.
    pub(crate) fn positions(&self, folded: &str, positions_max: usize) -> Vec<(usize, usize)> {
        let find = |needles: &[Needle]| {
            let mut found: Vec<_> = needles
                .iter()
                .flat_map(|needle| needle.positions(folded).take(positions_max))
                .collect();
            found.sort_unstable();
            found
        };
        let found = find(&self.phrases);
        if found.is_empty() { find(&self.parts) } else { found }
    }
}

impl Needle {
    fn new(folded: &str) -> Needle {
        let is_word = |c: Option<char>| c.and_then(kind) == Some(Kind::Word);
        Needle {
            words: (is_word(folded.chars().next()), is_word(folded.chars().next_back())),
            finder: Finder::new(folded).into_owned(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(self.finder.needle()).unwrap_or_default()
    }

    pub(crate) fn is_in(&self, folded: &str) -> bool {
        self.positions(folded).next().is_some()
    }

    fn positions<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
        let length = self.finder.needle().len();
        let is_word = |c: Option<char>| c.and_then(kind) == Some(Kind::Word);
        let found = self.finder.find_iter(folded.as_bytes()).map(move |at| (at, at + length));
        found.filter(move |(start, end)| {
            let inside = (self.words.0 && is_word(folded[..*start].chars().next_back()))
                || (self.words.1 && is_word(folded[*end..].chars().next()));
            !inside
        })
    }
}

/// One occurrence counts most, and more in a short text.
fn saturated(count: usize, folded: &str) -> f64 {
    let count = count as f64;
    count / (count + 0.25 + 0.75 * folded.len() as f64 / USUAL_BYTES)
}

/// Phrases of a folded section of a query: punctuation joins words (`example.com`) and separates dense characters.
fn phrases_of(folded: &str) -> Vec<String> {
    let mut phrases: Vec<String> = Vec::new();
    for piece in folded.split(' ').filter(|piece| !piece.is_empty()) {
        match phrases.last_mut() {
            Some(last) if last.chars().next_back().and_then(kind) == Some(Kind::Word) => {
                last.push(' ');
                last.push_str(piece);
            }
            _ => phrases.push(piece.to_owned()),
        }
    }
    phrases
}

/// The terms of phrases, each once: words, pairs of dense characters, or a single one.
fn terms_of(phrases: &[String]) -> Vec<String> {
    let mut terms = Vec::new();
    for phrase in phrases {
        pieces(phrase, |piece, kind| {
            let ends: Vec<usize> =
                piece.char_indices().map(|(at, _)| at).chain([piece.len()]).collect();
            match kind {
                Kind::Dense if ends.len() > 2 => {
                    terms.extend(ends.windows(3).map(|pair| piece[pair[0]..pair[2]].to_owned()));
                }
                _ => terms.push(piece.to_owned()),
            }
        });
    }
    let mut seen = std::collections::HashSet::new();
    terms.retain(|term| seen.insert(term.clone()));
    terms
}

/// At most `count_max` terms, spread evenly.
fn spread(terms: &[String], count_max: usize) -> Vec<&str> {
    let count = terms.len().min(count_max);
    (0..count).map(|n| terms[n * terms.len() / count].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(query: &str, text: &str) -> Option<f64> {
        ParsedQuery::new(query).and_then(|query| query.score(&fold(text)))
    }

    #[test]
    fn a_text_matches_when_it_holds_every_phrase() {
        for (query, text) in [
            ("数据库连接信息", "请把数据库连接信息发给我"),
            ("「数据库连接信息」", "数据库连接信息"),
            ("据库连接", "数据库连接"),
            ("库", "数据库连接"),
            ("Café", "the CAFE is closed"),
            ("closed cafe", "the café is closed"),
            ("example.com", "see https://www.example.com/x"),
            ("192.168.1.1", "ping 192.168.1.1:80"),
            ("数据库mysql", "数据库 MySQL 8"),
            ("mysql,数据库", "数据库 MySQL 8"),
            ("mysql,数据库。", "数据库 MySQL 8"),
            ("mysql 数据库", "数据库 MySQL 8"),
            ("🎉", "done 🎉🎉"),
            ("don't", "I don't know"),
        ] {
            assert!(score(query, text).is_some(), "{query} in {text}");
        }
    }

    #[test]
    fn a_text_does_not_match_by_a_part_of_a_phrase_or_of_a_word() {
        for (query, text) in [
            ("数据库连接信息", "数据库连接断开,连接信息不明"),
            ("cat", "concatenate"),
            ("example.com", "com.example"),
            ("数据库 mysql", "数据库"),
            ("sql", "数据库mysql"),
        ] {
            assert_eq!(score(query, text), None, "{query} in {text}");
        }
        for query in ["", "   ", "。?!…", "\0", "()[]\"'*:^"] {
            assert!(ParsedQuery::new(query).is_none(), "{query}");
        }
    }

    #[test]
    fn words_side_by_side_and_short_texts_come_first() {
        let long = format!("red fox {}", "filler ".repeat(200));
        let order = ["red fox", "a red fox", &long, "the fox is red"];
        let scores: Vec<f64> = order.iter().map(|text| score("red fox", text).unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
        assert!(scores.iter().all(|score| *score > 1.0 && *score <= 2.0), "{scores:?}");
    }

    #[test]
    fn a_long_query_searches_the_index_for_a_few_terms() {
        let query = ParsedQuery::new(&"数据库连接信息在哪里呢".repeat(400)).unwrap();
        assert!(query.terms(Terms { workspace: "w" }).len() <= TERMS_MAX);
        assert!(query.parts.len() <= PARTS_MAX);
        let words: String = (0..2000).map(|n| format!("word{n} ")).collect();
        assert!(ParsedQuery::new(&words).unwrap().score(&fold(&words)).is_some());
    }
}
