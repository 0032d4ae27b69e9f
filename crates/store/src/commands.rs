//! Everything that changes a fact: batched commands, each with its outcome.
//!
//! This is the table "what is committed before what" (DESIGN §2) as code:
//!
//! | point              | command                              |
//! |--------------------|--------------------------------------|
//! | event accepted     | [`AcceptEvent`]                      |
//! | queued run started | inside [`ApplyResults`] with a terminal, or [`CancelQueued`] |
//! | result applied     | [`ApplyResults`]                     |
//! | terminal           | [`ApplyResults`] with `terminal`     |
//! | delivery           | [`ClaimDelivery`], [`FinishDelivery`]; [`ResolveDelivery`] when somebody asks |
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
//! | past its time      | [`Collect`], a step at a time        |
//! | item searchable    | [`IndexItems`], some time after      |
//!
//! Invariant: a command that is carried out twice changes nothing the second time (results: when they come
//! with their chunk; audit records: every call is a fact of its own).

mod accept;
mod approvals;
mod artifacts;
mod audit;
mod collect;
mod deliver;
mod fence;
mod index;
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

pub use accept::{AcceptEvent, Accepted, Admission, Lane, NewRun, Way, admit};
pub use approvals::{
    AnswerApproval, Answered, CancelApproval, Decision, ExpireApprovals, RequestAction, Requested,
    Wanted,
};
pub use artifacts::{ArtifactWritten, CreateArtifact, RemoveArtifacts};
pub use audit::{RecordAudit, RecordInterrupted};
pub use collect::{Collect, Collected, Retained};
pub use deliver::{
    ClaimDelivery, DeliveryOutcome, FinishDelivery, Resolution, ResolveDelivery, Resolved,
};
pub use fence::RunFence;
pub use index::{IndexItems, RemoveItems};
pub use rates::has_failed;
pub use records::{RecordChange, RecordWritten, WriteRecord};
pub use results::{Applied, ApplyResults, Terminal};
pub use runs::{CancelQueued, CancelRequest, FreezeGrant, RecordDiagnostics, RestartRun};
pub use spend::{BeginModelCall, ChargeInterrupted, INTERRUPTED, RecordModelCall};
pub use state::{StateWritten, WriteState};
pub use steering::{PullSteering, Pulled};
pub(crate) use storage::WHOLE_WORKSPACE;
pub use storage::{StorageWritten, WriteStorage};
pub use tools::{BeginToolCall, Begun, EndToolCall, Ended, Standing};

use crate::sql::Tx;
use crate::types::ApprovalRow;
use crate::{StoreError, params};
use std::sync::Arc;

/// One change. Boxed where large, so that the queue stays small.
#[derive(Debug)]
pub enum Command {
    Accept(Box<AcceptEvent>),
    /// Shared, so that a caller may ask again when the store had no space.
    Apply(Arc<ApplyResults>),
    CancelQueued(CancelQueued),
    FreezeGrant(FreezeGrant),
    Restart(Box<RestartRun>),
    ClaimDelivery(ClaimDelivery),
    FinishDelivery(Box<FinishDelivery>),
    ResolveDelivery(Box<ResolveDelivery>),
    RecordDiagnostics(RecordDiagnostics),
    RecordAudit(RecordAudit),
    RecordInterrupted(RecordInterrupted),
    WriteState(Box<WriteState>),
    RequestAction(Box<RequestAction>),
    AnswerApproval(Box<AnswerApproval>),
    ExpireApprovals(ExpireApprovals),
    CancelApproval(CancelApproval),
    PullSteering(Box<PullSteering>),
    WriteStorage(Box<WriteStorage>),
    CreateArtifact(Box<CreateArtifact>),
    RemoveArtifacts(RemoveArtifacts),
    BeginToolCall(Box<BeginToolCall>),
    EndToolCall(Box<EndToolCall>),
    BeginModelCall(Box<BeginModelCall>),
    RecordModelCall(Box<RecordModelCall>),
    ChargeInterrupted(ChargeInterrupted),
    WriteRecord(Box<WriteRecord>),
    Collect(Collect),
    IndexItems(Box<IndexItems>),
    RemoveItems(RemoveItems),
    /// Writes as much as an event takes, and nothing of interest; another mark each time, or nothing is written.
    Touch(i64),
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    Accepted(Box<Accepted>),
    Applied(Box<Applied>),
    Cancel(Box<CancelRequest>),
    Changed(bool),
    Resolved(Resolved),
    StateWritten(StateWritten),
    Requested(Requested),
    Answered(Answered),
    Expired(Vec<ApprovalRow>),
    Pulled(Pulled),
    StorageWritten(StorageWritten),
    ArtifactWritten(ArtifactWritten),
    Begun(Begun),
    Ended(Ended),
    RecordWritten(RecordWritten),
    Collected(Collected),
}

