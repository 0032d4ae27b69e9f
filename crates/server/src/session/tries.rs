//! How often anyone may try to sign in and be wrong.
//!
//! Invariant: a try is taken before it is looked at, so that many at once are no more than many in a row. Whoever
//! is wrong uses up the tries of its own address alone, and however many addresses there are, what is kept of
//! them is bounded.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Wrong tries at once.
const TRIES_MAX: u32 = 20;
/// After how long one of them comes back.
pub(super) const TRY_BACK_S: u64 = 3;
/// Addresses that have used tries and not all of them back; those beyond share theirs.
const ADDRESSES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Tries {
    of: HashMap<IpAddr, Left>,
    of_others: Option<Left>,
}

#[derive(Debug, Clone, Copy)]
struct Left {
    tries: u32,
    /// The time up to which tries have come back.
    counted: Instant,
}

impl Tries {
    /// Whether one more may be made from an address; it counts unless it is given back.
    pub(super) fn take(&mut self, from: IpAddr, now: Instant) -> bool {
        self.left(from, now).take()
    }

    /// It was right.
    pub(super) fn give_back(&mut self, from: IpAddr, now: Instant) {
        let left = self.left(from, now);
        left.tries = (left.tries + 1).min(TRIES_MAX);
    }

    fn left(&mut self, from: IpAddr, now: Instant) -> &mut Left {
        let from = network(from);
        if self.of.len() >= ADDRESSES_MAX && !self.of.contains_key(&from) {
            self.of.retain(|_, left| !left.count(now).is_whole());
        }
        let left = if self.of.len() < ADDRESSES_MAX || self.of.contains_key(&from) {
            self.of.entry(from).or_insert(Left::new(now))
        } else {
            self.of_others.get_or_insert(Left::new(now))
        };
        left.count(now)
    }
}

impl Left {
    fn new(now: Instant) -> Self {
        Self { tries: TRIES_MAX, counted: now }
    }

    /// Counts what has come back by now.
    fn count(&mut self, now: Instant) -> &mut Self {
        let back = now.duration_since(self.counted).as_secs() / TRY_BACK_S;
        self.counted += Duration::from_secs(back * TRY_BACK_S);
        let back = u32::try_from(back).unwrap_or(TRIES_MAX);
        self.tries = self.tries.saturating_add(back).min(TRIES_MAX);
        self
    }

    fn take(&mut self) -> bool {
        let may = self.tries > 0;
        self.tries = self.tries.saturating_sub(1);
        may
    }

    fn is_whole(&self) -> bool {
        self.tries == TRIES_MAX
    }
}

/// What one owner has for sure: of IPv6 that is a whole network.
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

    fn made(tries: &mut Tries, from: IpAddr, now: Instant) -> usize {
        (0..100).filter(|_| tries.take(from, now)).count()
    }

    #[test]
    fn wrong_tries_run_out_and_come_back_with_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut tries = Tries::default();
        assert_eq!(made(&mut tries, HERE, start), 20);
        assert!(!tries.take(HERE, at(2_999)));
        assert!(tries.take(HERE, at(3_000)));
        assert!(!tries.take(HERE, at(5_999)));
        assert!(tries.take(HERE, at(6_000)));
        assert_eq!(made(&mut tries, HERE, at(86_400_000)), 20);
    }

    #[test]
    fn right_tries_cost_nothing() {
        let start = Instant::now();
        let mut tries = Tries::default();
        for _ in 0..100 {
            assert!(tries.take(HERE, start));
            tries.give_back(HERE, start);
        }
    }

    #[test]
    fn an_address_uses_up_its_own_tries_alone() {
        let now = Instant::now();
        let mut tries = Tries::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(made(&mut tries, address("10.0.0.1"), now), 20);
        assert_eq!(made(&mut tries, address("10.0.0.2"), now), 20);
        assert_eq!(
            made(&mut tries, address("::ffff:10.0.0.2"), now),
            0,
            "the same, spelled otherwise"
        );
        assert_eq!(made(&mut tries, address("2001:db8::1"), now), 20);
        assert_eq!(made(&mut tries, address("2001:db8::ffff:2"), now), 0, "the same network");
        assert_eq!(made(&mut tries, address("2001:db8:0:1::1"), now), 20);
    }

    #[test]
    fn addresses_beyond_what_is_kept_share_their_tries_until_others_have_theirs_back() {
        let start = Instant::now();
        let mut tries = Tries::default();
        let address = |number: u32| IpAddr::from(Ipv4Addr::from(number));
        for number in 0..1024 {
            assert!(tries.take(address(number), start));
        }
        let beyond: usize =
            (2000..2100).map(|number| made(&mut tries, address(number), start)).sum();
        assert_eq!(beyond, 20);
        assert!(tries.take(address(5), start), "who was known has its own");
        let later = start + Duration::from_secs(60);
        assert_eq!(made(&mut tries, address(3000), later), 20);
        assert!(tries.of.len() <= 1024);
    }
}
