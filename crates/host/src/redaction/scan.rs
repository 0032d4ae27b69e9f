//! One pass over a text: where secrets occur in it, and from where on that is undecided.
//!
//! Invariant: positions count from the beginning of the text, over all its pieces. Everything before `safe` is
//! decided, whatever follows.

use super::automaton::{Automaton, Needle, ROOT};
use super::patterns::{self, BEFORE_MAX, Pattern, UNCERTAIN_MAX};
use super::{MARK, forms};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A prefix of a secret of this length at the end of an interrupted text is not emitted.
const PART_BYTES_MIN: usize = 6;

/// The secrets and patterns to search for.
pub(super) struct Rules {
    automaton: Arc<Automaton>,
    patterns: Arc<[Pattern]>,
    /// Whether to search for patterns other than run tokens.
    all_patterns: bool,
}

impl Rules {
    pub(super) fn new(secrets: &[String]) -> Self {
        let patterns = patterns::all();
        let forms = forms::of_all(secrets);
        let prefixes = (0..).zip(&patterns).map(|(n, p)| Needle::Prefix(&p.prefix, n));
        let needles: Vec<Needle<'_>> = forms
            .iter()
            .map(|(form, shown)| Needle::Secret(form, *shown))
            .chain(prefixes)
            .collect();
        Self {
            automaton: Arc::new(Automaton::new(&needles)),
            patterns: patterns.into(),
            all_patterns: true,
        }
    }

    /// The same without the patterns of other keys.
    pub(super) fn own(&self) -> Self {
        let (automaton, patterns) = (Arc::clone(&self.automaton), Arc::clone(&self.patterns));
        Self { automaton, patterns, all_patterns: false }
    }

    fn pattern(&self, number: usize) -> Option<&Pattern> {
        self.patterns.get(number).filter(|pattern| self.all_patterns || pattern.is_run_token)
    }

    pub(super) fn finds_any(&self, bytes: &[u8]) -> bool {
        let mut scan = Scan::default();
        scan.read(self, bytes);
        !scan.found.is_empty()
    }

    pub(super) fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut scan = Scan::default();
        scan.read(self, bytes);
        if scan.found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for found in scan.found {
            clean.extend_from_slice(&bytes[at..found.start]);
            clean.extend_from_slice(MARK.as_bytes());
            at = found.end;
        }
        clean.extend_from_slice(&bytes[at..]);
        Cow::Owned(clean)
    }

    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

/// The state of one pass.
#[derive(Debug, Default)]
pub(super) struct Scan {
    node: u32,
    /// Bytes read.
    pub(super) at: usize,
    /// The last bytes read, for patterns at the beginning of a word.
    before: [u8; BEFORE_MAX],
    body: Option<Body>,
    /// Where secrets occur, in order and not adjacent.
    pub(super) found: Vec<Range<usize>>,
}

/// A body that is being read.
#[derive(Debug)]
struct Body {
    pattern: usize,
    start: usize,
    count: u32,
    has_digit: bool,
    is_certain: bool,
}

impl Scan {
    /// Restarts at a position, but continues a body that is being removed.
    pub(super) fn again_from(&mut self, place: usize) {
        let body = self.body.take().filter(|body| body.is_certain);
        let body = body.map(|body| Body { start: place, ..body });
        *self = Self { at: place, body, before: self.before, ..Self::default() };
    }

    pub(super) fn read(&mut self, rules: &Rules, bytes: &[u8]) {
        let base = self.at;
        let mut at = 0;
        while at < bytes.len() {
            if self.node == ROOT && self.body.is_none() {
                at = rules.automaton.skip(bytes, at);
            }
            let byte = bytes[at];
            self.go_on_with_body(rules, byte, base + at);
            self.node = rules.automaton.step(self.node, byte);
            at += 1;
            let node = rules.automaton.node(self.node);
            if node.secret > 0 {
                let end = base + at;
                self.add(end - node.secret as usize..end);
            }
            if let Some(number) = node.prefix {
                self.begin_body(rules, usize::from(number), &bytes[..at], base + at);
            }
        }
        self.at = base + bytes.len();
        self.keep_end(bytes);
        self.add_certain_body(self.at);
    }

    /// The position up to which the text is decided.
    pub(super) fn safe(&self, rules: &Rules) -> usize {
        let safe = self.at - rules.automaton.node(self.node).hold as usize;
        match &self.body {
            Some(body) if !body.is_certain => safe.min(body.start),
            _ => safe,
        }
    }

    /// The text is interrupted here: the beginning of a secret at its end counts as one.
    pub(super) fn interrupt(&mut self, rules: &Rules) {
        let hold = rules.automaton.node(self.node).hold as usize;
        if hold >= PART_BYTES_MIN {
            self.add(self.at - hold..self.at);
        }
        if let Some(body) = &mut self.body {
            body.is_certain |= body.count > 0 && rules.patterns[body.pattern].is_run_token;
            if !body.is_certain {
                body.start = self.at;
            }
        }
        self.add_certain_body(self.at);
    }

    fn go_on_with_body(&mut self, rules: &Rules, byte: u8, place: usize) {
        let Some(body) = &mut self.body else { return };
        let Some(pattern) = rules.pattern(body.pattern) else { return };
        if !pattern.takes(body.count, byte) || (body.count >= UNCERTAIN_MAX && !body.is_certain) {
            self.add_certain_body(place);
            self.body = None;
            return;
        }
        body.count = body.count.saturating_add(1);
        body.has_digit |= byte.is_ascii_digit();
        body.is_certain |= body.count >= pattern.least && (body.has_digit || !pattern.needs_digit);
    }

    fn begin_body(&mut self, rules: &Rules, number: usize, read: &[u8], place: usize) {
        let Some(pattern) = rules.pattern(number) else { return };
        if self.body.as_ref().is_some_and(|body| body.is_certain) {
            return;
        }
        if pattern.is_word && self.byte_before(read, pattern.prefix.len()).is_ascii_alphanumeric() {
            return;
        }
        let (count, start) = (0, place);
        self.body =
            Some(Body { pattern: number, start, count, has_digit: false, is_certain: false });
    }

    /// The byte at this distance before the end, also if it was in an earlier piece.
    fn byte_before(&self, read: &[u8], length: usize) -> u8 {
        match read.len().checked_sub(length + 1) {
            Some(index) => read[index],
            None => self.before[(BEFORE_MAX + read.len()).saturating_sub(length + 1)],
        }
    }

    fn keep_end(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(BEFORE_MAX);
        self.before.rotate_left(kept);
        self.before[BEFORE_MAX - kept..].copy_from_slice(&bytes[bytes.len() - kept..]);
    }

    fn add_certain_body(&mut self, end: usize) {
        let Some(body) = self.body.as_mut().filter(|body| body.is_certain && body.start < end)
        else {
            return;
        };
        let start = std::mem::replace(&mut body.start, end);
        self.add(start..end);
    }

    /// Adds a range; ends are ascending, and adjacent ranges are merged.
    fn add(&mut self, mut found: Range<usize>) {
        while let Some(last) = self.found.pop_if(|last| last.end >= found.start) {
            found = last.start.min(found.start)..last.end.max(found.end);
        }
        self.found.push(found);
    }
}
