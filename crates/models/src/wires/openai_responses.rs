//! OpenAI's Responses.
//!
//! Invariant: nothing is kept at the provider; reasoning goes back and forth encrypted.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "openai_responses";
