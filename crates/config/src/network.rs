//! Networks of trusted proxies, and the addresses that are private.

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

/// Whether an address is anything but global unicast.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, third, _] = v4.octets();
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_documentation()
                || first == 0
                || (first == 100 && (64..128).contains(&second))
                || (first == 192 && second == 0 && third == 0)
                || (first == 198 && (18..20).contains(&second))
                || first >= 224
        }
        IpAddr::V6(v6) => {
            let [first, second, ..] = v6.segments();
            // 2000::/3 without documentation, 6to4 (which holds an IPv4 address) and 2001::/23.
            (first & 0xe000) != 0x2000
                || first == 0x2002
                || (first == 0x2001 && (second == 0xdb8 || second < 0x200))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_detected() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.1.1",
            "100.64.0.1",
            "::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "fe80::1",
            "2001:db8::1",
            "0.0.0.0",
            "192.0.0.8",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        for text in
            ["1.1.1.1", "192.0.1.1", "223.255.255.1", "2606:4700::1111", "2001:4860:4860::8888"]
        {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }

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
