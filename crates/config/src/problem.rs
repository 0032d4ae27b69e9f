//! Mistakes of a configuration file as text: position, line, caret, hint.
//!
//! Invariant: text that may be a secret is never shown; `hidden` spans are masked.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One mistake, at a byte range of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub span: Range<usize>,
    pub message: String,
    pub hint: Option<String>,
}

/// All mistakes of one file, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    path: PathBuf,
    text: String,
    problems: Vec<Problem>,
    hidden: Vec<Range<usize>>,
}

impl Invalid {
    pub(super) fn new(
        path: &Path,
        text: &str,
        mut problems: Vec<Problem>,
        hidden: Vec<Range<usize>>,
    ) -> Self {
        problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        problems.dedup();
        Self { path: path.to_owned(), text: text.to_owned(), problems, hidden }
    }

    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Line and column of a byte offset, counted from 1, columns in characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        position(&self.text, offset)
    }

    /// As JSON.
    pub fn json(&self) -> serde_json::Value {
        let problem = |problem: &Problem| {
            let (line, column) = self.position(problem.span.start);
            serde_json::json!({"file": self.path, "line": line, "column": column,
                "message": problem.message, "hint": problem.hint})
        };
        serde_json::json!({"problems": self.problems.iter().map(problem).collect::<Vec<_>>()})
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
        let (number, column) = self.position(problem.span.start);
        let (shown, caret) = self.line(&problem.span);
        let gutter = " ".repeat(number.to_string().len());
        writeln!(f, "error: {}", problem.message)?;
        writeln!(f, "{gutter} --> {}:{number}:{column}", self.path.display())?;
        writeln!(f, "{gutter}  |")?;
        writeln!(f, " {number} | {}", shown.trim_end())?;
        write!(f, "{gutter}  | {caret}")?;
        match &problem.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }

    /// The first line of a span, without control characters, and the carets below it.
    fn line(&self, span: &Range<usize>) -> (String, String) {
        let start = floor(&self.text, span.start);
        let from = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let to = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let (mut shown, mut carets) = (String::new(), String::new());
        let mut masked: Option<usize> = None;
        for (at, c) in self.text[from..to].char_indices().map(|(at, c)| (from + at, c)) {
            let mark = if span.contains(&at) { '^' } else { ' ' };
            let mask = self.hidden.iter().position(|range| range.contains(&at));
            if mask.is_some() && mask == masked {
                continue;
            }
            masked = mask;
            let c = match c {
                _ if mask.is_some() => '…',
                c if c.is_control() => ' ',
                c => c,
            };
            shown.push(c);
            carets.push(mark);
            if is_wide(c) {
                carets.push(mark);
            }
        }
        let carets = carets.trim_end();
        if carets.is_empty() {
            let column = self.text[from..start].chars().count().min(columns_of(&shown));
            return (shown, format!("{}^", " ".repeat(column)));
        }
        (shown, carets.to_owned())
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            self.write(f, problem)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..floor(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The nearest character boundary at or before an offset.
fn floor(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Width of a text in terminal columns.
pub fn columns_of(text: &str) -> usize {
    text.chars().map(|c| 1 + usize::from(is_wide(c))).sum()
}

/// Whether the character takes two terminal columns: CJK, kana, hangul, fullwidth forms, emoji.
pub fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd)
}
