//! What a process may reach over the network: everything, nothing, or a list of `host:port`.
//!
//! Invariant: a destination has exactly one port; a name never stands for an address, nor an address for a name.

use super::reader::{Value, clean};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use toml::de::DeValue;

const HINT: &str =
    "write `true`, `false`, or a list such as `[\"api.example.com:443\", \"*.example.org:443\"]`";
/// Longest name of the domain name system.
const NAME_CHARS_MAX: usize = 253;

/// `network = true | false | ["host:port", …]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkAccess {
    All,
    None,
    /// These, through the host's proxy.
    Only(Vec<Destination>),
}

/// One `host:port` of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    pub host: DestinationHost,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DestinationHost {
    Address(IpAddr),
    /// In lower case, without a final dot.
    Name(String),
    /// `*.example.org`: every name below `example.org`.
    Below(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not of the form `host:port`")]
pub struct NotADestination;

impl Destination {
    /// Whether it covers this host, a name or an address as text.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        self.port == port
            && match (&self.host, address) {
                (DestinationHost::Address(own), Some(address)) => {
                    own.to_canonical() == address.to_canonical()
                }
                (DestinationHost::Name(own), None) => *own == name,
                (DestinationHost::Below(own), None) => name
                    .strip_suffix(own.as_str())
                    .and_then(|rest| rest.strip_suffix('.'))
                    .is_some_and(|label| !label.is_empty()),
                _ => false,
            }
    }
}

impl FromStr for Destination {
    type Err = NotADestination;

    fn from_str(text: &str) -> Result<Self, NotADestination> {
        let (host, port) = text.rsplit_once(':').ok_or(NotADestination)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or(NotADestination)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let address: Option<IpAddr> = bracketed.unwrap_or(host).parse().ok();
        let host = match (address, bracketed, host.strip_prefix("*.")) {
            (Some(address @ IpAddr::V6(_)), Some(_), _) => DestinationHost::Address(address),
            (Some(address @ IpAddr::V4(_)), None, _) => DestinationHost::Address(address),
            (None, None, Some(parent)) => DestinationHost::Below(name(parent)?),
            (None, None, None) => DestinationHost::Name(name(host)?),
            _ => return Err(NotADestination),
        };
        Ok(Self { host, port })
    }
}

fn name(text: &str) -> Result<String, NotADestination> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    // A last label of digits would be an address that was written in another way.
    let is_number = name
        .rsplit('.')
        .next()
        .is_some_and(|label| label.starts_with("0x") || label.chars().all(|c| c.is_ascii_digit()));
    let fits = name.len() <= NAME_CHARS_MAX && !is_number && name.split('.').all(is_label);
    if fits { Ok(name) } else { Err(NotADestination) }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            DestinationHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            DestinationHost::Address(address) => write!(f, "{address}:{}", self.port),
            DestinationHost::Name(name) => write!(f, "{name}:{}", self.port),
            DestinationHost::Below(parent) => write!(f, "*.{parent}:{}", self.port),
        }
    }
}

impl Serialize for Destination {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Destination {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| {
            serde::de::Error::custom(format!("`{}` is not of the form `host:port`", clean(&text)))
        })
    }
}

/// As in the manifest of a module.
impl<'de> Deserialize<'de> for NetworkAccess {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AccessVisitor)
    }
}

struct AccessVisitor;

impl<'de> serde::de::Visitor<'de> for AccessVisitor {
    type Value = NetworkAccess;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`true`, `false` or a list of `host:port`")
    }

    fn visit_bool<E>(self, all: bool) -> Result<NetworkAccess, E> {
        Ok(if all { NetworkAccess::All } else { NetworkAccess::None })
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(
        self,
        mut list: A,
    ) -> Result<NetworkAccess, A::Error> {
        let mut destinations = Vec::new();
        while let Some(destination) = list.next_element()? {
            destinations.push(destination);
        }
        Ok(NetworkAccess::listed(destinations))
    }
}

impl NetworkAccess {
    /// An empty list means the same as `false`.
    fn listed(destinations: Vec<Destination>) -> Self {
        if destinations.is_empty() { Self::None } else { Self::Only(destinations) }
    }

    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        match value.value {
            DeValue::Boolean(true) => Some(Self::All),
            DeValue::Boolean(false) => Some(Self::None),
            DeValue::Array(_) => value.list(destination).map(Self::listed),
            _ => value.fail(format!("`{}` is not a network access", value.path), HINT),
        }
    }
}

impl fmt::Display for NetworkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("every address"),
            Self::None => f.write_str("only the host"),
            Self::Only(list) => {
                f.write_str("only the host and ")?;
                for (index, destination) in list.iter().enumerate() {
                    write!(f, "{}{destination}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

fn destination(value: &Value<'_>) -> Option<Destination> {
    let text = value.filled_text()?;
    match text.parse() {
        Ok(destination) => Some(destination),
        Err(NotADestination) => {
            value.fail(format!("`{}` is not of the form `host:port`", clean(text)), HINT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_covers_its_host_and_port_only() {
        let cases = [
            ("api.example.com:443", "API.example.com.", 443, true),
            ("api.example.com:443", "api.example.com", 80, false),
            ("api.example.com:443", "x.api.example.com", 443, false),
            ("*.example.org:443", "a.b.example.org", 443, true),
            ("*.example.org:443", "example.org", 443, false),
            ("*.example.org:443", ".example.org", 443, false),
            ("*.example.org:443", "badexample.org", 443, false),
            ("10.0.0.5:5432", "10.0.0.5", 5432, true),
            ("10.0.0.5:5432", "::ffff:10.0.0.5", 5432, true),
            ("10.0.0.5:5432", "10.0.0.6", 5432, false),
            ("[::1]:80", "[0:0::1]", 80, true),
            ("[::1]:80", "localhost", 80, false),
        ];
        for (entry, host, port, expected) in cases {
            let entry: Destination = entry.parse().unwrap();
            assert_eq!(entry.covers(host, port), expected, "{entry} {host}:{port}");
        }
    }

    #[test]
    fn what_is_not_a_host_with_a_port_is_refused() {
        for text in [
            "",
            "example.com",
            "example.com:",
            "example.com:0",
            "example.com:65536",
            ":443",
            "*:443",
            "*.:443",
            "a.*.com:443",
            "https://example.com:443",
            "::1:80",
            "[10.0.0.1]:80",
            "[example.com]:80",
            "exa mple.com:80",
            "user@example.com:443",
            "1:80",
            "10.1:80",
            "0x7f.1:80",
            "127.0.0.0x1:80",
            "a..b:80",
        ] {
            assert_eq!(text.parse::<Destination>(), Err(NotADestination), "{text}");
        }
        for text in ["a:1", "localhost:8080", "*.example.org:443", "[::1]:80", "10.0.0.5:5432"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
    }
}
