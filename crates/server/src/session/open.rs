//! Open sessions, by the hash of their cookie value.
//!
//! Invariant: a session ends at its idle timeout or its lifetime, whichever is first. At the limit, the oldest
//! session of the token with the most sessions ends, so one user cannot sign out others.

use greenroom_config::Limits;
use std::collections::HashMap;
use std::time::Instant;

pub(super) type Hash = [u8; 32];

#[derive(Debug, Clone, Copy)]
struct Session {
    /// Hash of its token.
    token: Hash,
    opened: Instant,
    used: Instant,
}

impl Session {
    fn is_expired(&self, limits: &Limits, now: Instant) -> bool {
        now.duration_since(self.used) >= limits.session_idle
            || now.duration_since(self.opened) >= limits.session
    }
}

#[derive(Debug, Default)]
pub(super) struct OpenSessions(HashMap<Hash, Session>);

impl OpenSessions {
    pub(super) fn add(&mut self, session: Hash, token: Hash, limits: &Limits, now: Instant) {
        if self.0.len() >= limits.sessions {
            self.0.retain(|_, session| !session.is_expired(limits, now));
        }
        while self.0.len() >= limits.sessions.max(1) {
            let Some(oldest) = self.oldest_of_busiest_token() else { break };
            self.0.remove(&oldest);
        }
        self.0.insert(session, Session { token, opened: now, used: now });
    }

    fn oldest_of_busiest_token(&self) -> Option<Hash> {
        let mut counts: HashMap<&Hash, usize> = HashMap::new();
        for session in self.0.values() {
            *counts.entry(&session.token).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let theirs = self.0.iter().filter(|(_, session)| counts[&session.token] == most);
        theirs.min_by_key(|(_, session)| session.opened).map(|(hash, _)| *hash)
    }

    pub(super) fn is_open(&self, session: &Hash, limits: &Limits, now: Instant) -> bool {
        self.0.get(session).is_some_and(|session| !session.is_expired(limits, now))
    }

    /// The token of a session; counts as a use of it.
    pub(super) fn touch(&mut self, session: &Hash, limits: &Limits, now: Instant) -> Option<Hash> {
        let entry = self.0.get_mut(session)?;
        if entry.is_expired(limits, now) {
            self.0.remove(session);
            return None;
        }
        entry.used = now;
        Some(entry.token)
    }

    pub(super) fn end(&mut self, session: &Hash) {
        self.0.remove(session);
    }

    pub(super) fn retain_tokens(&mut self, is_valid: impl Fn(&Hash) -> bool) {
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
    fn a_session_expires() {
        let (mut open, start) = (OpenSessions::default(), Instant::now());
        open.add([1; 32], TOKEN, &limits(), start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(open.touch(&[1; 32], &limits(), at(99)), Some(TOKEN));
        assert_eq!(open.touch(&[1; 32], &limits(), at(198)), Some(TOKEN));
        assert_eq!(open.touch(&[2; 32], &limits(), at(198)), None);
        assert_eq!(open.touch(&[1; 32], &limits(), at(249)), Some(TOKEN));
        assert_eq!(open.touch(&[1; 32], &limits(), at(250)), None, "used to its last second");
        open.add([2; 32], TOKEN, &limits(), start);
        assert_eq!(open.touch(&[2; 32], &limits(), at(100)), None);
        assert_eq!(open.touch(&[2; 32], &limits(), at(1)), None, "ended for good");
    }

    #[test]
    fn a_new_session_ends_the_oldest() {
        let (mut open, start) = (OpenSessions::default(), Instant::now());
        for number in 1..=4_u8 {
            let now = start + Duration::from_secs(u64::from(number));
            open.add([number; 32], TOKEN, &limits(), now);
        }
        let now = start + Duration::from_secs(5);
        assert_eq!(open.touch(&[1; 32], &limits(), now), None);
        for number in 2..=4 {
            assert_eq!(open.touch(&[number; 32], &limits(), now), Some(TOKEN), "{number}");
        }
    }

    #[test]
    fn the_token_with_most_sessions_loses_its_oldest() {
        let (mut open, start) = (OpenSessions::default(), Instant::now());
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
        let (mut open, now) = (OpenSessions::default(), Instant::now());
        open.add([1; 32], TOKEN, &limits(), now);
        open.add([2; 32], [8; 32], &limits(), now);
        open.retain_tokens(|token| *token == TOKEN);
        assert_eq!(open.touch(&[1; 32], &limits(), now), Some(TOKEN));
        assert_eq!(open.touch(&[2; 32], &limits(), now), None);
    }
}
