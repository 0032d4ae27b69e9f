//! Files are carried as gzip: who takes them so, and what the others get.
//!
//! Invariant: unpacking is for files that the program itself carries, so their size is known to be sane.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use flate2::read::GzDecoder;
use std::io::{self, Read};

/// Whether a caller names gzip, or everything, and does not refuse it.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
    let named = |name: &str| {
        codings.iter().find_map(|coding| {
            let (own, weight) = coding.split_once(';').unwrap_or((coding, ""));
            own.trim().eq_ignore_ascii_case(name).then(|| !is_refused(weight))
        })
    };
    named("gzip").or_else(|| named("*")).unwrap_or(false)
}

fn is_refused(weight: &str) -> bool {
    let weight = weight.trim();
    let weight = weight.strip_prefix("q=").or_else(|| weight.strip_prefix("Q="));
    weight.is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0))
}

pub(super) fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn takes(list: &str) -> bool {
        let value = HeaderValue::from_str(list).unwrap();
        takes_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, value)]))
    }

    #[test]
    fn gzip_is_for_those_who_take_it() {
        for list in ["gzip", "br, GZIP", "gzip;q=0.1", "gzip; q=1.0, br", "*", "deflate, *;q=0.5"] {
            assert!(takes(list), "{list}");
        }
        for list in
            ["", "br", "identity", "gzip;q=0", "gzip; q=0.0", "*;q=0", "*, gzip;q=0", "xgzip"]
        {
            assert!(!takes(list), "{list}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
