//! Bytes as the wire carries them.
//!
//! Invariant: what is too large for one call is refused before it is written out.

use crate::calls::CALL_BYTES_MAX;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::api::Method;
use greenroom_protocol::{AgentAPIError, ErrorCode};

/// Bytes that fit into one call beside its other parameters.
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
        let text = format!("the answer to `{method}` is not as expected: {error}");
        AgentAPIError::new(ErrorCode::RuntimeError, text)
    })
}
