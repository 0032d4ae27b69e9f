//! The part of a text that shows the match.
//!
//! Invariant: highlights are spans of Unicode characters within the snippet, in order, not overlapping; the
//! characters between them are those of the text, controls shown as blanks.

use super::fold::{fold_into, is_dropped};
use super::query::ParsedQuery;

/// Characters of a text that a snippet shows.
const SNIPPET_CHARS: usize = 160;
/// Characters before the first highlight.
const LEAD_CHARS: usize = 40;
/// Positions considered for the best part.
const POSITIONS_MAX: usize = 64;

/// A span of characters within a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Highlight {
    pub start: usize,
    pub end: usize,
}

pub(crate) fn snippet(text: &str, query: &ParsedQuery) -> (String, Vec<Highlight>) {
    let spans = spans(text, query);
    let total = text.chars().count();
    let start = best_start(&spans).min(total.saturating_sub(SNIPPET_CHARS));
    let end = (start + SNIPPET_CHARS).min(total);
    let mut shown = String::new();
    let lead = usize::from(start > 0);
    if start > 0 {
        shown.push('…');
    }
    let part = text.chars().skip(start).take(end - start);
    shown.extend(part.map(|c| if c.is_control() { ' ' } else { c }));
    if end < total {
        shown.push('…');
    }
    let inside = spans.iter().filter(|span| span.0 < end && span.1 > start);
    let highlights = inside.map(|span| Highlight {
        start: span.0.max(start) - start + lead,
        end: span.1.min(end) - start + lead,
    });
    let highlights = highlights.collect();
    (shown, highlights)
}

/// Matches as spans of the text's own characters, merged where they touch.
fn spans(text: &str, query: &ParsedQuery) -> Vec<(usize, usize)> {
    let mut folded = String::with_capacity(text.len());
    // For each folded character: where it starts, and the number of the character it was made from.
    let mut sources: Vec<(usize, usize)> = Vec::new();
    fold_into(text, |c, number| {
        sources.push((folded.len(), number));
        folded.push(c);
    });
    let source = |at: usize| sources.partition_point(|(start, _)| *start <= at).saturating_sub(1);
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (from, to) in query.positions(&folded, POSITIONS_MAX) {
        let start = sources[source(from)].1;
        let last = sources[source(to - 1)].1;
        // Accents written as characters of their own belong to the letter before them.
        let marks = text.chars().skip(last + 1).take_while(|c| is_dropped(*c)).count();
        let end = last + 1 + marks;
        match merged.last_mut() {
            Some(before) if start <= before.1 => before.1 = before.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// The start of the part that shows most matches.
fn best_start(spans: &[(usize, usize)]) -> usize {
    let shown = |from: usize| {
        let end = from + SNIPPET_CHARS;
        spans
            .iter()
            .filter(|span| span.0 >= from && span.1 <= end)
            .map(|span| span.1 - span.0)
            .sum()
    };
    let mut best = (0, 0);
    for (start, _) in spans.iter().take(POSITIONS_MAX) {
        let from = start.saturating_sub(LEAD_CHARS);
        let sum: usize = shown(from);
        if sum > best.1 {
            best = (from, sum);
        }
    }
    match (best, spans.first()) {
        // A single span longer than a snippet fits nowhere: its beginning is shown.
        ((_, 0), Some((start, _))) => start.saturating_sub(LEAD_CHARS),
        ((from, _), _) => from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(query: &str, text: &str) -> (String, Vec<String>) {
        let query = ParsedQuery::new(query).unwrap();
        let (shown, highlights) = snippet(text, &query);
        let chars: Vec<char> = shown.chars().collect();
        let marked = highlights.iter().map(|span| chars[span.start..span.end].iter().collect());
        let marked = marked.collect();
        (shown, marked)
    }

    #[test]
    fn what_was_found_is_marked_as_it_was_written() {
        let short = "请把「数据库 连接信息」和Cafe\u{301}地址\n发我";
        let (shown, marked) = show("连接信息 CAFÉ", short);
        assert_eq!(shown, "请把「数据库 连接信息」和Cafe\u{301}地址 发我");
        assert_eq!(marked, ["连接信息", "Cafe\u{301}"]);
        assert_eq!(show("数据库", "").1, Vec::<String>::new());
        assert_eq!(show("ab", "ＡＢ ab xab").1, ["ＡＢ", "ab"]);
        assert_eq!(show("数据 据库", "数据库").1, ["数据库"], "spans that touch are one");
    }

    #[test]
    fn a_long_text_is_cut_around_what_was_found() {
        let text = format!("{}needle 针{}", "前".repeat(1000), "后".repeat(1000));
        let (shown, marked) = show("needle", &text);
        assert_eq!(shown.chars().count(), 162);
        assert!(shown.starts_with("…前") && shown.ends_with("后…"), "{shown}");
        assert_eq!(marked, ["needle"]);
        let (shown, marked) = show("needle 前", &"needle".repeat(3));
        assert_eq!((shown.as_str(), marked), ("needleneedleneedle", vec![]));
        let long = "长".repeat(500);
        assert_eq!(show(&long, &long).1, [&long[..160 * 3]]);
    }

    proptest! {
        #[test]
        fn highlights_are_in_order_and_within(query in ".{1,8}", text in ".{0,400}") {
            let Some(parsed) = ParsedQuery::new(&query) else { return Ok(()) };
            let text = format!("{text}{query} {query}{text}");
            let (shown, highlights) = snippet(&text, &parsed);
            let total = shown.chars().count();
            let mut last = 0;
            for Highlight { start, end } in highlights {
                prop_assert!(last <= start && start < end && end <= total);
                last = end;
            }
        }
    }
}
