//! The URL that signs a person in.
//!
//! Invariant: the code is in the fragment (after `#`), which browsers do not send, and is never written to the
//! system journal, which others can read.

use greenroom_config::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(crate) fn url(host: &str, code: &str) -> String {
    format!("{}/#code={code}", host.trim_end_matches('/'))
}

/// Whether standard error is the system journal. Child processes inherit the variable, so it identifies the stream.
pub(crate) fn is_journal() -> bool {
    let own = rustix::fs::fstat(std::io::stderr());
    own.is_ok_and(|own| {
        let own = format!("{}:{}", own.st_dev, own.st_ino);
        env::get(env::JOURNAL_STREAM).is_some_and(|named| named == own)
    })
}

/// The address for a browser on this machine; a wildcard address becomes loopback.
pub(crate) fn reachable(mut listening: SocketAddr) -> SocketAddr {
    if listening.ip().is_unspecified() {
        listening.set_ip(match listening.is_ipv4() {
            true => IpAddr::V4(Ipv4Addr::LOCALHOST),
            false => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    listening
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_one_that_a_browser_can_go_to() {
        let at = |text: &str| format!("http://{}", reachable(text.parse().unwrap()));
        assert_eq!(url(&at("127.0.0.1:8700"), "c0"), "http://127.0.0.1:8700/#code=c0");
        assert_eq!(url(&at("0.0.0.0:80"), "c0"), "http://127.0.0.1:80/#code=c0");
        assert_eq!(url(&at("[::]:80"), "c0"), "http://[::1]:80/#code=c0");
        assert_eq!(url("https://bots.example.com/", "c0"), "https://bots.example.com/#code=c0");
    }
}
