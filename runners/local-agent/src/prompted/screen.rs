//! Filters a streamed response: parts of a call are never shown.
//!
//! Invariant: the shown parts together are the text of the parsed response.

use super::lead::Seen;
use super::parse::{Braces, More, Next, Parsed, next, parse};
use std::collections::HashSet;

/// A held-back piece is parsed again with every delta while it is this short; after that only when it may have ended,
/// and when its length has doubled.
const SHORT_BYTES: usize = 256;
/// An object is held back up to this size; beyond it is text, unless it started as a call.
const HELD_BYTES_MAX: usize = 256 * 1024;

pub(crate) struct Screen {
    tools: HashSet<String>,
    text: String,
    /// The shown part.
    shown: Seen,
    /// Up to here there is no call.
    free: usize,
    /// The object that starts there, if one is held back.
    held: Option<Held>,
    /// A call was found: nothing more is shown.
    is_over: bool,
}

/// An incomplete object.
struct Held {
    braces: Braces,
    read: usize,
    has_closed: bool,
    /// Parse again at this length.
    again_at: usize,
}

impl Screen {
    pub(crate) fn new(tools: HashSet<String>) -> Self {
        let (text, shown) = (String::new(), Seen::default());
        Self { tools, text, shown, free: 0, held: None, is_over: false }
    }

    /// Adds the next delta; returns the text to show now.
    pub(crate) fn push(&mut self, delta: &str) -> String {
        self.text.push_str(delta);
        if self.is_over || !self.is_due() {
            return String::new();
        }
        let until = self.look();
        let until = self.shown.lead(&self.text[..until]);
        let shown = self.text[self.shown.until..until].to_owned();
        self.shown.advance(&self.text, until);
        shown
    }

    /// The remaining text, and the parsed response.
    pub(crate) fn finish(self) -> (String, Parsed) {
        let is_known = |name: &str| self.tools.contains(name);
        let parsed = parse(&self.text, self.free, &self.shown, &is_known);
        let rest = parsed.text_before.get(self.shown.until..).unwrap_or_default().to_owned();
        (rest, parsed)
    }

    /// Whether the held-back piece must be parsed again.
    fn is_due(&mut self) -> bool {
        let Some(held) = &mut self.held else { return true };
        let bytes = self.text.as_bytes();
        while !held.has_closed && held.read < bytes.len() {
            held.has_closed = held.braces.close_with(bytes[held.read]);
            held.read += 1;
            if held.has_closed {
                return true;
            }
        }
        let length = bytes.len() - self.free;
        length <= SHORT_BYTES || bytes.len() >= held.again_at
    }

    /// Up to where the text contains no call.
    fn look(&mut self) -> usize {
        let is_known = |name: &str| self.tools.contains(name);
        loop {
            match next(&self.text, self.free, &is_known, More::MayCome) {
                Next::Nothing => {
                    (self.free, self.held) = (self.text.len(), None);
                    return self.free;
                }
                Next::Calls { start, .. } => {
                    (self.free, self.is_over) = (start, true);
                    return start;
                }
                Next::Perhaps { start } if self.text.len() - start <= HELD_BYTES_MAX => {
                    self.hold(start);
                    return start;
                }
                Next::Perhaps { start } => match next(&self.text, start, &is_known, More::Never) {
                    Next::Calls { start: at, .. } if at == start => {
                        (self.free, self.is_over) = (start, true);
                        return start;
                    }
                    _ => self.free = start + 1,
                },
            }
        }
    }

    fn hold(&mut self, start: usize) {
        let again_at =
            (self.text.len() + (self.text.len() - start)).min(start + HELD_BYTES_MAX + 1);
        match self.held.as_mut().filter(|_| self.free == start) {
            Some(held) => held.again_at = again_at,
            None => {
                let (braces, has_closed) = (Braces::default(), false);
                self.held = Some(Held { braces, read: start, has_closed, again_at });
            }
        }
        self.free = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"tool": "clock", "args": {"zone": "}"}}"#;

    fn screen() -> Screen {
        Screen::new(HashSet::from(["clock".to_owned()]))
    }

