//! OpenAI chat completions, the wire that most providers and servers use.
//!
//! Invariant: fields that only some providers accept are sent only to those.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "openai_chat";
