//! Everything that changes a fact: commands, each with its outcome, which the writer commits in batches.
//!
//! This is the table "what is committed before what" (DESIGN §2) as code:
//!
//! | point              | command                              |
//! |--------------------|--------------------------------------|
//! | event accepted     | [`AcceptEvent`]                      |
//! | queued run started | inside [`ApplyResults`] with a terminal, or [`CancelQueued`] |
//! | result applied     | [`ApplyResults`]                     |
//! | terminal           | [`ApplyResults`] with `terminal`     |
//! | delivery           | [`ClaimDelivery`], [`FinishDelivery`]; [`ResolveDelivery`] on request |
//! | grant set late     | [`FreezeGrant`]                      |
//! | new attempt        | [`RestartRun`]                       |
//! | state by the proxy | [`WriteState`]                       |
//! | storage            | [`WriteStorage`]                     |
//! | artifact           | [`CreateArtifact`], after its bytes; [`RemoveArtifacts`], before them |
//! | calls alone        | [`RecordAudit`], [`RecordInterrupted`] |
//! | action intended    | [`RequestAction`], [`ApplyResults`]  |
//! | action decided     | [`AnswerApproval`], [`ExpireApprovals`], [`CancelApproval`] |
//! | message pulled     | [`PullSteering`]                     |
//! | tool call          | [`BeginToolCall`] before it acts, [`EndToolCall`] before its answer |
//! | model call         | [`BeginModelCall`] before it is made, [`RecordModelCall`] before its answer; [`ChargeInterrupted`] |
//! | module's record    | [`WriteRecord`]                      |
//! | expired            | [`Collect`], a step at a time        |
//! | item searchable    | [`IndexItems`], later                |
//!
//! Invariant: a command that is executed twice changes nothing the second time (results: when they come
//! with their chunk; audit records: every call is a fact of its own).

mod accept;
mod approvals;
mod artifacts;
mod audit;
mod collect;
mod deliver;
mod fence;
mod index;
mod loss;
mod rates;
mod records;
mod results;
mod runs;
mod spend;
mod start;
mod state;
mod steering;
mod storage;
mod tools;
mod transcript;
mod usage;

pub use accept::{
    AcceptEvent, Accepted, Admission, Displaced, Joins, Lane, LimitedTo, NewRun, admit,
};
pub use approvals::{
    ASKED_PAYLOAD, AnswerApproval, Answered, CancelApproval, Decision, ExpireApprovals,
    RequestAction, Requested, Wanted,
};
pub use artifacts::{ArtifactWritten, CreateArtifact, RemoveArtifacts, uploaded_by};
pub use audit::{RecordAudit, RecordInterrupted};
pub use collect::{Collect, Collected, Retained};
pub use deliver::{
    ClaimDelivery, DeliveryOutcome, FinishDelivery, Resolution, ResolveDelivery, Resolved,
};
pub use fence::RunFence;
pub use index::{IndexItems, RemoveItems};
pub(crate) use loss::record_accepted_loss;
pub use rates::has_failed;
pub use records::{RecordChange, RecordWritten, WriteRecord};
pub use results::{Applied, ApplyResults, Terminal};
pub use runs::{CancelQueued, CancelRequest, FreezeGrant, RecordDiagnostics, RestartRun};
pub use spend::{BeginModelCall, ChargeInterrupted, INTERRUPTED, RecordModelCall};
pub use state::{StateWritten, WriteState};
pub use steering::{PullSteering, Pulled};
pub(crate) use storage::WHOLE_WORKSPACE;
pub use storage::{StorageWritten, WriteStorage};
pub use tools::{BeginToolCall, Begun, CallStart, EndToolCall, Ended};
pub(crate) use usage::UsageKind;

use crate::sql::Tx;
use crate::{StoreError, params};
use std::sync::Arc;

/// One change of facts, executed by [`Store::commit`](crate::Store::commit).
pub trait Command: Send + Sync + 'static {
    type Outcome: Send + 'static;
    /// Whether a caller outside the host waits for it, who can send it again. Such a command is refused while the
    /// database does not answer; the host's own wait.
    const FROM_OUTSIDE: bool = false;

    /// The workspace whose share of the writer's queue it counts against; none: it is not limited.
    fn fair_share(&self) -> Option<&str> {
        None
    }

    /// Runs in the writer's transaction; again in a new one after a rollback.
    fn execute(&self, tx: &mut dyn Tx) -> Result<Self::Outcome, StoreError>;
}

/// A command that the host may lose in a crash.
pub trait Postponable: Command {}

/// For a caller that keeps the command to send it again when the store had no space.
impl<C: Command> Command for Arc<C> {
    type Outcome = C::Outcome;
    const FROM_OUTSIDE: bool = C::FROM_OUTSIDE;

    fn fair_share(&self) -> Option<&str> {
        C::fair_share(self)
    }

    fn execute(&self, tx: &mut dyn Tx) -> Result<Self::Outcome, StoreError> {
        C::execute(self, tx)
    }
}

/// Writes as much as an event takes, to see whether there is space; another mark each time, or nothing is written.
pub(crate) struct Touch(pub(crate) i64);

const TOUCH_BYTES: usize = 64 * 1024;

impl Command for Touch {
    type Outcome = ();

    fn execute(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let mark = self.0.to_string();
        let text = mark.repeat(TOUCH_BYTES / mark.len());
        tx.execute(
            "INSERT INTO meta (name, value) VALUES ('space', ?1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            params![&text],
        )?;
        Ok(())
    }
}
