//! Terms: the keys of an item in the index.
//!
//! Invariant: a term is a hash of its workspace, its kind and its value, so that each workspace has lists of
//! its own and the index holds no text. The hash is part of the stored format.

use super::fold::{Kind, kind};
use crate::StoreError;
use crate::sql::Row;

/// Bits of a time, or of an item number, that one block of each level covers.
const TIME_SHIFTS: [u32; 6] = [23, 26, 29, 32, 35, 38];
pub(crate) const BLOCK_SHIFTS: [u32; 6] = [10, 12, 14, 16, 18, 20];

/// Blocks of the finest level that a time range covers at most.
const SPAN_BLOCKS_MAX: i64 = 64;

/// Terms of one workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) workspace: &'a str,
}

/// The fields of an item that searches use.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) workspace_id: String,
    pub(crate) conversation_id: String,
    pub(crate) event_seq: i64,
    pub(crate) thread_id: Option<String>,
    pub(crate) session: String,
    pub(crate) role: String,
    pub(crate) event_type: Option<String>,
    pub(crate) actor_id: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) text: Text,
}

/// A text, unless it is too long to be read with the rest.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    None,
    Here(String),
    Long { bytes: i64 },
}

/// The columns for `Entry::read`; a long text is not read.
macro_rules! entry_columns {
    () => {
        "t.id, t.workspace_id, t.conversation_id, t.event_seq, t.thread_id, t.session, t.role,
         t.event_type, t.actor_id, t.created_at, octet_length(t.text),
         CASE WHEN octet_length(t.text) <= 32768 THEN t.text END"
    };
}
pub(crate) use entry_columns;

impl Entry {
    pub(crate) fn read(mut row: Row) -> Result<Entry, StoreError> {
        Ok(Entry {
            id: row.int()?,
            workspace_id: row.text()?,
            conversation_id: row.text()?,
            event_seq: row.int()?,
            thread_id: row.opt_text()?,
            session: row.text()?,
            role: row.text()?,
            event_type: row.opt_text()?,
            actor_id: row.opt_text()?,
            created_at: row.int()?,
            text: match (row.opt_int()?, row.opt_text()?) {
                (None, _) => Text::None,
                (_, Some(text)) => Text::Here(text),
                (Some(bytes), None) => Text::Long { bytes },
            },
        })
    }

    pub(crate) fn bytes(&self) -> i64 {
        match &self.text {
            Text::None => 0,
            Text::Here(text) => text.len() as i64,
            Text::Long { bytes } => *bytes,
        }
    }

    /// All terms of the item besides its words.
    pub(crate) fn filters(&self, found: &mut Vec<u32>) {
        let terms = Terms { workspace: &self.workspace_id };
        found.push(terms.conversation(&self.conversation_id));
        found.push(terms.role(&self.role));
        found.extend(self.thread_id.as_deref().map(|thread| terms.thread(thread)));
        found.extend(self.event_type.as_deref().map(|kind| terms.event_type(kind)));
        found.extend(self.actor_id.as_deref().map(|actor| terms.actor(actor)));
        let moment = self.created_at.max(0);
        for (level, shift) in TIME_SHIFTS.into_iter().enumerate() {
            found.push(terms.moment(level, moment >> shift));
        }
    }
}

