//! Google Gemini API.
//!
//! Invariant: a signature is sent back on the part it came with.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "gemini";
