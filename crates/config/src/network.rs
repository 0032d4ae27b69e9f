//! Networks of trusted proxies.

use std::net::IpAddr;
use std::str::FromStr;

/// An address, or all addresses with the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address and not a network such as `10.0.0.0/8`")]
pub struct NotANetwork;

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= whole).ok_or(NotANetwork)?,
            None => whole,
        };
        Ok(Self { address, bits })
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = u32::from(own) ^ u32::from(other);
                differing.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = u128::from(own) ^ u128::from(other);
                differing.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_addresses_with_bits() {
        for text in ["", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "::/129", "example.com", "/8"] {
            assert_eq!(text.parse::<Network>(), Err(NotANetwork), "{text}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains([255, 1, 2, 3].into()) && !all.contains("::1".parse().unwrap()));
        let some: Network = "192.168.4.0/22".parse().unwrap();
        assert!(some.contains([192, 168, 7, 255].into()));
        assert!(!some.contains([192, 168, 8, 0].into()));
    }
}
