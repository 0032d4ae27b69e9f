//! Every change of a fact, one method per command.
//!
//! Invariant: a method returns after its command was committed or refused, never before.

use super::{INDEXER, Store};
use crate::StoreError;
use crate::commands::{
    AcceptEvent, Accepted, AnswerApproval, Answered, Applied, ApplyResults, ArtifactWritten,
    BeginModelCall, BeginToolCall, Begun, CancelApproval, CancelQueued, CancelRequest,
    ChargeInterrupted, ClaimDelivery, Collect, Collected, Command, CreateArtifact, EndToolCall,
    Ended, ExpireApprovals, FinishDelivery, FreezeGrant, IndexItems, Outcome, PullSteering, Pulled,
    RecordAudit, RecordDiagnostics, RecordInterrupted, RecordModelCall, RecordWritten,
    RemoveArtifacts, RemoveItems, RequestAction, Requested, ResolveDelivery, Resolved, RestartRun,
    StateWritten, StorageWritten, WriteRecord, WriteState, WriteStorage,
};
use crate::search::index;
use crate::types::ApprovalRow;
use std::sync::Arc;

impl Store {
    pub async fn accept(&self, command: AcceptEvent) -> Result<Accepted, StoreError> {
        let _place = self.inner.shares.enter(&command.workspace_id).await;
        match self.submit(Command::Accept(Box::new(command))).await? {
            Outcome::Accepted(accepted) => Ok(*accepted),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn apply(
        &self,
        command: impl Into<Arc<ApplyResults>>,
    ) -> Result<Applied, StoreError> {
        match self.submit(Command::Apply(command.into())).await? {
            Outcome::Applied(applied) => Ok(*applied),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn cancel(&self, command: CancelQueued) -> Result<CancelRequest, StoreError> {
        match self.submit(Command::CancelQueued(command)).await? {
            Outcome::Cancel(request) => Ok(*request),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn freeze_grant(&self, command: FreezeGrant) -> Result<bool, StoreError> {
        self.change(Command::FreezeGrant(command)).await
    }

    pub async fn restart(&self, command: RestartRun) -> Result<bool, StoreError> {
        self.change(Command::Restart(Box::new(command))).await
    }

    pub async fn claim_delivery(&self, command: ClaimDelivery) -> Result<bool, StoreError> {
        self.change(Command::ClaimDelivery(command)).await
    }

    pub async fn finish_delivery(&self, command: FinishDelivery) -> Result<bool, StoreError> {
        self.change(Command::FinishDelivery(Box::new(command))).await
    }

    /// Sends a settled delivery again, or discards one.
    pub async fn resolve_delivery(&self, command: ResolveDelivery) -> Result<Resolved, StoreError> {
        match self.submit(Command::ResolveDelivery(Box::new(command))).await? {
            Outcome::Resolved(resolved) => Ok(resolved),
            other => Err(mixed_up(&other)),
        }
    }

    /// Keeps what a run sent after its end.
    pub async fn record(
        &self,
        run_id: String,
        diagnostics: Vec<crate::types::Diagnostic>,
    ) -> Result<bool, StoreError> {
        self.change(Command::RecordDiagnostics(RecordDiagnostics { run_id, diagnostics })).await
    }

    /// Keeps the records of calls that changed nothing.
    pub async fn record_audit(
        &self,
        batches: Vec<crate::types::AuditBatch>,
    ) -> Result<(), StoreError> {
        self.change(Command::RecordAudit(RecordAudit { batches })).await.map(drop)
    }

    /// Gives calls their record that an earlier host left open; false when there is none left.
    pub async fn record_interrupted(&self, command: RecordInterrupted) -> Result<bool, StoreError> {
        self.change(Command::RecordInterrupted(command)).await
    }

    pub async fn write_state(&self, command: WriteState) -> Result<StateWritten, StoreError> {
        match self.submit(Command::WriteState(Box::new(command))).await? {
            Outcome::StateWritten(written) => Ok(written),
            other => Err(mixed_up(&other)),
        }
    }

    /// Lets go of some of what is past its time.
    pub async fn collect(&self, command: Collect) -> Result<Collected, StoreError> {
        match self.submit(Command::Collect(command)).await? {
            Outcome::Collected(collected) => Ok(collected),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn write_storage(&self, command: WriteStorage) -> Result<StorageWritten, StoreError> {
        match self.submit(Command::WriteStorage(Box::new(command))).await? {
            Outcome::StorageWritten(written) => Ok(written),
            other => Err(mixed_up(&other)),
        }
    }

    /// Keeps an artifact whose bytes are kept already.
    pub async fn create_artifact(
        &self,
        command: CreateArtifact,
    ) -> Result<ArtifactWritten, StoreError> {
        match self.submit(Command::CreateArtifact(Box::new(command))).await? {
            Outcome::ArtifactWritten(written) => Ok(written),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn remove_artifacts(&self, command: RemoveArtifacts) -> Result<bool, StoreError> {
        self.change(Command::RemoveArtifacts(command)).await
    }

    pub async fn request_action(&self, command: RequestAction) -> Result<Requested, StoreError> {
        match self.submit(Command::RequestAction(Box::new(command))).await? {
            Outcome::Requested(requested) => Ok(requested),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn answer_approval(&self, command: AnswerApproval) -> Result<Answered, StoreError> {
        match self.submit(Command::AnswerApproval(Box::new(command))).await? {
            Outcome::Answered(answered) => Ok(answered),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn expire_approvals(
        &self,
        command: ExpireApprovals,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        match self.submit(Command::ExpireApprovals(command)).await? {
            Outcome::Expired(expired) => Ok(expired),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn cancel_approval(&self, command: CancelApproval) -> Result<bool, StoreError> {
        self.change(Command::CancelApproval(command)).await
    }

    pub async fn pull_steering(&self, command: PullSteering) -> Result<Pulled, StoreError> {
        match self.submit(Command::PullSteering(Box::new(command))).await? {
            Outcome::Pulled(pulled) => Ok(pulled),
            other => Err(mixed_up(&other)),
        }
    }

    /// A tool is about to act.
    pub async fn begin_tool_call(&self, command: BeginToolCall) -> Result<Begun, StoreError> {
        match self.submit(Command::BeginToolCall(Box::new(command))).await? {
            Outcome::Begun(begun) => Ok(begun),
            other => Err(mixed_up(&other)),
        }
    }

    /// A tool has given its output.
    pub async fn end_tool_call(&self, command: EndToolCall) -> Result<Ended, StoreError> {
        match self.submit(Command::EndToolCall(Box::new(command))).await? {
            Outcome::Ended(ended) => Ok(ended),
            other => Err(mixed_up(&other)),
        }
    }

    /// A model is about to be asked.
    pub async fn begin_model_call(&self, command: BeginModelCall) -> Result<bool, StoreError> {
        self.change(Command::BeginModelCall(Box::new(command))).await
    }

    /// What a call took; false when it is not open, and nothing was changed.
    pub async fn record_model_call(&self, command: RecordModelCall) -> Result<bool, StoreError> {
        self.change(Command::RecordModelCall(Box::new(command))).await
    }

    /// Charges calls that an earlier host left open; false when there is none left.
    pub async fn charge_interrupted(&self, command: ChargeInterrupted) -> Result<bool, StoreError> {
        self.change(Command::ChargeInterrupted(command)).await
    }

    pub async fn write_record(&self, command: WriteRecord) -> Result<RecordWritten, StoreError> {
        match self.submit(Command::WriteRecord(Box::new(command))).await? {
            Outcome::RecordWritten(written) => Ok(written),
            other => Err(mixed_up(&other)),
        }
    }

    /// Puts up to so many of the oldest unindexed items into the search index, and says how many are left
    /// at most. Only the insertion is the writer's work.
    pub async fn index_some(&self, limit: i64) -> Result<i64, StoreError> {
        let step = self.read_by(INDEXER, move |tx| IndexItems::next(tx, limit)).await?;
        let Some(step) = step else { return Ok(0) };
        self.change(Command::IndexItems(Box::new(step))).await?;
        self.read_by(INDEXER, |tx| {
            index::settle(tx)?;
            Ok(index::newest(tx)? - index::upto(tx)?)
        })
        .await
    }

    /// Takes items out of their transcripts and out of the search index.
    pub async fn remove_items(&self, ids: Vec<i64>) -> Result<bool, StoreError> {
        self.change(Command::RemoveItems(RemoveItems { ids })).await
    }

    async fn change(&self, command: Command) -> Result<bool, StoreError> {
        match self.submit(command).await? {
            Outcome::Changed(changed) => Ok(changed),
            other => Err(mixed_up(&other)),
        }
    }
}

fn mixed_up(outcome: &Outcome) -> StoreError {
    StoreError::Refused(format!("the store answered something else: {outcome:?}"))
}
