//! Recovery after a crash: ends or restarts every run that was running.
//!
//! Invariant: the decision is a pure function of the stored run (`decide`). It is carried out before the host
//! accepts the first event; interrupted calls have their audit records by then.

use crate::follow_up::FollowUp;
use crate::host::Shared;
use crate::ids::now_ms;
use crate::ledger::{Ledger, Terms, Unfinished};
use crate::run::failure;
use greenroom_protocol::error::run_code;
use greenroom_protocol::payload::{DeltaRef, Message, MessageCompleted};
use greenroom_protocol::result::kind;
use greenroom_protocol::{MessageContent, RunError, RunStatus};
use greenroom_store::StoreError;
use greenroom_store::chunk::ChunkBuilder;
use greenroom_store::commands::{RecordInterrupted, RestartRun};
use greenroom_store::reads;
use greenroom_store::types::{OnInterrupt, ResultRecord, RunRow};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// Attempts of a run, at most.
const ATTEMPTS_MAX: i64 = 3;
/// Runs that are settled concurrently, so that their commits are grouped.
const RUN_BATCH: usize = 512;
/// Calls that are settled in one step.
const CALL_BATCH: i64 = 512;

#[derive(Debug, PartialEq)]
enum Decision {
    Retry,
    End(RunStatus, RunError),
}

/// Whether an interrupted run is restarted, or how it ends.
fn decide(run: &RunRow) -> Decision {
    if run.cancel_requested {
        let error = failure(run_code::CANCELLED, "cancelled".to_owned(), false);
        return Decision::End(RunStatus::Cancelled, error);
    }
    if run.on_interrupt == OnInterrupt::Retry && !run.effects && run.attempt < ATTEMPTS_MAX {
        return Decision::Retry;
    }
    let message = "the host stopped before the run ended".to_owned();
    Decision::End(RunStatus::Failed, failure(run_code::HOST_INTERRUPTED, message, true))
}

/// Ends or restarts every run that was running; returns what follows once all of them are settled.
pub(crate) async fn recover(shared: &Arc<Shared>) -> Result<Vec<FollowUp>, StoreError> {
    record_calls(shared).await?;
    let mut follow_ups = settle_tool_calls(shared).await?;
    let open = shared.store.read(|tx| reads::runs::open(tx)).await?;
    shared.metrics.opened(open.len());
    let running: Vec<RunRow> =
        open.into_iter().filter(|run| run.status == RunStatus::Running).collect();
    for group in running.chunks(RUN_BATCH) {
        let mut closing = tokio::task::JoinSet::new();
        for run in group {
            closing.spawn(settle(Arc::clone(shared), run.clone()));
        }
        while let Some(settled) = closing.join_next().await {
            let settled = settled.map_err(|error| StoreError::Refused(error.to_string()))?;
            follow_ups.extend(settled?);
        }
    }
    Ok(follow_ups)
}

/// Records interrupted calls as failed.
async fn record_calls(shared: &Shared) -> Result<(), StoreError> {
    while shared.store.read(|tx| reads::audit::has_open(tx)).await? {
        let command = RecordInterrupted { calls_max: CALL_BATCH, now_ms: now_ms() };
        shared.store.commit(command).await?;
    }
    Ok(())
}

/// Gives interrupted tool calls their output: the outcome is unknown.
async fn settle_tool_calls(shared: &Shared) -> Result<Vec<FollowUp>, StoreError> {
    let epoch = shared.store.epoch();
    let mut follow_ups = Vec::new();
    loop {
        let open = shared.store.read(move |tx| reads::tools::interrupted(tx, epoch, CALL_BATCH));
        let open = open.await?;
        if open.is_empty() {
            return Ok(follow_ups);
        }
        for call in open {
            shared.settle_interrupted(call).await?;
            follow_ups.push(FollowUp::Index);
        }
    }
}

