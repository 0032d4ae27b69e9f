//! Why a model did not answer, in words that a runner and an operator can act on.
//!
//! Invariant: no message holds a key or a header; texts of providers are cut short.

use greenroom_protocol::{AgentAPIError, ErrorCode};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The request cannot be put to this model.
    #[error("{0}")]
    InvalidRequest(String),
    /// The provider refused it: a wrong key, an unknown model, a request it does not like.
    #[error("the provider answered {status}: {message}")]
    Refused { status: u16, message: String },
    /// Too many requests, here or at the provider.
    #[error("the provider takes no more requests now: {message}")]
    RateLimited { message: String, retry_after: Option<Duration> },
    /// It could not be reached, or broke off.
    #[error("the provider cannot be reached: {0}")]
    Unavailable(String),
    /// It answered with something that is none of its wire's.
    #[error("the provider's answer cannot be read: {0}")]
    Garbled(String),
    #[error("the provider's answer is larger than {0} bytes")]
    TooLarge(usize),
    /// Nothing came for too long.
    #[error("the provider was silent for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the run's time is up")]
    DeadlineExceeded,
    #[error("`{0}` is not something this model does")]
    Unsupported(&'static str),
}

impl ModelError {
    /// Whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Unavailable(_) | Self::Silent(_) | Self::Garbled(_)
        ) || matches!(self, Self::Refused { status, .. } if *status >= 500)
    }

    /// Whether the provider, or the way to it, is to blame.
    pub fn is_providers(&self) -> bool {
        match self {
            Self::InvalidRequest(_) | Self::DeadlineExceeded | Self::Unsupported(_) => false,
            Self::Refused { .. }
            | Self::RateLimited { .. }
            | Self::Unavailable(_)
            | Self::Garbled(_)
            | Self::TooLarge(_)
            | Self::Silent(_) => true,
        }
    }

    /// As the call is answered that asked for it.
    pub fn to_api(&self) -> AgentAPIError {
        let code = match self {
            Self::InvalidRequest(_) | Self::Unsupported(_) => ErrorCode::InvalidArgument,
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::DeadlineExceeded => ErrorCode::DeadlineExceeded,
            Self::TooLarge(_) => ErrorCode::PayloadTooLarge,
            _ => ErrorCode::RuntimeError,
        };
        let mut error = AgentAPIError::new(code, self.to_string());
        if let Self::Refused { status, .. } = self {
            error = error.detail("status", *status);
        }
        if let Self::RateLimited { retry_after: Some(after), .. } = self {
            let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            error = error.detail("retry_after_ms", after_ms);
        }
        match self.is_passing() {
            true => error.retryable(),
            false => error,
        }
    }
}
