//! Whether an answer is complete.
//!
//! Invariant: decided by the recorded finish reason; an answer without one is complete.

use crate::output::plain;
use greenroom_protocol::{AgentRunResult, Object};

/// Finish reasons of complete answers.
const WHOLE: [&str; 2] = ["stop", "tool_calls"];

/// The finish reason of an incomplete answer, as the model gave it.
pub(crate) fn reason(result: &AgentRunResult) -> Option<String> {
    let message =
        |data: &Object| data.get("message")?.get("metadata")?.get("finish_reason").cloned();
    let reason = result.data.get("finish_reason").cloned().or_else(|| message(&result.data))?;
    let reason = reason.as_str().filter(|reason| !reason.is_empty() && !WHOLE.contains(reason))?;
    Some(plain(reason))
}

/// The finish reason in English.
pub(crate) fn describe(reason: &str) -> String {
    match reason {
        "length" => "cut off at the maximum output length (`length`)".to_owned(),
        "content_filter" => {
            "cut off by the content filter of the provider (`content_filter`)".to_owned()
        }
        other => format!("incomplete (`{other}`)"),
    }
}
