//! Anthropic's Messages.
//!
//! Invariant: thinking goes back with its signature, as it came, or not at all.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "anthropic";
