//! How a command ends: its exit code, and the error message.
//!
//! Invariant: one message, its causes, one hint; exit codes are those that `greenroom --help` lists.

use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde_json::{Value, json};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Failure = 1,
    /// Invalid arguments or configuration.
    Usage = 2,
    /// The object does not exist, or no host answers.
    NotFound = 3,
    /// The run that was followed did not complete.
    RunFailed = 4,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

pub type Outcome = Result<Exit, Failure>;

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failure, error: anyhow::Error::msg(message.into()), hint: None }
    }

    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint unless there is one.
    pub fn or_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The error response of the host, if there was one.
    pub fn refusal(&self) -> Option<&AgentAPIError> {
        match self.error.downcast_ref::<crate::client::Error>()? {
            crate::client::Error::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// As JSON, in the format of the errors of the host.
    pub fn json(&self) -> Value {
        if let Some(refusal) = self.refusal() {
            return json!({"error": refusal});
        }
        let code = match self.exit {
            Exit::Usage => ErrorCode::InvalidArgument,
            Exit::NotFound => ErrorCode::NotFound,
            _ => ErrorCode::RuntimeError,
        };
        let (message, details) = match self.error.downcast_ref::<greenroom_config::Invalid>() {
            Some(invalid) => ("the configuration is not valid".to_owned(), invalid.json()),
            None => (format!("{:#}", self.error), json!({})),
        };
        json!({"error": {"code": code, "message": message, "retryable": false, "details": details}})
    }

    /// Whether the reader of the output closed it, which is not a failure.
    pub fn is_broken_pipe(&self) -> bool {
        let kind = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
        };
        self.error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { exit: Exit::Failure, error, hint: None }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        anyhow::Error::new(error).into()
    }
}

impl From<greenroom_config::LoadError> for Failure {
    fn from(error: greenroom_config::LoadError) -> Self {
        let error = match error {
            greenroom_config::LoadError::Invalid(invalid) => anyhow::Error::new(invalid),
            error => anyhow::Error::new(error),
        };
        Failure::from(error).exit(Exit::Usage)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.downcast_ref::<greenroom_config::Invalid>() {
            Some(invalid) => return write!(f, "{invalid}"),
            None => write!(f, "error: {}", self.error)?,
        }
        for cause in self.error.chain().skip(1) {
            write!(f, "\n  caused by: {cause}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
