//! Base64 encoding of bytes.
//!
//! Invariant: bytes that are too large for one call are rejected before they are encoded.

use crate::calls::CALL_BYTES_MAX;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::api::Method;
use greenroom_protocol::{AgentAPIError, ErrorCode};

/// Bytes that fit into one call with its other parameters.
const BYTES_MAX: usize = CALL_BYTES_MAX / 4 * 3 - 64 * 1024;

pub(crate) fn encode(method: Method, bytes: &[u8]) -> Result<String, AgentAPIError> {
    if bytes.len() > BYTES_MAX {
        let text = format!("`{method}` takes at most {BYTES_MAX} bytes, not {}", bytes.len());
        return Err(AgentAPIError::new(ErrorCode::PayloadTooLarge, text));
    }
    Ok(STANDARD.encode(bytes))
}

pub(crate) fn decode(method: Method, text: &str) -> Result<Vec<u8>, AgentAPIError> {
    STANDARD.decode(text).map_err(|error| {
        let text = format!("unexpected response to `{method}`: {error}");
        AgentAPIError::new(ErrorCode::RuntimeError, text)
    })
}
