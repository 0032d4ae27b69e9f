//! Sign-in codes: valid once, for a short time.
//!
//! Invariant: a code is stored as its hash and removed on first use.

use super::open::Hash;
use std::time::{Duration, Instant};

/// Unused codes; a new one replaces the oldest.
const CODES_MAX: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Code {
    hash: Hash,
    /// Hash of the token that the session will belong to.
    token: Hash,
    created: Instant,
}

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Codes(Vec<Code>);

impl Codes {
    pub(super) fn add(&mut self, hash: Hash, token: Hash, now: Instant) {
        if self.0.len() >= CODES_MAX {
            self.0.remove(0);
        }
        self.0.push(Code { hash, token, created: now });
    }

    /// Consumes a code; returns the token that its session belongs to.
    pub(super) fn take(&mut self, hash: &Hash, lifetime: Duration, now: Instant) -> Option<Hash> {
        self.0.retain(|code| now.duration_since(code.created) < lifetime);
        let index = self.0.iter().position(|code| code.hash == *hash)?;
        Some(self.0.remove(index).token)
    }

    pub(super) fn retain_tokens(&mut self, is_valid: impl Fn(&Hash) -> bool) {
        self.0.retain(|code| is_valid(&code.token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Hash = [9; 32];
    const LIFE: Duration = Duration::from_secs(600);

    #[test]
    fn a_code_is_valid_once_and_until_it_expires() {
        let (mut codes, start) = (Codes::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        codes.add([1; 32], TOKEN, start);
        codes.add([2; 32], TOKEN, start);
        assert_eq!(codes.take(&[3; 32], LIFE, at(1)), None);
        assert_eq!(codes.take(&[1; 32], LIFE, at(599)), Some(TOKEN));
        assert_eq!(codes.take(&[1; 32], LIFE, at(599)), None);
        assert_eq!(codes.take(&[2; 32], LIFE, at(600)), None);
    }

    #[test]
    fn a_new_code_replaces_the_oldest() {
        let (mut codes, now) = (Codes::default(), Instant::now());
        for number in 0..=8_u8 {
            codes.add([number; 32], TOKEN, now);
        }
        assert_eq!(codes.take(&[0; 32], LIFE, now), None);
        assert_eq!(codes.take(&[1; 32], LIFE, now), Some(TOKEN));
    }
}
