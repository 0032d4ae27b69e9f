//! Texts and names as words that can be compared.
//!
//! Invariant: tools and queries are cut by the same rules, so that what is equal to a reader is equal here.

use super::synonyms::{BILINGUAL, LIKE, STOP};

/// A word of a query with how much it counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) word: String,
    pub(super) weight: f64,
}

/// How much a word counts that only means about the same.
const LIKE_WEIGHT: f64 = 0.4;
/// How much the pairs of a Chinese word count when the word itself is known.
const PAIR_WEIGHT: f64 = 0.5;

/// All words of a text, in order and as often as they stand there.
pub(super) fn words(text: &str) -> Vec<String> {
    cut(text).into_iter().map(|term| term.word).collect()
}

/// The words of a query, each once, with others that mean about the same.
pub(super) fn query_terms(query: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let mut add = |word: String, weight: f64| match terms.iter_mut().find(|term| term.word == word)
    {
        Some(term) => term.weight = term.weight.max(weight),
        None => terms.push(Term { word, weight }),
    };
    let own = cut(query);
    for term in &own {
        add(term.word.clone(), term.weight);
    }
    for term in &own {
        let alike = LIKE.iter().filter(|alike| alike.iter().any(|word| stem(word) == term.word));
        for word in alike.flat_map(|alike| alike.iter()) {
            add(stem(word), LIKE_WEIGHT);
        }
    }
    terms
}

fn cut(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    for run in runs(text) {
        match run {
            Run::Han(run) => chinese(&run, &mut terms),
            Run::Latin(run) => terms.extend(latin(&run)),
        }
    }
    terms
}

enum Run {
    Han(Vec<char>),
    Latin(String),
}

/// Stretches of Chinese characters, and of letters and digits between anything else.
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

/// The parts of `readTextFile` and `HTTPServer`, each as its stem.
fn latin(run: &str) -> Vec<Term> {
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
    let kept = parts.into_iter().filter(|part| !part.is_empty() && !STOP.contains(&part.as_str()));
    kept.map(|part| Term { word: stem(&part), weight: 1.0 }).collect()
}

/// Known words with what they are in English, and every pair of characters.
fn chinese(run: &[char], terms: &mut Vec<Term>) {
    let text: String = run.iter().collect();
    let mut known = vec![false; run.len()];
    let mut at = 0;
    while at < run.len() {
        let rest: String = run[at..].iter().collect();
        let longest = BILINGUAL
            .iter()
            .filter(|(chinese, _)| rest.starts_with(chinese))
            .max_by_key(|(chinese, _)| chinese.chars().count());
        let Some((chinese, english)) = longest else {
            at += 1;
            continue;
        };
        let length = chinese.chars().count();
        known[at..at + length].fill(true);
        terms.extend(english.split(' ').map(|word| Term { word: stem(word), weight: 1.0 }));
        at += length;
    }
    if run.len() == 1 {
        terms.push(Term { word: text, weight: 1.0 });
        return;
    }
    for (at, pair) in run.windows(2).enumerate() {
        let weight = if known[at] || known[at + 1] { PAIR_WEIGHT } else { 1.0 };
        terms.push(Term { word: pair.iter().collect(), weight });
    }
}

/// An English word without its ending; crude, and the same on both sides.
pub(super) fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    let cut = |ending: &str, keep: usize| {
        word.strip_suffix(ending).filter(|rest| rest.chars().count() >= keep).map(str::to_owned)
    };
    if let Some(rest) = cut("ies", 2) {
        return format!("{rest}y");
    }
    let doubled = |rest: String| {
        let mut chars = rest.chars().rev();
        match (chars.next(), chars.next()) {
            (Some(a), Some(b)) if a == b && !matches!(a, 'l' | 's' | 'z') => {
                rest[..rest.len() - a.len_utf8()].to_owned()
            }
            _ => rest,
        }
    };
    for ending in ["ing", "ed"] {
        if let Some(rest) = cut(ending, 3) {
            return without_e(doubled(rest));
        }
    }
    for ending in ["sses", "shes", "ches", "xes"] {
        if let Some(rest) = cut(ending, 2) {
            return format!("{rest}{}", &ending[..ending.len() - 2]);
        }
    }
    match cut("s", 3).filter(|rest| !rest.ends_with(['s', 'u', 'i'])) {
        Some(rest) => without_e(rest),
        None => without_e(word.clone()),
    }
}

/// `create`, `created` and `creating` meet at `creat`.
fn without_e(word: String) -> String {
    match word.strip_suffix('e').filter(|rest| rest.chars().count() >= 3) {
        Some(rest) => rest.to_owned(),
        None => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_a_reader_would() {
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
    fn forms_of_a_word_meet() {
        for forms in [
            vec!["create", "creates", "created", "creating"],
            vec!["file", "files"],
            vec!["query", "queries"],
            vec!["search", "searches", "searching", "searched"],
            vec!["stop", "stopped", "stopping"],
            vec!["process", "processes"],
            vec!["email", "emails", "emailed"],
        ] {
            let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
        assert_ne!(stem("status"), stem("statu"));
    }

    #[test]
    fn chinese_is_cut_into_pairs_and_known_words_are_english_too() {
        assert_eq!(words("读取文件"), ["read", "fil", "读取", "取文", "文件"]);
        assert_eq!(words("鹿"), ["鹿"]);
        assert_eq!(words("用Git提交"), ["用", "git", "commit", "提交"]);
    }
}
