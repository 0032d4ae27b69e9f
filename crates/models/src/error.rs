//! Model errors, worded for runners and operators.
//!
//! Invariant: no message contains a key or a header; provider messages are truncated.

use greenroom_protocol::{AgentAPIError, ErrorCode};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The request is not possible with this model.
    #[error("{0}")]
    InvalidRequest(String),
    /// The provider rejected it: a wrong key, an unknown model, an invalid request.
    #[error("the provider returned {status}: {message}")]
    Rejected { status: u16, message: String },
    /// Too many requests, by our own limit or the provider's.
    #[error("rate limited: {message}")]
    RateLimited { message: String, retry_after: Option<Duration> },
    /// It could not be reached, or the connection broke.
    #[error("the provider cannot be reached: {0}")]
    Unavailable(String),
    /// Its response does not follow the wire format.
    #[error("invalid response from the provider: {0}")]
    InvalidResponse(String),
    #[error("the provider's response is larger than {0} bytes")]
    TooLarge(usize),
    /// Nothing arrived within the idle timeout.
    #[error("the provider sent nothing for {} s", .0.as_secs())]
    IdleTimeout(Duration),
    #[error("the run's deadline has passed")]
    DeadlineExceeded,
    #[error("this model does not support `{0}`")]
    Unsupported(&'static str),
}

impl ModelError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Unavailable(_)
                | Self::IdleTimeout(_)
                | Self::InvalidResponse(_)
        ) || matches!(self, Self::Rejected { status, .. } if *status >= 500)
    }

    /// Whether the provider or the connection to it caused the error.
    pub fn is_provider_error(&self) -> bool {
        match self {
            Self::InvalidRequest(_) | Self::DeadlineExceeded | Self::Unsupported(_) => false,
            Self::Rejected { .. }
            | Self::RateLimited { .. }
            | Self::Unavailable(_)
            | Self::InvalidResponse(_)
            | Self::TooLarge(_)
            | Self::IdleTimeout(_) => true,
        }
    }

    pub fn to_api(&self) -> AgentAPIError {
        let code = match self {
            Self::InvalidRequest(_) | Self::Unsupported(_) => ErrorCode::InvalidArgument,
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::DeadlineExceeded => ErrorCode::DeadlineExceeded,
            Self::TooLarge(_) => ErrorCode::PayloadTooLarge,
            _ => ErrorCode::RuntimeError,
        };
        let mut error = AgentAPIError::new(code, self.to_string());
        if let Self::Rejected { status, .. } = self {
            error = error.detail("status", *status);
        }
        if let Self::RateLimited { retry_after: Some(after), .. } = self {
            let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            error = error.detail("retry_after_ms", after_ms);
        }
        match self.is_transient() {
            true => error.retryable(),
            false => error,
        }
    }
}
