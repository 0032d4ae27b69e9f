//! The longest text of one message, and how a longer one is split.

use std::fmt;

/// In the unit that the platform counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMax {
    Characters(usize),
    Bytes(usize),
}

impl TextMax {
    /// Its number, without the unit.
    pub fn size(self) -> usize {
        match self {
            TextMax::Characters(max) | TextMax::Bytes(max) => max,
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            TextMax::Characters(_) => "characters",
            TextMax::Bytes(_) => "bytes",
        }
    }

    pub fn fits(self, text: &str) -> bool {
        self.end(text).is_none()
    }

    /// Splits a text into parts that fit, at the last whitespace of each where there is one.
    pub fn split(self, text: &str) -> Vec<&str> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(end) = self.end(rest) {
            let cut = rest[..end].rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(end);
            parts.push(&rest[..cut]);
            rest = if cut == end { &rest[cut..] } else { rest[cut..].trim_start() };
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(rest);
        }
        parts
    }

    /// Where the first part of a text ends that is too long. It has at least one character.
    fn end(self, text: &str) -> Option<usize> {
        let first = text.chars().next()?.len_utf8();
        let end = match self {
            TextMax::Characters(max) => text.char_indices().nth(max)?.0,
            TextMax::Bytes(max) if text.len() > max => text.floor_char_boundary(max),
            TextMax::Bytes(_) => return None,
        };
        Some(end.max(first))
    }
}

impl fmt::Display for TextMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextMax::Characters(max) => write!(f, "{max} characters"),
            TextMax::Bytes(max) => write!(f, "{max} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TextMax::{Bytes, Characters};

    #[test]
    fn long_messages_are_split_at_whitespace_and_lose_no_word() {
        assert_eq!(Characters(8).split("one two three"), ["one two", "three"]);
        assert_eq!(Characters(2).split("一二三四五"), ["一二", "三四", "五"]);
        assert_eq!(Characters(100).split("short"), ["short"]);
        assert_eq!(Characters(3).split(""), [""]);
        assert_eq!(Bytes(8).split("one two three"), ["one two", "three"]);
        assert_eq!(Bytes(7).split("一二三"), ["一二", "三"]);
        assert_eq!(Bytes(1).split("一二"), ["一", "二"], "a character is never split");
    }
}
