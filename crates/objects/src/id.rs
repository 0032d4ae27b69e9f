//! The id of an object: its SHA-256.
//!
//! Invariant: the text of an id is 64 digits of `0-9a-f`; nothing else parses.

use sha2::{Digest, Sha256};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId([u8; 32]);

/// All ids with the same first byte; objects are listed and collected shard by shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard(pub u8);

impl ObjectId {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut id = [0; 32];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(id))
    }

    pub fn shard(&self) -> Shard {
        Shard(self.0[0])
    }

    pub(crate) fn from_hash(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl Shard {
    pub fn all() -> impl Iterator<Item = Shard> {
        (0..=u8::MAX).map(Shard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_is_the_sha_256_in_lower_case() {
        let id = ObjectId::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(id.to_string(), text);
        assert_eq!(ObjectId::parse(text), Some(id));
        assert_eq!(id.shard().to_string(), "ba");
    }

    #[test]
    fn text_other_than_64_lower_case_digits_is_no_id() {
        let good = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for bad in [
            String::new(),
            good.to_uppercase(),
            good[1..].to_owned(),
            format!("{good}0"),
            format!("../{}", &good[3..]),
            format!("{}\0", &good[1..]),
            format!("é{}", &good[2..]),
        ] {
            assert_eq!(ObjectId::parse(&bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_id_is_written_unchanged(text in "\\PC{0,70}") {
            if let Some(id) = ObjectId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
