//! Sends without checks, for runners that test a host by violating the protocol.
//!
//! Invariant: a regular runner needs nothing of this.

use crate::message::{self, Request};
use crate::outbox::Outbox;
use crate::{RunCtx, RunFailure};
use greenroom_protocol::AgentRunResult;
use greenroom_protocol::wire::method;

/// See [`RunCtx::unchecked`].
pub struct Unchecked<'a> {
    pub(crate) ctx: &'a RunCtx,
    pub(crate) outbox: &'a Outbox,
}

impl Unchecked<'_> {
    /// Sends a result exactly as given: any run, any sequence number, at any time.
    pub async fn result(&self, result: &AgentRunResult) -> Result<(), RunFailure> {
        let notification = Request::notification(method::RUN_RESULT, result);
        let pushed = self.outbox.push(|buffer| {
            message::write(buffer, &notification);
        });
        Ok(pushed.await?)
    }

    /// Sends bytes as one line, JSON or not.
    pub async fn line(&self, line: &[u8]) -> Result<(), RunFailure> {
        Ok(self.outbox.push(|buffer| buffer.extend_from_slice(line)).await?)
    }

    /// Keeps the SDK from sending a terminal result for this run.
    pub fn without_terminal(&self) {
        self.ctx.end();
    }
}
