//! Responses: success as JSON, every error in one shape. The only place where errors are mapped to a status.
//!
//! Invariant: an error message is bounded and reveals no internals; those go to the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use greenroom_host::Refusal;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::StoreError;
use serde::Serialize;
use serde_json::json;

/// Longest error message in characters; it may repeat what the caller sent.
const MESSAGE_CHARS_MAX: usize = 500;

/// An error response.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    error: AgentAPIError,
    retry_after_s: Option<u64>,
}

pub(crate) type ApiResult = Result<Response, Problem>;

impl Problem {
    pub(crate) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            message.truncate(end);
            message.push('…');
        }
        Self { status, error: AgentAPIError::new(code, message), retry_after_s: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArgument, message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, format!("there is no such {what}"))
    }

    pub(crate) fn unauthenticated() -> Self {
        Self::unauthorized(
            "a valid bearer token is needed: `Authorization: Bearer TOKEN`, or a session",
        )
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, message)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }

    pub(crate) fn is_unauthorized(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    pub(crate) fn rate_limited(message: impl Into<String>, retry_after_s: u64) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let mut problem = Self::new(status, ErrorCode::RateLimited, message);
        problem.retry_after_s = Some(retry_after_s);
        problem
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::Unauthorized, message)
    }

    pub(crate) fn foreign_cursor() -> Self {
        Self::invalid("`cursor` does not belong to this list")
    }

    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let message = format!("the body is larger than the {bytes_max} bytes allowed");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::PayloadTooLarge, message)
    }

    pub(crate) fn internal() -> Self {
        let message = "the request failed";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::RuntimeError, message)
    }

    pub(crate) fn detail(mut self, key: &str, value: &str) -> Self {
        self.error.details.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn unavailable(message: &str) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let mut problem = Self::new(status, ErrorCode::RuntimeError, message);
        problem.error.retryable = true;
        problem.retry_after_s = Some(1);
        problem
    }
}

/// The `reason` detail that identifies an unreachable database.
const DATABASE_UNAVAILABLE: &str = "database_unavailable";
/// The same for one that is damaged, and for one whose files or tables do not exist any more.
const DATABASE_DAMAGED: &str = "database_damaged";
const DATABASE_GONE: &str = "database_gone";

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "store error");
        match error {
            StoreError::Down(_) => {
                Self::unavailable(&error.to_string()).detail("reason", DATABASE_UNAVAILABLE)
            }
            StoreError::Full => Self::unavailable("the store is full"),
            // What exactly is wrong is in the log and in `greenroom doctor`.
            StoreError::Damaged(_) => {
                Self::unavailable("the database is damaged").detail("reason", DATABASE_DAMAGED)
            }
            StoreError::Gone(_) => {
                Self::unavailable("the database is gone").detail("reason", DATABASE_GONE)
            }
            StoreError::Busy | StoreError::Unavailable(_) | StoreError::Lost(_) => {
                Self::unavailable("the store is not available")
            }
            StoreError::Refused(_)
            | StoreError::NewerSchema { .. }
            | StoreError::Moved { .. }
            | StoreError::Unsound(_)
            | StoreError::UnreleasedSchema => Self::internal(),
        }
    }
}

impl From<AgentAPIError> for Problem {
    fn from(error: AgentAPIError) -> Self {
        let status = match error.code {
            ErrorCode::Unauthorized => StatusCode::FORBIDDEN,
            ErrorCode::NotFound => StatusCode::NOT_FOUND,
            ErrorCode::DeadlineExceeded => StatusCode::REQUEST_TIMEOUT,
            ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::InvalidArgument if error.details.contains_key("reason") => {
                StatusCode::CONFLICT
            }
            ErrorCode::InvalidArgument => StatusCode::BAD_REQUEST,
            ErrorCode::RuntimeError if error.retryable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::RuntimeError => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { error, ..Self::new(status, ErrorCode::RuntimeError, "") }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::Invalid(_) => Self::invalid(message),
            Refusal::Conflict
            | Refusal::Tie(_)
            | Refusal::Gone
            | Refusal::Answered
            | Refusal::Expired => {
                Self::new(StatusCode::CONFLICT, ErrorCode::InvalidArgument, message)
            }
            Refusal::ForeignConversation => Self::not_found("conversation"),
            Refusal::UnknownAgent(_) => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
            }
            Refusal::NotAllowed(_) | Refusal::OtherActor(_) => Self::forbidden(message),
            Refusal::Busy => Self::rate_limited(message, 1),
            Refusal::Stopping => Self::unavailable(&message),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": self.error}))).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

pub(crate) fn ok(body: impl Serialize) -> ApiResult {
    Ok(Json(body).into_response())
}
