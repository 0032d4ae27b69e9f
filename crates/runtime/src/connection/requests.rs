//! Requests to a runner and their answers.
//!
//! Invariant: a request without an answer fails when the connection ends.

use super::{Connection, LAST_WORDS, Waiting};
use crate::outbox::NotSent;
use greenroom_protocol::wire::RpcError;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    Refused(RpcError),
    /// A clause about the runner.
    Gone(String),
}

impl NoResult {
    /// As a clause about the runner.
    pub(crate) fn about(self, method: &str) -> String {
        match self {
            NoResult::Refused(error) => format!("refused `{method}`: {}", error.message),
            NoResult::Gone(reason) => reason,
        }
    }
}

impl Connection {
    /// Calls the runner and waits for its answer.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, NoResult> {
        let (sender, answer) = oneshot::channel();
        let number = self.lock().expect(Waiting::Answer(sender));
        if let Err(error) = self.send_request(number, method, params) {
            // The end of the process, which follows soon, explains more than a closed pipe.
            return Err(NoResult::Gone(
                match tokio::time::timeout(LAST_WORDS, self.gone()).await {
                    Ok(()) => self.reason().unwrap_or_default(),
                    Err(_) => format!("is not listening: {error}"),
                },
            ));
        }
        match answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(NoResult::Refused(error)),
            Err(_) => {
                let reason = self.reason().unwrap_or_else(|| format!("did not answer `{method}`"));
                Err(NoResult::Gone(reason))
            }
        }
    }

    pub(super) fn send_request(
        &self,
        number: i64,
        method: &str,
        params: &impl Serialize,
    ) -> Result<(), NotSent> {
        self.outbox.push(self.codec.request(number, method, params))
    }
}