/// What `Touch` writes.
const TOUCH_BYTES: usize = 64 * 1024;

impl Command {
    /// Whether somebody outside waits for it, who can ask again.
    pub(crate) fn is_from_outside(&self) -> bool {
        matches!(self, Command::Accept(_) | Command::CancelQueued(_) | Command::AnswerApproval(_))
    }

    pub(crate) fn execute(&self, tx: &mut dyn Tx) -> Result<Outcome, StoreError> {
        Ok(match self {
            Command::Accept(command) => Outcome::Accepted(Box::new(command.execute(tx)?)),
            Command::Apply(command) => Outcome::Applied(Box::new(command.execute(tx)?)),
            Command::CancelQueued(command) => Outcome::Cancel(Box::new(command.execute(tx)?)),
            Command::FreezeGrant(command) => Outcome::Changed(command.execute(tx)?),
            Command::Restart(command) => Outcome::Changed(command.execute(tx)?),
            Command::ClaimDelivery(command) => Outcome::Changed(command.execute(tx)?),
            Command::FinishDelivery(command) => Outcome::Changed(command.execute(tx)?),
            Command::ResolveDelivery(command) => Outcome::Resolved(command.execute(tx)?),
            Command::RecordDiagnostics(command) => Outcome::Changed(command.execute(tx)?),
            Command::RecordAudit(command) => Outcome::Changed(command.execute(tx)?),
            Command::RecordInterrupted(command) => Outcome::Changed(command.execute(tx)?),
            Command::WriteState(command) => Outcome::StateWritten(command.execute(tx)?),
            Command::RequestAction(command) => Outcome::Requested(command.execute(tx)?),
            Command::AnswerApproval(command) => Outcome::Answered(command.execute(tx)?),
            Command::ExpireApprovals(command) => Outcome::Expired(command.execute(tx)?),
            Command::CancelApproval(command) => Outcome::Changed(command.execute(tx)?),
            Command::PullSteering(command) => Outcome::Pulled(command.execute(tx)?),
            Command::WriteStorage(command) => Outcome::StorageWritten(command.execute(tx)?),
            Command::CreateArtifact(command) => Outcome::ArtifactWritten(command.execute(tx)?),
            Command::RemoveArtifacts(command) => Outcome::Changed(command.execute(tx)?),
            Command::BeginToolCall(command) => Outcome::Begun(command.execute(tx)?),
            Command::EndToolCall(command) => Outcome::Ended(command.execute(tx)?),
            Command::BeginModelCall(command) => Outcome::Changed(command.execute(tx)?),
            Command::RecordModelCall(command) => Outcome::Changed(command.execute(tx)?),
            Command::ChargeInterrupted(command) => Outcome::Changed(command.execute(tx)?),
            Command::WriteRecord(command) => Outcome::RecordWritten(command.execute(tx)?),
            Command::Collect(command) => Outcome::Collected(command.execute(tx)?),
            Command::IndexItems(command) => Outcome::Changed(command.execute(tx)?),
            Command::RemoveItems(command) => Outcome::Changed(command.execute(tx)?),
            Command::Touch(mark) => Outcome::Changed(touch(tx, *mark)?),
        })
    }
}

fn touch(tx: &mut dyn Tx, mark: i64) -> Result<bool, StoreError> {
    let text = mark.to_string();
    let text = text.repeat(TOUCH_BYTES / text.len());
    let touched = tx.execute(
        "INSERT INTO meta (name, value) VALUES ('space', ?1)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        params![&text],
    )?;
    Ok(touched == 1)
}
