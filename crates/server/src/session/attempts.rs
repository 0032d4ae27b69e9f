//! Rate limit for failed sign-in attempts.
//!
//! Invariant: only failures count, so no number of them keeps out the holder of a right code or token: both are
//! random and too long to be guessed. Failures count against their own address and kind of credential only, and
//! the memory for addresses is bounded.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Failed attempts in a burst.
const ATTEMPTS_MAX: u32 = 20;
/// Seconds until an attempt is refilled.
pub(super) const ATTEMPT_REFILL_S: u64 = 3;
/// Addresses with their own bucket; addresses beyond share one.
const ADDRESSES_MAX: usize = 1024;

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Code,
    Token,
}

#[derive(Debug, Default)]
pub(super) struct Attempts {
    by_address: HashMap<(Kind, IpAddr), Bucket>,
    shared: Option<Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    attempts: u32,
    /// The time up to which attempts have been refilled.
    refilled: Instant,
}

impl Attempts {
    /// Counts a failed attempt; whether it is within the limit.
    pub(super) fn take(&mut self, from: (Kind, IpAddr), now: Instant) -> bool {
        self.bucket(from, now).take()
    }

    fn bucket(&mut self, (kind, from): (Kind, IpAddr), now: Instant) -> &mut Bucket {
        let from = (kind, network(from));
        if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&from) {
            self.by_address.retain(|_, bucket| !bucket.refill(now).is_full());
        }
        let bucket = if self.by_address.len() < ADDRESSES_MAX || self.by_address.contains_key(&from)
        {
            self.by_address.entry(from).or_insert(Bucket::new(now))
        } else {
            self.shared.get_or_insert(Bucket::new(now))
        };
        bucket.refill(now)
    }
}

impl Bucket {
    fn new(now: Instant) -> Self {
        Self { attempts: ATTEMPTS_MAX, refilled: now }
    }

    fn refill(&mut self, now: Instant) -> &mut Self {
        let refill = now.duration_since(self.refilled).as_secs() / ATTEMPT_REFILL_S;
        self.refilled += Duration::from_secs(refill * ATTEMPT_REFILL_S);
        let refill = u32::try_from(refill).unwrap_or(ATTEMPTS_MAX);
        self.attempts = self.attempts.saturating_add(refill).min(ATTEMPTS_MAX);
        self
    }

    fn take(&mut self) -> bool {
        let allowed = self.attempts > 0;
        self.attempts = self.attempts.saturating_sub(1);
        allowed
    }

    fn is_full(&self) -> bool {
        self.attempts == ATTEMPTS_MAX
    }
}

/// The smallest range that has one owner: for IPv6 a /64 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn successes(attempts: &mut Attempts, from: IpAddr, now: Instant) -> usize {
        (0..100).filter(|_| attempts.take((Kind::Code, from), now)).count()
    }

    #[test]
    fn attempts_run_out_and_are_refilled() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut attempts = Attempts::default();
        assert_eq!(successes(&mut attempts, HERE, start), 20);
        assert!(!attempts.take((Kind::Code, HERE), at(2_999)));
        assert!(attempts.take((Kind::Code, HERE), at(3_000)));
        assert!(!attempts.take((Kind::Code, HERE), at(5_999)));
        assert!(attempts.take((Kind::Code, HERE), at(6_000)));
        assert_eq!(successes(&mut attempts, HERE, at(86_400_000)), 20);
    }

    #[test]
    fn every_address_has_its_own_attempts() {
        let now = Instant::now();
        let mut attempts = Attempts::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(successes(&mut attempts, address("10.0.0.1"), now), 20);
        assert!(attempts.take((Kind::Token, address("10.0.0.1")), now), "and every kind");
        assert_eq!(successes(&mut attempts, address("10.0.0.2"), now), 20);
        assert_eq!(
            successes(&mut attempts, address("::ffff:10.0.0.2"), now),
            0,
            "the same address as IPv6"
        );
        assert_eq!(successes(&mut attempts, address("2001:db8::1"), now), 20);
        assert_eq!(
            successes(&mut attempts, address("2001:db8::ffff:2"), now),
            0,
            "the same network"
        );
        assert_eq!(successes(&mut attempts, address("2001:db8:0:1::1"), now), 20);
    }

    #[test]
    fn addresses_beyond_the_limit_share_a_bucket_until_others_are_full() {
        let start = Instant::now();
        let mut attempts = Attempts::default();
        let address = |number: u32| IpAddr::from(Ipv4Addr::from(number));
        for number in 0..1024 {
            assert!(attempts.take((Kind::Code, address(number)), start));
        }
        let beyond: usize =
            (2000..2100).map(|number| successes(&mut attempts, address(number), start)).sum();
        assert_eq!(beyond, 20);
        assert!(attempts.take((Kind::Code, address(5)), start), "a known address keeps its bucket");
        let later = start + Duration::from_secs(60);
        assert_eq!(successes(&mut attempts, address(3000), later), 20);
        assert!(attempts.by_address.len() <= 1024);
    }
}