    /// The shown pieces of a text that arrives in pieces of this size.
    fn shown(text: &str, size: usize) -> (Vec<String>, Parsed) {
        let chars: Vec<char> = text.chars().collect();
        let mut screen = screen();
        let pieces = chars.chunks(size).map(|piece| screen.push(&piece.iter().collect::<String>()));
        let mut pieces: Vec<String> = pieces.collect();
        let (rest, parsed) = screen.finish();
        pieces.push(rest);
        (pieces, parsed)
    }

    #[test]
    fn no_part_of_a_call_is_ever_shown() {
        let fenced = format!("看一下。\n\n```json\n{CALL}\n```\nIt is noon.");
        let tagged = format!("I look. <tool_call>\n[{CALL}]\n</tool_call>");
        let code =
            "Use `a[0]` or\n```rust\nfn main() { let x = 1; }\n```\nas {this}, a < b, done. ";
        let data = r#"The answer: {"name": "Ann", "tool": 7} and {"open": "#;
        let broken = r#"Well: {"tool": "clock", "args": {"zone": }} so"#;
        for (text, expected) in [
            (fenced.as_str(), "看一下。"),
            (&tagged, "I look."),
            (code, code),
            (data, data),
            (broken, "Well:"),
            ("Well: {tool: 'clock', args: {zone: 'x'}} so", "Well:"),
            ("plain", "plain"),
            ("", ""),
        ] {
            for size in 1..=text.chars().count().max(1) {
                let (pieces, parsed) = shown(text, size);
                assert_eq!(pieces.concat(), expected, "{text} in pieces of {size}");
                assert_eq!(parsed.text_before, expected, "{text} in pieces of {size}");
                assert_eq!(parsed.calls.is_empty(), text == expected, "{text}");
            }
        }
    }

    #[test]
    fn text_is_shown_immediately() {
        let mut screen = screen();
        assert_eq!(screen.push("It is "), "It is");
        assert_eq!(screen.push("noon {here"), " noon {here");
        assert_eq!(screen.push(" and there} {na"), " and there}");
        assert_eq!(screen.push("tional} as"), " {national} as");
    }

    #[test]
    fn a_long_object_is_shown_once_it_has_ended() {
        let object = format!("{{\"rows\": [{}]}}", vec!["1"; 1000].join(", "));
        let (pieces, _) = shown(&object, 7);
        let pieces: Vec<&String> = pieces.iter().filter(|piece| !piece.is_empty()).collect();
        assert_eq!(pieces, [&object]);
    }

    #[test]
    fn a_response_of_any_length_is_scanned_once() {
        let fill = |piece: &str| piece.repeat(1_000_000 / piece.len());
        let some = |piece: &str| piece.repeat(200_000 / piece.len());
        for (text, size) in [
            (fill("["), 1000),
            (some("[ "), 1000),
            (fill("<tool_call"), 1000),
            (some("```"), 5),
            (some("```["), 5),
            (fill("word "), 5),
            (some("{"), 1000),
            (some("{tool: 'a "), 1000),
            (format!("{{\"a\":\"{}", some("}")), 1),
            (format!("{{tool: '{}", some("}")), 5),
            (format!("{{\"a\":\"{}", some("x{")), 5),
        ] {
            let mut screen = screen();
            let chunks = text.as_bytes().chunks(size).map(|chunk| str::from_utf8(chunk).unwrap());
            let mut shown: String = chunks.map(|chunk| screen.push(chunk)).collect();
            shown.push_str(&screen.finish().0);
            assert!(shown == text, "{}…", &text[..20]);
        }
    }

    #[test]
    fn an_endless_object_becomes_text_unless_it_started_as_a_call() {
        let long = "x".repeat(HELD_BYTES_MAX);
        let mut other = screen();
        assert_eq!(other.push("{\"note\": \""), "");
        assert_eq!(other.push(&long), format!("{{\"note\": \"{long}"));
        let mut call = screen();
        assert_eq!(call.push("{\"tool\": \"clock\", \"args\": {\"zone\": \""), "");
        assert_eq!(call.push(&long), "");
        assert_eq!(call.push("\"}} and words"), "");
        let (rest, parsed) = call.finish();
        assert_eq!((rest.as_str(), parsed.calls.len()), ("", 1));
        assert_eq!(parsed.calls[0].args["zone"], long);
    }
}
