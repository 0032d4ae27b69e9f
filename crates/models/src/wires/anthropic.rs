//! Anthropic Messages.
//!
//! Invariant: thinking is sent back with its signature, unchanged, or not at all.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "anthropic";
