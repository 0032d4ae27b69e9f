//! How often anyone may try to sign in and be wrong.
//!
//! Invariant: a try is taken before it is looked at, so that many at once are no more than many in a row.

use std::time::{Duration, Instant};

/// Wrong tries at once.
const TRIES_MAX: u32 = 20;
/// After how long one of them comes back.
pub(super) const TRY_BACK_S: u64 = 3;

#[derive(Debug)]
pub(super) struct Tries {
    left: u32,
    /// The time up to which tries have come back.
    counted: Instant,
}

impl Tries {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: TRIES_MAX, counted: now }
    }

    /// Whether one more may be made; it counts unless it is given back.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let back = now.duration_since(self.counted).as_secs() / TRY_BACK_S;
        self.counted += Duration::from_secs(back * TRY_BACK_S);
        let back = u32::try_from(back).unwrap_or(TRIES_MAX);
        self.left = self.left.saturating_add(back).min(TRIES_MAX);
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }

    /// It was right.
    pub(super) fn give_back(&mut self) {
        self.left = (self.left + 1).min(TRIES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tries_run_out_and_come_back_with_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut tries = Tries::new(start);
        let made = (0..100).filter(|_| tries.take(start)).count();
        assert_eq!(made, 20);
        assert!(!tries.take(at(2_999)));
        assert!(tries.take(at(3_000)));
        assert!(!tries.take(at(5_999)));
        assert!(tries.take(at(6_000)));
        assert_eq!((0..100).filter(|_| tries.take(at(86_400_000))).count(), 20);
    }

    #[test]
    fn right_tries_cost_nothing() {
        let start = Instant::now();
        let mut tries = Tries::new(start);
        for _ in 0..100 {
            assert!(tries.take(start));
            tries.give_back();
        }
    }
}
