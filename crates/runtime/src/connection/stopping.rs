//! Telling a runner to stop a run, and what becomes of one that does not.
//!
//! Invariant: a run that was told to stop is over on this side already; a process that keeps it beyond its grace
//! is replaced.

use super::Connection;
use crate::run::Run;
use crate::wires::langbot::Session;
use crate::wires::{Codec, native};
use greenroom_protocol::wire::method;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

impl Connection {
    /// Tells the runner to stop a run, and replaces the process if it has not after the grace period.
    pub(crate) fn cancel(self: &Arc<Self>, run: &Arc<Run>, reason: &str) {
        let Some((number, runner)) = self.number_of(run) else { return };
        if self.withdraw(number) {
            return;
        }
        let grace = match &self.codec {
            Codec::Native => {
                let params = serde_json::json!({ "run_id": run.id, "reason": reason });
                self.send_or_replace(native::notification(method::RUN_CANCEL, &params));
                self.limits.cancel_grace
            }
            Codec::Langbot(session) => self.stop_plugins(session, number, &runner),
        };
        // One that has said how it ends may be behind what others write.
        let (grace, since) = match run.has_terminal() {
            true => (self.limits.drain_max, "its terminal result"),
            false => (grace, "its cancellation"),
        };
        let (connection, run) = (self.clone(), run.clone());
        self.tasks.spawn(async move {
            let is_gone = tokio::time::timeout(grace, connection.gone()).await.is_ok();
            if !is_gone && connection.number_of(&run).is_some() {
                let grace_s = grace.as_secs_f32();
                connection.replace(format!("did not end a run within {grace_s} s of {since}"));
            }
        });
    }

    /// How long a plugin has to end a run. One that is told to stop ends the run without a word; one that cannot
    /// be told finds out by itself, and has longer to do so.
    fn stop_plugins(self: &Arc<Self>, session: &Session, number: i64, runner: &str) -> Duration {
        if !session.is_told_to_stop(runner) {
            return self.limits.drain_max;
        }
        let connection = self.clone();
        self.tasks.spawn(async move {
            let Codec::Langbot(session) = &connection.codec else { return };
            let stopped = session.cancel(&connection, number);
            // Beyond the grace as well: a late answer still frees the run's place.
            let stopped = tokio::time::timeout(connection.limits.drain_max, stopped).await;
            if stopped == Ok(true) {
                connection.answered(number, Ok(RawValue::NULL));
            }
        });
        self.limits.cancel_grace
    }
}
