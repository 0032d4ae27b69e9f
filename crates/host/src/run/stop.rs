//! Why a run stops, and what its end is called.
//!
//! Invariant: every way out has one code of the contract; what the store said is for the log, not for senders.

use greenroom_protocol::error::run_code;
use greenroom_protocol::{RunError, RunStatus};
use greenroom_runtime::RunEnd;
use greenroom_store::StoreError;

/// Why a run did not go to its end.
pub(super) enum Stop {
    /// A terminal from the host's side.
    End(RunStatus, RunError),
    /// The host goes down in order: the next start closes the run or tries it again. Closing it here would
    /// start the run behind it, on a host that is about to end.
    HandOn,
    /// Its process is replaced and never heard of the run: the next one gets it.
    NotDelivered,
    /// The run belongs to someone else by now, or the store is lost: leave it alone.
    Leave,
}

/// How a stream that ended by itself ends its run.
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

/// The store said no: for good if it is lost, else about this run alone.
pub(super) fn refused(error: &StoreError) -> Stop {
    tracing::error!(%error, "a run cannot go on without the store");
    match error {
        StoreError::Lost(_) => Stop::Leave,
        _ => {
            let message = "what it did could not be stored".to_owned();
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
