//! Ollama's native chat API.
//!
//! Invariant: thinking is sent back in its own field.

pub(super) mod request;
pub(super) mod stream;
