//! The sessions that are open, by the hash of what their cookie holds.
//!
//! Invariant: a session ends with the first of its two times. Where there would be too many, the oldest ends of
//! the token that has most: nobody signs others out.

use std::collections::HashMap;
use std::time::{Duration, Instant};

pub(super) type Hash = [u8; 32];

/// How long and how many.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// How long a sign-in code can be used.
    pub code: Duration,
    /// A session that is not used for so long ends.
    pub idle: Duration,
    /// A session ends after so long however much it is used.
    pub whole: Duration,
    pub sessions_max: usize,
}

#[derive(Debug, Clone, Copy)]
struct Session {
    /// Hash of the token that it stands for.
    token: Hash,
    opened: Instant,
    used: Instant,
}

impl Session {
    fn is_over(&self, limits: &SessionLimits, now: Instant) -> bool {
        now.duration_since(self.used) >= limits.idle
            || now.duration_since(self.opened) >= limits.whole
    }
}

#[derive(Debug, Default)]
pub(super) struct Open(HashMap<Hash, Session>);

impl Open {
    pub(super) fn add(&mut self, session: Hash, token: Hash, limits: &SessionLimits, now: Instant) {
        if self.0.len() >= limits.sessions_max {
            self.0.retain(|_, session| !session.is_over(limits, now));
        }
        while self.0.len() >= limits.sessions_max.max(1) {
            let Some(oldest) = self.oldest_of_most() else { break };
            self.0.remove(&oldest);
        }
        self.0.insert(session, Session { token, opened: now, used: now });
    }

    fn oldest_of_most(&self) -> Option<Hash> {
        let mut counts: HashMap<&Hash, usize> = HashMap::new();
        for session in self.0.values() {
            *counts.entry(&session.token).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let theirs = self.0.iter().filter(|(_, session)| counts[&session.token] == most);
        theirs.min_by_key(|(_, session)| session.opened).map(|(hash, _)| *hash)
    }

    pub(super) fn is_open(&self, session: &Hash, limits: &SessionLimits, now: Instant) -> bool {
        self.0.get(session).is_some_and(|session| !session.is_over(limits, now))
    }

    /// The token that a session stands for; asking is using it.
    pub(super) fn used(
        &mut self,
        session: &Hash,
        limits: &SessionLimits,
        now: Instant,
    ) -> Option<Hash> {
        let found = self.0.get_mut(session)?;
        if found.is_over(limits, now) {
            self.0.remove(session);
            return None;
        }
        found.used = now;
        Some(found.token)
    }

    pub(super) fn end(&mut self, session: &Hash) {
        self.0.remove(session);
    }

    pub(super) fn keep(&mut self, is_valid: impl Fn(&Hash) -> bool) {
        self.0.retain(|_, session| is_valid(&session.token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Hash = [9; 32];
    const LIMITS: SessionLimits = SessionLimits {
        code: Duration::from_secs(600),
        idle: Duration::from_secs(100),
        whole: Duration::from_secs(250),
        sessions_max: 3,
    };

    #[test]
    fn a_session_that_is_not_used_ends() {
        let (mut open, start) = (Open::default(), Instant::now());
        open.add([1; 32], TOKEN, &LIMITS, start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(open.used(&[1; 32], &LIMITS, at(99)), Some(TOKEN));
        assert_eq!(open.used(&[1; 32], &LIMITS, at(198)), Some(TOKEN));
        assert_eq!(open.used(&[2; 32], &LIMITS, at(198)), None);
        assert_eq!(open.used(&[1; 32], &LIMITS, at(249)), Some(TOKEN));
        assert_eq!(open.used(&[1; 32], &LIMITS, at(250)), None, "used to its last second");
        open.add([2; 32], TOKEN, &LIMITS, start);
        assert_eq!(open.used(&[2; 32], &LIMITS, at(100)), None);
        assert_eq!(open.used(&[2; 32], &LIMITS, at(1)), None, "ended for good");
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let (mut open, start) = (Open::default(), Instant::now());
        for number in 1..=4_u8 {
            let now = start + Duration::from_secs(u64::from(number));
            open.add([number; 32], TOKEN, &LIMITS, now);
        }
        let now = start + Duration::from_secs(5);
        assert_eq!(open.used(&[1; 32], &LIMITS, now), None);
        for number in 2..=4 {
            assert_eq!(open.used(&[number; 32], &LIMITS, now), Some(TOKEN), "{number}");
        }
    }

    #[test]
    fn whoever_signs_in_most_makes_room() {
        let (mut open, start) = (Open::default(), Instant::now());
        open.add([1; 32], [8; 32], &LIMITS, start);
        for number in 2..=9_u8 {
            let now = start + Duration::from_secs(u64::from(number));
            open.add([number; 32], TOKEN, &LIMITS, now);
        }
        let now = start + Duration::from_secs(10);
        assert!(open.is_open(&[1; 32], &LIMITS, now));
        assert!(!open.is_open(&[7; 32], &LIMITS, now));
        assert!(open.is_open(&[8; 32], &LIMITS, now) && open.is_open(&[9; 32], &LIMITS, now));
    }

    #[test]
    fn sessions_end_with_their_token() {
        let (mut open, now) = (Open::default(), Instant::now());
        open.add([1; 32], TOKEN, &LIMITS, now);
        open.add([2; 32], [8; 32], &LIMITS, now);
        open.keep(|token| *token == TOKEN);
        assert_eq!(open.used(&[1; 32], &LIMITS, now), Some(TOKEN));
        assert_eq!(open.used(&[2; 32], &LIMITS, now), None);
    }
}
