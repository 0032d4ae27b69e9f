//! Whether an answer came to its end.
//!
//! Invariant: judges by what was recorded with the result; where nothing was, the answer is whole.

use crate::output::plain;
use greenroom_protocol::{AgentRunResult, Object};

/// Reasons with which an answer ends as it should.
const WHOLE: [&str; 2] = ["stop", "tool_calls"];

/// Why an answer ended before its end, in the word of its model.
pub(crate) fn reason(result: &AgentRunResult) -> Option<String> {
    let message =
        |data: &Object| data.get("message")?.get("metadata")?.get("finish_reason").cloned();
    let told = result.data.get("finish_reason").cloned().or_else(|| message(&result.data))?;
    let told = told.as_str().filter(|reason| !reason.is_empty() && !WHOLE.contains(reason))?;
    Some(plain(told))
}

/// The same for a reader in English.
pub(crate) fn told(reason: &str) -> String {
    match reason {
        "length" => "cut where the model's room for an answer ended (`length`)".to_owned(),
        "content_filter" => "cut by the provider's filter (`content_filter`)".to_owned(),
        other => format!("not brought to its end (`{other}`)"),
    }
}
