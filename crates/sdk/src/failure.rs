//! How a run fails: a code, a message, and whether a retry may help.
//!
//! Invariant: `?` converts any error to a failure; an error of the host keeps its code.

use greenroom_protocol::AgentAPIError;
use greenroom_protocol::error::run_code;
use greenroom_protocol::payload::RunFailed;
use std::error::Error;

/// A failed run. Deliberately not a `std::error::Error`, so that every error converts to it with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    pub code: String,
    pub message: String,
    pub retryable: bool,
}

impl RunFailure {
    /// A failure with a code of the runner, such as `weather.no_station`.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false }
    }

    /// A failure with the generic code `runner.error`.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(run_code::ERROR, message)
    }

    pub fn cancelled() -> Self {
        Self::new(run_code::CANCELLED, "the run was cancelled")
    }

    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    pub(crate) fn into_payload(self) -> RunFailed {
        RunFailed {
            code: self.code,
            message: Some(self.message),
            error: None,
            retryable: self.retryable,
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for RunFailure {
    fn from(error: E) -> Self {
        let any: &(dyn Error + 'static) = &error;
        if let Some(api) = any.downcast_ref::<AgentAPIError>() {
            let failure = RunFailure::new(api.code.as_str(), &api.message);
            return RunFailure { retryable: api.retryable, ..failure };
        }
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        RunFailure::error(message)
    }
}
