//! Version negotiation (seed 000 §3): the major version decides, the rest informs.

/// The protocol's major version, as spoken by this host.
pub const PROTOCOL_VERSION: &str = "1";

/// Whether a peer that speaks `version` and this side understand each other. `1`, `1.4` and `1.4.2` do;
/// anything that is not a version does not.
pub fn is_compatible(version: &str) -> bool {
    let mut parts = version.split('.');
    parts.next() == Some(PROTOCOL_VERSION)
        && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(crate) fn default_version() -> String {
    PROTOCOL_VERSION.to_owned()
}
