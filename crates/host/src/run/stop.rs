//! Why a run stops, and the status and code of its end.
//!
//! Invariant: every end has one code of the contract; errors of the store go to the log, not to senders.

use greenroom_protocol::error::run_code;
use greenroom_protocol::{RunError, RunStatus};
use greenroom_runtime::RunEnd;
use greenroom_store::StoreError;

/// Why the host stops working on a run.
pub(super) enum Stop {
    /// The host ends it.
    End(RunStatus, RunError),
    /// The host shuts down: the next start ends the run or restarts it. Ending it here would start the next
    /// run of its lane.
    HandOn,
    /// Its process was replaced before it read the run: the next process gets it.
    NotDelivered,
    /// Another attempt owns the run, or the store is lost.
    Leave,
}

/// The end of a run whose stream ended without a terminal.
pub(super) fn ended(end: RunEnd) -> Stop {
    let (code, message, retryable) = match end {
        RunEnd::Finished => (
            run_code::NO_TERMINAL,
            "the runner ended its stream without a terminal result".into(),
            false,
        ),
        RunEnd::Failed { message, .. } => (run_code::ERROR, message, false),
        RunEnd::Crashed { message } => (run_code::CRASHED, message, true),
        RunEnd::ProtocolError { message } => (run_code::PROTOCOL_ERROR, message, false),
        RunEnd::Overflow { message } => (run_code::OVERFLOW, message, false),
        RunEnd::NotDelivered => return Stop::NotDelivered,
    };
    Stop::End(RunStatus::Failed, failure(code, message, retryable))
}

pub(super) fn unavailable(message: String, retryable: bool) -> Stop {
    Stop::End(RunStatus::Failed, failure(run_code::UNAVAILABLE, message, retryable))
}

/// The end of a run whose command the store refused.
pub(super) fn refused(error: &StoreError) -> Stop {
    tracing::error!(%error, "store refused a command, run stops");
    match error {
        StoreError::Lost(_) => Stop::Leave,
        _ => {
            let message = "its results could not be stored".to_owned();
            Stop::End(RunStatus::Failed, failure(run_code::ERROR, message, false))
        }
    }
}

pub(crate) fn failure(code: &str, message: String, retryable: bool) -> RunError {
    let message = message.chars().filter(|c| *c != '\0').take(2000).collect();
    RunError { code: code.to_owned(), message, retryable }
}

/// The status that goes with a failure's code.
pub(crate) fn status_of(code: &str) -> RunStatus {
    match code {
        run_code::CANCELLED => RunStatus::Cancelled,
        run_code::DEADLINE_EXCEEDED => RunStatus::Timeout,
        _ => RunStatus::Failed,
    }
}
