//! Version negotiation (seed 000 §3): only the major version counts.

/// The major version of the protocol that this host implements.
pub const PROTOCOL_VERSION: &str = "1";

/// Whether a peer's `version` is compatible. `1`, `1.4` and `1.4.2` are; anything that is not a version is not.
pub fn is_compatible(version: &str) -> bool {
    let mut parts = version.split('.');
    parts.next() == Some(PROTOCOL_VERSION)
        && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(crate) fn default_version() -> String {
    PROTOCOL_VERSION.to_owned()
}
