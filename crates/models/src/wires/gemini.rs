//! Google's Gemini API.
//!
//! Invariant: a signature goes back on the part on which it came.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "gemini";
