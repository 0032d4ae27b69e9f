//! The prefix of a call: spaces, brackets, a fence, a tag.
//!
//! Invariant: only the end of a text is examined, so that a response of any length is scanned once. A longer prefix is
//! text.

const FENCE: &str = "```";
const TAG: &str = "<tool_call>";
/// Longest prefix.
const LEAD_BYTES_MAX: usize = 128;

/// The part of a text that was already scanned.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) until: usize,
    fences: Fences,
}

impl Seen {
    pub(super) fn advance(&mut self, text: &str, until: usize) {
        text[self.until..until].bytes().for_each(|byte| self.fences.take(byte));
        self.until = until;
    }

    /// Where the prefix of a call right after `text` starts; never in the scanned part.
    pub(super) fn lead(&self, text: &str) -> usize {
        let from = text.floor_char_boundary(text.len().saturating_sub(LEAD_BYTES_MAX));
        let from = from.max(self.until);
        let ends = self.fence_ends(text);
        let opens = |at: usize| {
            let before = ends.partition_point(|end| *end <= at);
            (self.fences.count + before).is_multiple_of(2)
        };
        let mut left = &text[from..];
        loop {
            let before = left;
            left = left.trim_end_matches(|c: char| c == '[' || c.is_whitespace());
            if let Some(fence) = last_fence(left).filter(|fence| opens(from + fence)) {
                left = left[..fence].trim_end();
            }
            left = left.trim_end_matches('`').trim_end();
            if let Some(tag) = trailing_tag(left) {
                left = left[..tag].trim_end();
            }
            if left == before {
                return from + left.len();
            }
        }
    }

    /// Where unscanned fences end.
    fn fence_ends(&self, text: &str) -> Vec<usize> {
        let mut fences = self.fences;
        let bytes = text[self.until..].bytes().zip(self.until + 1..);
        let end = |(byte, end): (u8, usize)| {
            let before = fences.count;
            fences.take(byte);
            (fences.count > before).then_some(end)
        };
        bytes.filter_map(end).collect()
    }
}

/// The number of fences so far, and trailing backticks.
#[derive(Debug, Default, Clone, Copy)]
struct Fences {
    count: usize,
    ticks: usize,
}

impl Fences {
    fn take(&mut self, byte: u8) {
        self.ticks = if byte == b'`' { self.ticks + 1 } else { 0 };
        if self.ticks == FENCE.len() {
            *self = Self { count: self.count + 1, ticks: 0 };
        }
    }
}

/// A fence at the end, optionally followed by a language name.
fn last_fence(text: &str) -> Option<usize> {
    let text = text.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
    Some(text.strip_suffix(FENCE)?.len())
}

/// A complete or partial tag at the end.
fn trailing_tag(text: &str) -> Option<usize> {
    let from = text.floor_char_boundary(text.len().saturating_sub(TAG.len()));
    let at = from + text[from..].rfind('<')?;
    TAG.starts_with(&text[at..]).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_call_is_not_text_but_a_closing_fence_is() {
        for (text, expected) in [
            ("so\n```json\n[ ", "so"),
            ("so <tool_call>\n", "so"),
            ("so <tool_", "so"),
            ("so ````", "so"),
            ("```\na b\n```c", "```\na b\n```c"),
            ("```\na b\n```\n```json", "```\na b"),
            ("a[0] < b", "a[0] < b"),
            ("", ""),
        ] {
            assert_eq!(&text[..Seen::default().lead(text)], expected, "{text}");
            let mut seen = Seen::default();
            seen.advance(text, expected.len());
            assert_eq!(seen.lead(text), expected.len(), "{text}");
        }
    }

    #[test]
    fn a_long_prefix_is_text() {
        let text = format!("世{}", "[".repeat(1000));
        assert_eq!(Seen::default().lead(&text), text.len() - LEAD_BYTES_MAX);
    }
}
