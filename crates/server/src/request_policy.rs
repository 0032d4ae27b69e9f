//! Hosts, origins and proxies that are trusted, and a request as its client sent it.
//!
//! Invariant: `X-Forwarded-*` headers are used only from trusted proxies; for every other peer the connection
//! itself determines client address and scheme.

use crate::response::Problem;
use axum::http::header::HOST;
use axum::http::{HeaderMap, Uri};
use greenroom_config::Network;
use std::net::IpAddr;

/// May change while the host runs.
#[derive(Debug, Clone, Default)]
pub struct RequestPolicy {
    /// Values of `Host` that are accepted besides loopback names and IP addresses.
    pub allowed_hosts: Vec<String>,
    /// Values of `Origin` that are accepted besides the host's own.
    pub allowed_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub trusted_proxies: Vec<Network>,
}

impl RequestPolicy {
    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Whether the connection itself is encrypted.
    pub(crate) scheme: Scheme,
}

/// A request as its client sent it, before any trusted proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientView {
    pub(crate) client: IpAddr,
    pub(crate) scheme: Scheme,
    /// Name and port as in `Host`.
    pub(crate) host: String,
}

impl ClientView {
    pub(crate) fn new(
        policy: &RequestPolicy,
        peer: Peer,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let host = named_host(uri, headers)?;
        let Peer { address, scheme } = peer;
        if !policy.trusts(address) {
            return Ok(Self { client: address, scheme, host: host.to_owned() });
        }
        let scheme = match last(headers, "x-forwarded-proto") {
            Some(proto) if proto.eq_ignore_ascii_case("https") => Scheme::Https,
            Some(proto) if proto.eq_ignore_ascii_case("http") => Scheme::Http,
            _ => scheme,
        };
        let host = last(headers, "x-forwarded-host").unwrap_or(host).to_owned();
        Ok(Self { client: client(policy, address, headers), scheme, host })
    }
}

fn named_host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
    let mut given = headers.get_all(HOST).iter().map(|value| value.to_str().unwrap_or_default());
    let host = given.next().or_else(|| uri.authority().map(|authority| authority.as_str()));
    let host = host.ok_or_else(|| Problem::invalid("`Host` is missing"))?;
    let others = given.chain(uri.authority().map(|authority| authority.as_str()));
    if others.into_iter().any(|other| !other.eq_ignore_ascii_case(host)) {
        return Err(Problem::invalid("the request has several `Host` values"));
    }
    Ok(host)
}

/// The last address before the trusted proxies: each of them appends the address it was called from.
fn client(policy: &RequestPolicy, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut client = peer;
    for value in values(headers, "x-forwarded-for").into_iter().rev() {
        let Some(address) = address(value) else { break };
        client = address;
        if !policy.trusts(client) {
            break;
        }
    }
    client
}

/// Some proxies add the port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(text);
    let parsed = bare.parse().ok();
    parsed.or_else(|| text.parse().ok().map(|socket: std::net::SocketAddr| socket.ip()))
}

/// The value that the nearest proxy added.
fn last<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    values(headers, name).into_iter().next_back()
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let each = lists.flat_map(|list| list.split(',')).map(str::trim);
    each.filter(|value| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn seen(peer: &str, headers: &[(&str, &str)]) -> (String, Scheme, String) {
        let trusted = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"];
        let policy = RequestPolicy {
            trusted_proxies: trusted.iter().map(|text| text.parse().unwrap()).collect(),
            ..RequestPolicy::default()
        };
        let peer = Peer { address: peer.parse().unwrap(), scheme: Scheme::Http };
        let host = [("host", "inner:8700")];
        let headers = host.iter().chain(headers).map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        });
        let uri = Uri::from_static("/");
        let outside = ClientView::new(&policy, peer, &uri, &headers.collect()).unwrap();
        (outside.client.to_string(), outside.scheme, outside.host)
    }

    #[test]
    fn forwarded_headers_count_from_trusted_proxies_only() {
        let forwarded = [
            ("x-forwarded-for", "203.0.113.7, 10.1.2.3"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "bots.example.com"),
        ];
        let expected = ("203.0.113.7".to_owned(), Scheme::Https, "bots.example.com".to_owned());
        for peer in ["127.0.0.1", "10.9.9.9", "::ffff:10.9.9.9", "fd00::1"] {
            assert_eq!(seen(peer, &forwarded), expected, "{peer}");
        }
        for peer in ["127.0.0.2", "11.0.0.1", "fe80::1"] {
            let own = (peer.to_owned(), Scheme::Http, "inner:8700".to_owned());
            assert_eq!(seen(peer, &forwarded), own, "{peer}");
        }
    }

    #[test]
    fn a_client_cannot_put_an_address_in_front_of_its_own() {
        for (forwarded, client) in [
            ("1.2.3.4, 203.0.113.7", "203.0.113.7"),
            ("10.0.0.1, 203.0.113.7, 10.0.0.2, 127.0.0.1", "203.0.113.7"),
            ("10.0.0.1, 10.0.0.2", "10.0.0.1"),
            ("203.0.113.7:4711", "203.0.113.7"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("nonsense, 10.0.0.3", "10.0.0.3"),
            ("nonsense", "127.0.0.1"),
            ("", "127.0.0.1"),
        ] {
            assert_eq!(
                seen("127.0.0.1", &[("x-forwarded-for", forwarded)]).0,
                client,
                "{forwarded}"
            );
        }
        let two = [("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "203.0.113.7")];
        assert_eq!(seen("127.0.0.1", &two).0, "203.0.113.7");
    }

    #[test]
    fn the_nearest_proxy_determines_the_scheme() {
        let scheme = |proto| seen("127.0.0.1", &[("x-forwarded-proto", proto)]).1;
        assert_eq!(scheme("HTTPS"), Scheme::Https);
        assert_eq!(scheme("http, https"), Scheme::Https);
        assert_eq!(scheme("https, http"), Scheme::Http);
        assert_eq!(scheme("ftp"), Scheme::Http);
    }
}
