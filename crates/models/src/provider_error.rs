//! Parses error responses of providers.
//!
//! Invariant: messages are truncated; an exhausted quota is not a rate limit.

use crate::ModelError;
use serde_json::Value;
use std::time::Duration;

const MESSAGE_CHARS_MAX: usize = 500;

/// From a response with an error status.
pub(crate) fn from_status(status: u16, body: &str, retry_after: Option<Duration>) -> ModelError {
    let error = serde_json::from_str::<Value>(body).ok().as_ref().and_then(read);
    let quota =
        error.as_ref().is_some_and(|error| error.kinds.iter().any(|k| k == QUOTA_EXHAUSTED));
    let message = match error {
        Some(error) => error.message,
        None if (300..400).contains(&status) => "redirects are not followed".to_owned(),
        None => body.trim().to_owned(),
    };
    let message = truncate(&message);
    match status {
        429 if !quota => ModelError::RateLimited { message, retry_after },
        _ => ModelError::Rejected { status, message },
    }
}

/// From an event of a stream, if it is an error.
pub(crate) fn in_event(event: &Value) -> Option<ModelError> {
    let error = read(event)?;
    let message = truncate(&error.message);
    let by_kind = error.kinds.iter().find_map(|kind| status_of(kind));
    Some(match by_kind.or(error.code).unwrap_or(500) {
        429 => ModelError::RateLimited { message, retry_after: None },
        status => ModelError::Rejected { status, message },
    })
}

const QUOTA_EXHAUSTED: &str = "insufficient_quota";

/// The HTTP status that corresponds to an error type.
fn status_of(kind: &str) -> Option<u16> {
    Some(match kind {
        "overloaded_error" => 529,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => 429,
        "invalid_request_error" | "invalid_prompt" | "INVALID_ARGUMENT" => 400,
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
        QUOTA_EXHAUSTED => 402,
        _ => return None,
    })
}

struct ErrorBody {
    /// Its error types, most specific first.
    kinds: Vec<String>,
    code: Option<u16>,
    message: String,
}

/// `{"error": {…}}`, `{"error": "…"}`, a list of one of these, or an object of type `error`.
fn read(value: &Value) -> Option<ErrorBody> {
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let error = match value.get("error") {
        Some(error) if !error.is_null() => error,
        _ if value.get("type").and_then(Value::as_str) == Some("error") => value,
        _ if value.get("object").and_then(Value::as_str) == Some("error") => value,
        _ => return None,
    };
    if let Value::String(message) = error {
        return Some(ErrorBody { kinds: Vec::new(), code: None, message: message.clone() });
    }
    let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    let kinds = ["code", "status", "type"].into_iter().filter_map(text).collect();
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code));
    let message = text("message").unwrap_or_else(|| error.to_string());
    Some(ErrorBody { kinds, code, message })
}

fn truncate(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_of_every_wire_are_parsed() {
        let refused = |status, message: &str| {
            Some(ModelError::Rejected { status, message: message.to_owned() })
        };
        let limited = |message: &str| {
            Some(ModelError::RateLimited { message: message.to_owned(), retry_after: None })
        };
        for (event, expected) in [
            (
                json!({"error": {"message": "no", "type": "invalid_request_error", "code": null}}),
                refused(400, "no"),
            ),
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
                refused(529, "busy"),
            ),
            (
                json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}),
                limited("slow"),
            ),
            (
                json!([{"error": {"code": 503, "message": "later", "status": "UNAVAILABLE"}}]),
                refused(503, "later"),
            ),
            (
                json!({"error": {"message": "long", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
                refused(400, "long"),
            ),
            (json!({"error": "model 'x' not found"}), refused(500, "model 'x' not found")),
            (json!({"choices": [], "error": null}), None),
            (json!({"type": "ping"}), None),
        ] {
            assert_eq!(in_event(&event), expected, "{event}");
        }
    }

    #[test]
    fn an_exhausted_quota_is_not_a_rate_limit() {
        let body = r#"{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        let expected = ModelError::Rejected { status: 429, message: "pay".to_owned() };
        assert_eq!(from_status(429, body, None), expected);
        assert!(!expected.is_transient());
    }

    #[test]
    fn an_html_page_is_truncated() {
        let ModelError::Rejected { message, .. } = from_status(502, &"é".repeat(9000), None)
        else {
            panic!("another error");
        };
        assert_eq!(message.chars().count(), 501);
    }
}