async fn settle(shared: Arc<Shared>, run: RunRow) -> Result<Vec<FollowUp>, StoreError> {
    match decide(&run) {
        Decision::Retry => {
            let restarted = restart(&shared, run).await?;
            let start = |run| FollowUp::Start { run, envelope: None };
            Ok(restarted.map(start).into_iter().collect())
        }
        Decision::End(status, error) => {
            tracing::info!(run.id = %run.run_id, code = %error.code, "interrupted run ended");
            end(&shared, &run, status, error).await
        }
    }
}

async fn restart(shared: &Shared, run: RunRow) -> Result<Option<RunRow>, StoreError> {
    let now_ms = now_ms();
    let sequence = run.reserved_seq + 1;
    let attempt = run.attempt + 1;
    let mut chunk = ChunkBuilder::default();
    let data = to_raw_value(&json!({"attempt": attempt}));
    chunk.push(&ResultRecord {
        sequence,
        kind: kind::RUN_RESTARTED.into(),
        data: data.unwrap_or_else(|_| RawValue::NULL.to_owned()),
        at_ms: now_ms,
        runner_sequence: None,
        runner_timestamp: None,
        usage: None,
    });
    let Some(chunk) = chunk.take() else { return Ok(None) };
    let reserved_seq = sequence + crate::ledger::RESERVE_FIRST;
    let command = RestartRun {
        fence: run.fence(),
        epoch_now: shared.store.epoch(),
        chunk,
        reserved_seq,
        now_ms,
    };
    if !shared.store.commit(command).await? {
        return Ok(None);
    }
    tracing::info!(run.id = %run.run_id, attempt, "interrupted run restarted");
    let (workspace, run_id) = (run.workspace_id, run.run_id);
    shared.store.read(move |tx| reads::runs::get(tx, &workspace, &run_id)).await
}

/// Stores the terminal of an interrupted run.
async fn end(
    shared: &Shared,
    run: &RunRow,
    status: RunStatus,
    error: RunError,
) -> Result<Vec<FollowUp>, StoreError> {
    let Some(envelope) = shared.envelope(run).await else {
        tracing::error!(run.id = %run.run_id, "cannot read the event of an interrupted run");
        return Ok(Vec::new());
    };
    let identity = Arc::new(shared.identity(run, &envelope));
    let (mut messages, mut kept) = (Vec::new(), Vec::new());
    for message in unfinished(shared, run).await? {
        let text = shared.redactor.text(&message.content.text()).into_owned();
        let message = Message { content: MessageContent::Text(text), ..message };
        let (message, bytes) = shared.fold(&identity, message).await;
        messages.push(message);
        kept.extend(bytes);
    }
    let now_ms = now_ms();
    // Reserved numbers may have been published: the terminal gets a number above them.
    let numbers = (run.reserved_seq.max(run.last_seq), run.reserved_seq);
    let terms = Terms { redactor: shared.redactor.clone(), ..Terms::default() };
    let mut ledger = Ledger::new(identity, terms, numbers);
    ledger.end_interrupted(messages, (status, error), now_ms);
    let mut command = ledger.commit().into_command(run, shared.store.epoch(), None, now_ms);
    command.artifacts.extend(kept.iter().map(|kept| kept.row.clone()));
    let command = Arc::new(command);
    let applied = shared.store.commit(Arc::clone(&command)).await?;
    Ok(FollowUp::applied(&command, applied))
}

/// The texts of stored deltas that no `message.completed` followed.
async fn unfinished(shared: &Shared, run: &RunRow) -> Result<Vec<Message>, StoreError> {
    let run_id = run.run_id.clone();
    let results =
        shared.store.read(move |tx| reads::results::page(tx, &run_id, 0, usize::MAX)).await?;
    let mut open = Unfinished::default();
    for result in results {
        match &*result.kind {
            kind::MESSAGE_DELTA => {
                if let Ok(delta) = DeltaRef::parse(result.data.get()) {
                    open.push(&delta);
                }
            }
            kind::MESSAGE_COMPLETED => {
                let completed = serde_json::from_str::<MessageCompleted>(result.data.get());
                let message_id = completed.ok().and_then(|completed| completed.message.message_id);
                open.complete(message_id.as_deref());
            }
            kind::RUN_RESTARTED => open.clear(),
            _ => {}
        }
    }
    Ok(open.finish(None))
}
