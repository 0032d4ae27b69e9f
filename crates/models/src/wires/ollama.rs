//! Ollama's own chat API.
//!
//! Invariant: thinking goes back in the field in which it came.

pub(super) mod request;
pub(super) mod stream;
