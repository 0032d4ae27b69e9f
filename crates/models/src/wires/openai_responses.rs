//! OpenAI Responses.
//!
//! Invariant: nothing is stored at the provider; reasoning is sent back encrypted.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "openai_responses";
