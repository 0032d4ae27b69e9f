//! The error model of seed 000 §9 and the closed set of public error codes.
//!
//! Invariant: this list is complete; each code has a page in `docs/errors/`.

use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a call failed. The same set is used by the runner API and HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    Unauthorized,
    NotFound,
    DeadlineExceeded,
    PayloadTooLarge,
    RateLimited,
    InvalidArgument,
    RuntimeError,
}

impl ErrorCode {
    pub const ALL: [ErrorCode; 7] = [
        ErrorCode::Unauthorized,
        ErrorCode::NotFound,
        ErrorCode::DeadlineExceeded,
        ErrorCode::PayloadTooLarge,
        ErrorCode::RateLimited,
        ErrorCode::InvalidArgument,
        ErrorCode::RuntimeError,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::Unauthorized => "unauthorized",
            ErrorCode::NotFound => "not_found",
            ErrorCode::DeadlineExceeded => "deadline_exceeded",
            ErrorCode::PayloadTooLarge => "payload_too_large",
            ErrorCode::RateLimited => "rate_limited",
            ErrorCode::InvalidArgument => "invalid_argument",
            ErrorCode::RuntimeError => "runtime_error",
        }
    }
}

/// The body of every error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct AgentAPIError {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default)]
    pub retryable: bool,
    #[serde(default)]
    pub details: Object,
}

impl AgentAPIError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let retryable = code == ErrorCode::RateLimited;
        Self { code, message: message.into(), retryable, details: Object::new() }
    }

    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    pub fn detail(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}

/// Codes that the host itself writes into `run.failed`. A runner's own code is kept.
pub mod run_code {
    pub const CANCELLED: &str = "cancelled";
    pub const DEADLINE_EXCEEDED: &str = "deadline_exceeded";
    pub const HOST_INTERRUPTED: &str = "host.interrupted";
    pub const NO_TERMINAL: &str = "runner.no_terminal";
    pub const CRASHED: &str = "runner.crashed";
    pub const UNAVAILABLE: &str = "runner.unavailable";
    pub const PROTOCOL_ERROR: &str = "runner.protocol_error";
    pub const OVERFLOW: &str = "runner.overflow";
    pub const ERROR: &str = "runner.error";
    pub const BUDGET_EXCEEDED: &str = "budget_exceeded";
    /// Prefix of the loop guard's codes.
    pub const LOOP_PREFIX: &str = "loop.";

    pub const ALL: [&str; 10] = [
        CANCELLED,
        DEADLINE_EXCEEDED,
        HOST_INTERRUPTED,
        NO_TERMINAL,
        CRASHED,
        UNAVAILABLE,
        PROTOCOL_ERROR,
        OVERFLOW,
        ERROR,
        BUDGET_EXCEEDED,
    ];
}