impl Terms<'_> {
    pub(crate) fn word(self, word: &str) -> u32 {
        self.hash(b'w', word.as_bytes())
    }

    pub(crate) fn conversation(self, id: &str) -> u32 {
        self.hash(b'c', id.as_bytes())
    }

    pub(crate) fn thread(self, id: &str) -> u32 {
        self.hash(b't', id.as_bytes())
    }

    pub(crate) fn role(self, role: &str) -> u32 {
        self.hash(b'r', role.as_bytes())
    }

    pub(crate) fn event_type(self, name: &str) -> u32 {
        self.hash(b'e', name.as_bytes())
    }

    pub(crate) fn actor(self, id: &str) -> u32 {
        self.hash(b'a', id.as_bytes())
    }

    fn moment(self, level: usize, block: i64) -> u32 {
        self.hash(b'0' + level as u8, &block.to_be_bytes())
    }

    /// The words of a folded text as an item has them: each once; dense characters alone and in pairs.
    pub(crate) fn of_item(self, folded: &str, found: &mut Vec<u32>) {
        pieces(folded, |piece, kind| match kind {
            Kind::Word => found.push(self.word(piece)),
            Kind::Dense => {
                let mut last = None;
                for (at, c) in piece.char_indices() {
                    let end = at + c.len_utf8();
                    found.push(self.word(&piece[at..end]));
                    found.extend(last.map(|last| self.word(&piece[last..end])));
                    last = Some(at);
                }
            }
        });
    }

    /// Terms that cover a time range, one of which every item within has: long blocks in the middle, short ones
    /// at both ends, so that they are few and cover little else.
    pub(crate) fn span(self, from_ms: i64, before_ms: i64) -> Vec<u32> {
        let mut found = Vec::new();
        let (from, to) = (from_ms.max(0), (before_ms - 1).max(0));
        let few = |shift: &u32| (to >> shift) - (from >> shift) < SPAN_BLOCKS_MAX;
        let finest = TIME_SHIFTS.iter().position(few).unwrap_or(TIME_SHIFTS.len() - 1);
        // The newest come first, so the newer end has to be exact.
        let start = finest.saturating_sub(1);
        let (mut first, mut last) = (from >> TIME_SHIFTS[start], to >> TIME_SHIFTS[start]);
        for level in start..TIME_SHIFTS.len() {
            let top = level + 1 == TIME_SHIFTS.len();
            while level >= finest && first <= last && (top || first % 8 != 0) {
                found.push(self.moment(level, first));
                first += 1;
            }
            while first <= last && last % 8 != 7 {
                found.push(self.moment(level, last));
                last -= 1;
            }
            if first > last {
                break;
            }
            (first, last) = (first >> 3, last >> 3);
        }
        found
    }

    fn hash(self, kind: u8, value: &[u8]) -> u32 {
        let kind = [0, kind];
        let parts = self.workspace.as_bytes().iter().chain(&kind).chain(value);
        mix(parts.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }
}

/// A stretch of item numbers, for a database whose index knows no order.
pub(crate) fn block(level: usize, id: i64) -> u32 {
    mix(0x9e37_79b9_7f4a_7c15 ^ (((id >> BLOCK_SHIFTS[level]) as u64) << 3 | level as u64))
}

/// The parts of a folded text: each word, and each stretch of dense characters.
pub(crate) fn pieces<'a>(folded: &'a str, mut emit: impl FnMut(&'a str, Kind)) {
    let mut open: Option<(usize, Kind)> = None;
    for (at, c) in folded.char_indices() {
        let here = kind(c);
        if open.map(|(_, kind)| kind) == here {
            continue;
        }
        if let Some((start, kind)) = open {
            emit(&folded[start..at], kind);
        }
        open = here.map(|kind| (at, kind));
    }
    if let Some((start, kind)) = open {
        emit(&folded[start..], kind);
    }
}

/// Spreads the bits of a hash and keeps half of them.
fn mix(hash: u64) -> u32 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((hash ^ (hash >> 33)) >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const W: Terms<'static> = Terms { workspace: "w" };

    fn of_item(folded: &str) -> Vec<u32> {
        let mut found = Vec::new();
        W.of_item(folded, &mut found);
        found
    }

    #[test]
    fn dense_characters_are_found_alone_and_in_pairs() {
        let expected =
            ["数", "据", "数据", "库", "据库", "mysql", "连", "ab"].map(|word| W.word(word));
        assert_eq!(of_item("数据库mysql连 ab"), expected);
        assert!(of_item("").is_empty());
    }

    #[test]
    fn the_same_word_is_another_term_elsewhere() {
        assert_ne!(W.word("x"), Terms { workspace: "v" }.word("x"));
        assert_ne!(W.word("x"), W.role("x"));
    }

    #[test]
    fn hashes_are_part_of_the_stored_format() {
        assert_eq!(
            [W.word("数据"), W.conversation("c1"), block(0, 4096)],
            [3786906477, 1435523465, 3307476968]
        );
    }

    proptest! {
        #[test]
        fn a_span_covers_its_moments_and_little_else(
            from in 0_i64..4_000_000_000_000, width in 1_i64..400_000_000_000, at in 0_i64..1_000_000,
        ) {
            let found = W.span(from, from + width);
            prop_assert!(found.len() < 32, "{}", found.len());
            let holds = |moment: i64| (0..6).any(|level| {
                found.contains(&W.moment(level, moment >> TIME_SHIFTS[level]))
            });
            prop_assert!(holds(from + width * at / 1_000_000));
            prop_assert!(holds(from) && holds(from + width - 1));
            let beyond = (width / 7).max(1 << 23);
            prop_assert!(!holds(from + width + beyond) && !holds(from - beyond));
        }
    }
}
