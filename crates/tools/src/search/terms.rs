//! Tokenises texts and names.
//!
//! Invariant: tools and queries are tokenised by the same rules.

use super::stem::stem;
use super::synonyms::{STOP, alike, chinese_word, meant};

/// A word with its weight.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) word: String,
    pub(super) weight: f64,
    /// Another word for what the query says.
    pub(super) is_synonym: bool,
}

impl Term {
    /// What the query says itself.
    fn own(word: String, weight: f64) -> Self {
        Self { word, weight, is_synonym: false }
    }

    fn synonym(word: &str, weight: f64) -> Self {
        Self { word: word.to_owned(), weight, is_synonym: true }
    }
}

/// One search term with all its synonyms. The best of them counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Concept(pub(super) Vec<Term>);

/// The weight of an English word for a Chinese one.
const ENGLISH_WEIGHT: f64 = 0.8;
/// The implied verb of a query without one, and its weight.
const ASKING: [&str; 4] = ["what", "which", "who", "whose"];
const ASKED: [&str; 2] = ["list", "get"];
const ASKED_WEIGHT: f64 = 0.4;
/// The weight of a pair of Chinese characters within a longer word.
const PART_WEIGHT: f64 = 0.8;
/// The weight of a pair that a known word begins or ends in.
const ACROSS_WEIGHT: f64 = 0.2;

/// All words of a text, in order, repetitions included.
pub(super) fn words(text: &str) -> Vec<String> {
    let concepts = cut(text).into_iter();
    concepts.flat_map(|Concept(terms)| terms).map(|term| term.word).collect()
}

/// The distinct search terms of a query.
pub(super) fn concepts(query: &str) -> Vec<Concept> {
    let mut asked: Vec<Concept> = Vec::new();
    for mut concept in cut(query) {
        concept.0[0].word = meant(&concept.0[0].word);
        if asked.iter().any(|known| known.0[0].word == concept.0[0].word) {
            continue;
        }
        for Term { word, weight, .. } in concept.0.clone() {
            for (like, share) in alike(&word) {
                if concept.0.iter().all(|term| term.word != *like) {
                    concept.0.push(Term::synonym(like, weight * share));
                }
            }
        }
        asked.push(concept);
    }
    if query.split_whitespace().any(|word| ASKING.contains(&word.to_lowercase().as_str())) {
        let read = ASKED.map(|word| Term::synonym(word, ASKED_WEIGHT));
        asked.push(Concept(read.to_vec()));
    }
    asked
}

fn cut(text: &str) -> Vec<Concept> {
    let mut concepts = Vec::new();
    for run in runs(text) {
        match run {
            Run::Han(run) => chinese(&run, &mut concepts),
            Run::Latin(run) => concepts.extend(latin(&run)),
        }
    }
    concepts
}

enum Run {
    Han(Vec<char>),
    Latin(String),
}

/// Runs of Chinese characters, and of letters and digits.
fn runs(text: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut last: Option<char> = None;
    for c in text.chars() {
        let joins = last.is_some_and(|last| last.is_alphanumeric());
        match runs.last_mut() {
            Some(Run::Han(run)) if is_han(c) && joins => run.push(c),
            Some(Run::Latin(run)) if c.is_alphanumeric() && !is_han(c) && joins => run.push(c),
            _ if is_han(c) => runs.push(Run::Han(vec![c])),
            _ if c.is_alphanumeric() => runs.push(Run::Latin(c.to_string())),
            _ => {}
        }
        last = Some(c);
    }
    runs
}

fn is_han(c: char) -> bool {
    matches!(u32::from(c), 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3fffd)
}

/// The stems of the parts of `readTextFile` and `HTTPServer`.
fn latin(run: &str) -> Vec<Concept> {
    let chars: Vec<char> = run.chars().collect();
    let mut parts = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1);
        let begins = c.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || (before.is_some_and(char::is_uppercase)
                    && after.is_some_and(|c| c.is_lowercase())));
        if begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
    }
    // A number is an argument of a call, not a name of a tool.
    let says =
        |part: &String| !part.chars().all(char::is_numeric) && !STOP.contains(&part.as_str());
    parts.into_iter().filter(says).map(|part| Concept(vec![Term::own(stem(&part), 1.0)])).collect()
}

/// Known words with their English translations, and every pair of characters.
fn chinese(run: &[char], concepts: &mut Vec<Concept>) {
    let mut at = 0;
    let mut unknown = 0..0;
    while at < run.len() {
        match chinese_word(&run[at..]) {
            Some((length, english)) => {
                pairs(run, unknown, concepts);
                known(&run[at..at + length], english, concepts);
                at += length;
                unknown = at..at;
            }
            None => {
                at += 1;
                unknown.end = at;
            }
        }
    }
    pairs(run, unknown, concepts);
}

/// A known word: each of its English words is a separate term, beside the Chinese ones.
fn known(word: &[char], english: &[Vec<String>], concepts: &mut Vec<Concept>) {
    let weight = if word.len() == 2 { 1.0 } else { PART_WEIGHT };
    let own = word.windows(2).map(|pair| Term::own(pair.iter().collect(), weight));
    let own: Vec<Term> = own.collect();
    for others in english {
        let others = others.iter().map(|word| Term::own(word.clone(), ENGLISH_WEIGHT));
        concepts.push(Concept(others.chain(own.iter().cloned()).collect()));
    }
}

/// Pairs of characters of unknown words; the first and the last overlap their neighbours.
fn pairs(run: &[char], unknown: std::ops::Range<usize>, concepts: &mut Vec<Concept>) {
    if unknown.is_empty() {
        return;
    }
    if run.len() == 1 {
        concepts.push(Concept(vec![Term::own(run[0].to_string(), 1.0)]));
        return;
    }
    let first = unknown.start.saturating_sub(1);
    let last = (unknown.end + 1).min(run.len());
    for (at, pair) in run[first..last].windows(2).enumerate() {
        let inside = unknown.contains(&(first + at)) && unknown.contains(&(first + at + 1));
        let weight = if inside { 1.0 } else { ACROSS_WEIGHT };
        concepts.push(Concept(vec![Term::own(pair.iter().collect(), weight)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        let cases = [
            ("filesystem.read_text_file", vec!["filesystem", "read", "text", "fil"]),
            ("getHTTPResponse", vec!["get", "http", "respons"]),
            ("createIssue2", vec!["creat", "issue2"]),
            ("s3/list-buckets", vec!["s3", "list", "bucket"]),
            ("the list of all directories", vec!["list", "all", "directory"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn chinese_is_split_into_pairs_and_known_words_are_translated() {
        assert_eq!(words("读取文件"), ["read", "读取", "fil", "文件"]);
        assert_eq!(words("鹿"), ["鹿"]);
        assert_eq!(words("用Git提交"), ["git", "commit", "submit", "提交"]);
        assert_eq!(words("鹿角文件"), ["鹿角", "角文", "fil", "文件"]);
    }

    #[test]
    fn a_repeated_term_counts_once_with_all_synonyms() {
        let asked = concepts("删除 delete");
        assert_eq!(asked.len(), 1);
        let words: Vec<&str> = asked[0].0.iter().map(|term| term.word.as_str()).collect();
        assert_eq!(words, ["delet", "删除", "remov", "eras", "drop", "rm"]);
    }
}
