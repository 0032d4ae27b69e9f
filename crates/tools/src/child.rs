//! Runs one method of a module as a child process: names as arguments, the payload on stdin, one answer.
//!
//! Invariant: whatever the child does, the caller gets one output. Its stderr goes to the log only, because it
//! may contain secrets.

use crate::project_cli::CliResult;
use crate::{ToolFailure, ToolOutput};
use greenroom_runtime::{ChildEnd, ChildError, ChildSpec, Children, Finished};
use serde_json::Value;
use tokio::time::Instant;

/// Largest answer of a method.
const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A shorter stderr is complete.
const UNCUT_BYTES: usize = 2048;

/// A method to run.
#[derive(Debug)]
pub struct MethodCall<'a> {
    /// The program with its environment; module and method are added to its arguments.
    pub program: ChildSpec,
    pub module: &'a str,
    pub method: &'a str,
    pub input: &'a Value,
    /// The credential as the first line of stdin, for a program that takes it there; empty if there is none.
    pub first_line: Option<&'a str>,
    pub deadline: Instant,
}

/// Runs it to its end. Dropping the future kills the child and its descendants.
pub async fn run_method(children: &Children, call: MethodCall<'_>) -> ToolOutput {
    let MethodCall { mut program, module, method, input, first_line, deadline } = call;
    program.command.extend([module.to_owned(), method.to_owned()]);
    let first_line = first_line.map(|line| format!("{line}\n")).unwrap_or_default();
    let payload = format!("{first_line}{input}");
    let ran = children.run(&program, payload.as_bytes(), deadline, OUTPUT_BYTES_MAX).await;
    let read = match ran {
        Ok(finished) => read(module, method, &finished),
        Err(error) => Err(failure(&error)),
    };
    match read {
        Ok(result) => result.into_output(),
        Err(failure) => {
            let failure = failure.detail("module", module).detail("method", method);
            ToolOutput::failure(failure)
        }
    }
}

/// A method that fails reports it and exits with 1; one that exits with 1 without output has crashed.
fn read(module: &str, method: &str, finished: &Finished) -> Result<CliResult, ToolFailure> {
    if !finished.warnings.is_empty() {
        tracing::warn!(module, method, warnings = ?finished.warnings, "a method runs with a weaker sandbox");
    }
    let crashed = || {
        let Finished { message, stderr_tail, .. } = finished;
        let stderr = whole_lines(stderr_tail);
        tracing::warn!(module, method, %message, stderr, "a method crashed");
        ToolFailure::new("METHOD_CRASHED", format!("the method {message}"))
    };
    let result = CliResult::read(module, method, &finished.stdout);
    match (finished.ended, result) {
        (ChildEnd::Exited(0), Ok(result)) => Ok(result),
        (ChildEnd::Exited(0), Err(error)) => Err(ToolFailure::new(
            "INVALID_OUTPUT",
            format!("the answer of the method is not JSON: {error}"),
        )),
        (ChildEnd::Exited(_), Ok(failed @ CliResult::Failed(_))) => Ok(failed),
        _ => Err(crashed()),
    }
}

/// The complete lines of a text whose beginning may be cut off: the rest of a secret could not be
/// recognised.
fn whole_lines(tail: &str) -> &str {
    if tail.len() < UNCUT_BYTES {
        return tail;
    }
    tail.split_once('\n').map_or("", |(_, lines)| lines)
}

fn failure(error: &ChildError) -> ToolFailure {
    let code = match error {
        ChildError::Start(_) => "UNAVAILABLE",
        ChildError::Deadline { .. } | ChildError::NoTurn => "TIMEOUT",
        ChildError::OutputTooLarge { .. } => "OUTPUT_TOO_LARGE",
    };
    ToolFailure::new(code, format!("the method {error}"))
}
