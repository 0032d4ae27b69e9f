//! The sessions that are open, by the hash of what their cookie holds.
//!
//! Invariant: a session ends with the first of its two times. Where there would be too many, the oldest ends of
//! the token that has most: nobody signs others out.

use greenroom_config::Limits;
use std::collections::HashMap;
use std::time::Instant;

pub(super) type Hash = [u8; 32];

#[derive(Debug, Clone, Copy)]
struct Session {
    /// Hash of the token that it stands for.
    token: Hash,
    opened: Instant,
    used: Instant,
}

impl Session {
    fn is_over(&self, limits: &Limits, now: Instant) -> bool {
        now.duration_since(self.used) >= limits.session_idle
            || now.duration_since(self.opened) >= limits.session
    }
}

#[derive(Debug, Default)]
pub(super) struct Open(HashMap<Hash, Session>);

impl Open {
    pub(super) fn add(&mut self, session: Hash, token: Hash, limits: &Limits, now: Instant) {
        if self.0.len() >= limits.sessions {
            self.0.retain(|_, session| !session.is_over(limits, now));
        }
        while self.0.len() >= limits.sessions.max(1) {
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

    pub(super) fn is_open(&self, session: &Hash, limits: &Limits, now: Instant) -> bool {
        self.0.get(session).is_some_and(|session| !session.is_over(limits, now))
    }

    /// The token that a session stands for; asking is using it.
    pub(super) fn used(&mut self, session: &Hash, limits: &Limits, now: Instant) -> Option<Hash> {
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
    use std::time::Duration;

    const TOKEN: Hash = [9; 32];

    fn limits() -> Limits {
        Limits {
            session_idle: Duration::from_secs(100),
            session: Duration::from_secs(250),
            sessions: 3,
            ..Limits::default()
        }
    }

    #[test]
    fn a_session_that_is_not_used_ends() {
        let (mut open, start) = (Open::default(), Instant::now());
        open.add([1; 32], TOKEN, &limits(), start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(open.used(&[1; 32], &limits(), at(99)), Some(TOKEN));
        assert_eq!(open.used(&[1; 32], &limits(), at(198)), Some(TOKEN));
        assert_eq!(open.used(&[2; 32], &limits(), at(198)), None);
        assert_eq!(open.used(&[1; 32], &limits(), at(249)), Some(TOKEN));
        assert_eq!(open.used(&[1; 32], &limits(), at(250)), None, "used to its last second");
        open.add([2; 32], TOKEN, &limits(), start);
        assert_eq!(open.used(&[2; 32], &limits(), at(100)), None);
        assert_eq!(open.used(&[2; 32], &limits(), at(1)), None, "ended for good");
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let (mut open, start) = (Open::default(), Instant::now());
        for number in 1..=4_u8 {
            let now = start + Duration::from_secs(u64::from(number));
            open.add([number; 32], TOKEN, &limits(), now);
        }
        let now = start + Duration::from_secs(5);
        assert_eq!(open.used(&[1; 32], &limits(), now), None);
        for number in 2..=4 {
            assert_eq!(open.used(&[number; 32], &limits(), now), Some(TOKEN), "{number}");
        }
    }

    #[test]
    fn whoever_signs_in_most_makes_room() {
        let (mut open, start) = (Open::default(), Instant::now());
        open.add([1; 32], [8; 32], &limits(), start);
        for number in 2..=9_u8 {
            let now = start + Duration::from_secs(u64::from(number));
            open.add([number; 32], TOKEN, &limits(), now);
        }
        let now = start + Duration::from_secs(10);
        assert!(open.is_open(&[1; 32], &limits(), now));
        assert!(!open.is_open(&[7; 32], &limits(), now));
        assert!(open.is_open(&[8; 32], &limits(), now) && open.is_open(&[9; 32], &limits(), now));
    }

    #[test]
    fn sessions_end_with_their_token() {
        let (mut open, now) = (Open::default(), Instant::now());
        open.add([1; 32], TOKEN, &limits(), now);
        open.add([2; 32], [8; 32], &limits(), now);
        open.keep(|token| *token == TOKEN);
        assert_eq!(open.used(&[1; 32], &limits(), now), Some(TOKEN));
        assert_eq!(open.used(&[2; 32], &limits(), now), None);
    }
}
