//! OpenAI's chat completions, the wire that most providers and servers speak.
//!
//! Invariant: what only some of them take is sent only to those.

pub(super) mod request;
pub(super) mod stream;

/// Marks opaque data of this wire.
const WIRE: &str = "openai_chat";
