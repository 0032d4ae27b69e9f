//! Errors of the model gateway, in the shape of the client's wire.
//!
//! Invariant: the status says whether the same request may succeed later; a provider's refusal of the host's own
//! key is never the client's 401.

use crate::response::Problem;
use crate::run_access::Denied;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use greenroom_models::serve::gateway::{Wire, error_body};
use greenroom_protocol::error::run_code;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Failure {
    wire: Wire,
    status: StatusCode,
    message: String,
    /// OpenAI's code.
    code: Option<&'static str>,
    retry: Retry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// As the status says.
    ByStatus,
    AfterSeconds(u64),
    Never,
}

impl Failure {
    pub(super) fn new(wire: Wire, status: StatusCode, message: impl Into<String>) -> Self {
        Self { wire, status, message: message.into(), code: None, retry: Retry::ByStatus }
    }

    pub(super) fn denied(wire: Wire, denied: Denied) -> Self {
        let code = Some("invalid_api_key");
        Self { code, ..Self::new(wire, StatusCode::UNAUTHORIZED, denied.0) }
    }

    pub(super) fn no_model(wire: Wire, message: String) -> Self {
        Self { code: Some("model_not_found"), ..Self::new(wire, StatusCode::NOT_FOUND, message) }
    }

    pub(super) fn internal(wire: Wire) -> Self {
        Self::new(wire, StatusCode::INTERNAL_SERVER_ERROR, "the request failed")
    }

    /// A body that could not be read.
    pub(super) fn of_problem(wire: Wire, problem: &Problem) -> Self {
        Self::new(wire, problem.status(), problem.message())
    }

    /// A call that the proxy or the model refused.
    pub(super) fn of_call(wire: Wire, error: &AgentAPIError) -> Self {
        let reason = error.details.get("reason").and_then(Value::as_str).unwrap_or_default();
        let rejected = error.details.get("status").and_then(Value::as_u64);
        let plain = |status| Self::new(wire, status, error.message.clone());
        match error.code {
            ErrorCode::Unauthorized if reason == "not_granted" => plain(StatusCode::FORBIDDEN),
            ErrorCode::Unauthorized => Self {
                code: Some("invalid_api_key"),
                retry: Retry::Never,
                ..plain(StatusCode::UNAUTHORIZED)
            },
            ErrorCode::NotFound => Self::no_model(wire, error.message.clone()),
            ErrorCode::InvalidArgument => plain(StatusCode::BAD_REQUEST),
            ErrorCode::PayloadTooLarge => plain(StatusCode::PAYLOAD_TOO_LARGE),
            ErrorCode::RateLimited => {
                let wait_ms = error.details.get("retry_after_ms").and_then(Value::as_u64);
                let wait_s = wait_ms.unwrap_or(1000).div_ceil(1000).max(1);
                Self {
                    code: Some("rate_limit_exceeded"),
                    retry: Retry::AfterSeconds(wait_s),
                    ..plain(StatusCode::TOO_MANY_REQUESTS)
                }
            }
            ErrorCode::DeadlineExceeded => plain(StatusCode::GATEWAY_TIMEOUT),
            ErrorCode::RuntimeError if reason == run_code::BUDGET_EXCEEDED => Self {
                code: Some("insufficient_quota"),
                retry: Retry::Never,
                ..plain(match wire {
                    Wire::Anthropic => StatusCode::PAYMENT_REQUIRED,
                    _ => StatusCode::TOO_MANY_REQUESTS,
                })
            },
            ErrorCode::RuntimeError => plain(match rejected {
                Some(400 | 422) => StatusCode::BAD_REQUEST,
                Some(413) => StatusCode::PAYLOAD_TOO_LARGE,
                _ if error.retryable => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::BAD_GATEWAY,
            }),
        }
    }

    pub(super) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = error_body(self.wire, self.status.as_u16(), &self.message, self.code);
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        match self.retry {
            Retry::ByStatus => {}
            Retry::AfterSeconds(seconds) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            // Read by the clients of OpenAI and of Anthropic.
            Retry::Never => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(wire: Wire, error: AgentAPIError) -> (u16, Option<&'static str>, Retry) {
        let failure = Failure::of_call(wire, &error);
        (failure.status(), failure.code, failure.retry)
    }

    #[test]
    fn an_error_has_the_status_that_its_clients_act_on() {
        let error = |code| AgentAPIError::new(code, "no");
        let limited = error(ErrorCode::RateLimited).detail("retry_after_ms", 1500);
        let quota = Some("insufficient_quota");
        let broke = || error(ErrorCode::RuntimeError).detail("reason", "budget_exceeded");
        let rejected = |status: u64| error(ErrorCode::RuntimeError).detail("status", status);
        for (wire, given, expected) in [
            (Wire::OpenAiChat, limited, (429, Some("rate_limit_exceeded"), Retry::AfterSeconds(2))),
            (Wire::OpenAiChat, broke(), (429, quota, Retry::Never)),
            (Wire::Anthropic, broke(), (402, quota, Retry::Never)),
            (Wire::Gemini, rejected(400), (400, None, Retry::ByStatus)),
            (Wire::Gemini, rejected(401), (502, None, Retry::ByStatus)),
            (Wire::Gemini, rejected(503).retryable(), (503, None, Retry::ByStatus)),
            (
                Wire::Anthropic,
                error(ErrorCode::Unauthorized).detail("reason", "not_granted"),
                (403, None, Retry::ByStatus),
            ),
            (
                Wire::Anthropic,
                error(ErrorCode::Unauthorized),
                (401, Some("invalid_api_key"), Retry::Never),
            ),
            (
                Wire::OpenAiResponses,
                error(ErrorCode::NotFound),
                (404, Some("model_not_found"), Retry::ByStatus),
            ),
        ] {
            assert_eq!(failure(wire, given), expected);
        }
    }
}
