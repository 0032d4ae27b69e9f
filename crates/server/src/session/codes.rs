//! Sign-in codes: good once, and not for long.
//!
//! Invariant: a code is kept as its hash, and is gone with its first use.

use super::open::Hash;
use std::time::{Duration, Instant};

/// Codes that can wait for their use; the oldest makes room.
const CODES_MAX: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Code {
    hash: Hash,
    /// Hash of the token whose session it opens.
    token: Hash,
    made: Instant,
}

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Codes(Vec<Code>);

impl Codes {
    pub(super) fn add(&mut self, hash: Hash, token: Hash, now: Instant) {
        if self.0.len() >= CODES_MAX {
            self.0.remove(0);
        }
        self.0.push(Code { hash, token, made: now });
    }

    /// The token whose session a code opens.
    pub(super) fn take(&mut self, hash: &Hash, life: Duration, now: Instant) -> Option<Hash> {
        self.0.retain(|code| now.duration_since(code.made) < life);
        let place = self.0.iter().position(|code| code.hash == *hash)?;
        Some(self.0.remove(place).token)
    }

    pub(super) fn keep(&mut self, is_valid: impl Fn(&Hash) -> bool) {
        self.0.retain(|code| is_valid(&code.token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Hash = [9; 32];
    const LIFE: Duration = Duration::from_secs(600);

    #[test]
    fn a_code_is_good_once_and_in_time() {
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
    fn the_oldest_of_too_many_codes_is_gone() {
        let (mut codes, now) = (Codes::default(), Instant::now());
        for number in 0..=8_u8 {
            codes.add([number; 32], TOKEN, now);
        }
        assert_eq!(codes.take(&[0; 32], LIFE, now), None);
        assert_eq!(codes.take(&[1; 32], LIFE, now), Some(TOKEN));
    }
}
