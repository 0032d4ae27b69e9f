//! gzip: whether a client accepts it, and decompression for those that do not.
//!
//! Invariant: only files embedded in the binary are decompressed, so their size is bounded.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use flate2::read::GzDecoder;
use std::io::{self, Read};

/// Whether `Accept-Encoding` names gzip or `*` with a weight above 0.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
    let named = |name: &str| {
        codings.iter().find_map(|coding| {
            let (own, weight) = coding.split_once(';').unwrap_or((coding, ""));
            own.trim().eq_ignore_ascii_case(name).then(|| !is_excluded(weight))
        })
    };
    named("gzip").or_else(|| named("*")).unwrap_or(false)
}

fn is_excluded(weight: &str) -> bool {
    let weight = weight.trim();
    let weight = weight.strip_prefix("q=").or_else(|| weight.strip_prefix("Q="));
    weight.is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0))
}

pub(super) fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut decompressed = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut decompressed)?;
    Ok(decompressed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn accepts(list: &str) -> bool {
        let value = HeaderValue::from_str(list).unwrap();
        accepts_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, value)]))
    }

    #[test]
    fn gzip_is_negotiated() {
        for list in ["gzip", "br, GZIP", "gzip;q=0.1", "gzip; q=1.0, br", "*", "deflate, *;q=0.5"] {
            assert!(accepts(list), "{list}");
        }
        for list in
            ["", "br", "identity", "gzip;q=0", "gzip; q=0.0", "*;q=0", "*, gzip;q=0", "xgzip"]
        {
            assert!(!accepts(list), "{list}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
