//! What may be shown of an answer while it comes: never a part of what turns out to be a call.
//!
//! Invariant: what was shown, put together, is the text of the parsed answer.

use super::parse::{More, Next, Parsed, lead, next, parse};
use std::collections::HashSet;

/// A piece that is held back is read again with every word as long as it is this short; from then on only
/// when it may have ended.
const SHORT_BYTES: usize = 256;

pub(crate) struct Screen {
    tools: HashSet<String>,
    text: String,
    /// So much of it was shown.
    shown: usize,
    /// So much of it is known to hold no call.
    free: usize,
    /// A call was found: nothing more is shown.
    is_over: bool,
}

impl Screen {
    /// For a model that may call these.
    pub(crate) fn new(tools: HashSet<String>) -> Self {
        Self { tools, text: String::new(), shown: 0, free: 0, is_over: false }
    }

    /// Takes the next piece of the answer and gives what can be shown now.
    pub(crate) fn push(&mut self, delta: &str) -> String {
        self.text.push_str(delta);
        let waits = self.text.len() - self.shown > SHORT_BYTES && self.free < self.text.len();
        if self.is_over || (waits && self.is_held() && !delta.contains('}')) {
            return String::new();
        }
        let is_known = |name: &str| self.tools.contains(name);
        let until = match next(&self.text, self.free, &is_known, More::MayCome) {
            Next::Nothing => {
                self.free = self.text.len();
                self.text.len()
            }
            Next::Perhaps { start } => {
                self.free = start;
                start
            }
            Next::Calls { start, .. } => {
                self.is_over = true;
                start
            }
        };
        let until = lead(&self.text[..until]).max(self.shown);
        let shown = self.text[self.shown..until].to_owned();
        self.shown = until;
        shown
    }

    /// What is still to be shown, and the whole answer.
    pub(crate) fn finish(self) -> (String, Parsed) {
        let parsed = parse(&self.text, &|name| self.tools.contains(name));
        let rest = parsed.text_before.get(self.shown..).unwrap_or_default().to_owned();
        (rest, parsed)
    }

    /// An object has begun and not ended.
    fn is_held(&self) -> bool {
        self.text[self.free..].starts_with('{')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"tool": "clock", "args": {"zone": "}"}}"#;

    fn screen() -> Screen {
        Screen::new(HashSet::from(["clock".to_owned()]))
    }

    /// The pieces that are shown when a text comes in pieces of so many characters.
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
    fn no_part_of_a_call_is_ever_shown_however_it_is_cut() {
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
    fn words_are_shown_as_they_come() {
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
}
