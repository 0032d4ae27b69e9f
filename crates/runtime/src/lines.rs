//! Splits a byte stream into lines without ever holding more than one line of the allowed length.
//!
//! Invariant: the same bytes give the same lines, however they are chunked; a line over the limit is reported
//! once, as soon as it is known to be too long, with its beginning.

use memchr::memchr;

/// How much of a line that is too long is kept, to find out what it belongs to.
const HEAD_BYTES: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Without its line end.
    Whole(&'a [u8]),
    /// The beginning of a line that is too long.
    TooLong(&'a [u8]),
}

pub(crate) struct Lines {
    partial: Vec<u8>,
    discarding: bool,
    line_bytes_max: usize,
}

impl Lines {
    pub(crate) fn new(line_bytes_max: usize) -> Self {
        Self { partial: Vec::new(), discarding: false, line_bytes_max }
    }

    /// Passes every line that `chunk` completes to `each`.
    pub(crate) fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = rest;
            if self.discarding {
                self.discarding = false;
            } else if self.partial.len() + line.len() > self.line_bytes_max {
                self.too_long(line, &mut each);
            } else if self.partial.is_empty() {
                each(Line::Whole(line));
            } else {
                self.partial.extend_from_slice(line);
                each(Line::Whole(&self.partial));
                self.clear();
            }
        }
        if self.discarding {
            return;
        }
        if self.partial.len() + chunk.len() > self.line_bytes_max {
            self.too_long(chunk, &mut each);
            self.discarding = true;
        } else {
            self.partial.extend_from_slice(chunk);
        }
    }

    fn too_long(&mut self, more: &[u8], each: &mut impl FnMut(Line<'_>)) {
        let missing = HEAD_BYTES.saturating_sub(self.partial.len()).min(more.len());
        self.partial.extend_from_slice(&more[..missing]);
        self.partial.truncate(HEAD_BYTES);
        each(Line::TooLong(&self.partial));
        self.clear();
    }

    fn clear(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(HEAD_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Lines};
    use proptest::prelude::*;

    const MAX: usize = 12;

    fn split(chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, Vec<u8>>> {
        let mut lines = Lines::new(MAX);
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.feed(chunk, |line| {
                seen.push(match line {
                    Line::Whole(bytes) => Ok(bytes.to_vec()),
                    Line::TooLong(head) => Err(head.to_vec()),
                })
            });
        }
        seen
    }

    #[test]
    fn a_line_over_the_limit_is_reported_before_its_end_and_only_once() {
        let seen = split(&[b"0123456789", b"abcdef", b"ghi", b"jkl\nnext\n"]);
        assert_eq!(seen, [Err(b"0123456789abcdef".to_vec()), Ok(b"next".to_vec())]);
    }

    proptest! {
        #[test]
        fn chunk_borders_do_not_change_the_lines(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let complete = text.iter().rposition(|byte| *byte == b'\n');
            let expected: Vec<(bool, usize)> = complete
                .map(|end| text[..end].split(|byte| *byte == b'\n').map(|line| (line.len() <= MAX, line.len())).collect())
                .unwrap_or_default();
            let seen = split(&chunks);
            // A last line without an end is reported only if it is too long.
            let tail = text.len() - complete.map_or(0, |end| end + 1);
            prop_assert_eq!(seen.len(), expected.len() + usize::from(tail > MAX));
            for (line, (fits, length)) in seen.iter().zip(&expected) {
                match line {
                    Ok(bytes) => prop_assert!(*fits && bytes.len() == *length),
                    Err(_) => prop_assert!(!fits),
                }
            }
        }
    }
}
