//! Turns large parts of results into artifacts before the results are numbered.
//!
//! Invariant: the bytes are stored before the result that refers to them is numbered, and their rows are
//! committed with it or not at all.

use super::stop::Stop;
use super::{RunTask, STORE_RETRY};
use crate::artifacts::{ArtifactError, Kept, Spilled, is_within, may_spill};
use crate::context::Identity;
use crate::ids::now_ms;
use crate::ledger::Ledger;
use crate::settings::Reach;
use greenroom_protocol::payload::{ArtifactCreated, Message, Payload};
use greenroom_protocol::result::kind;
use greenroom_protocol::{Object, RawResult};
use greenroom_store::types::{ArtifactRow, NewArtifact, ResultRecord};
use serde_json::value::{RawValue, to_raw_value};

impl RunTask {
    /// The same results with references in place of large parts.
    pub(super) async fn spill(
        &mut self,
        ledger: &mut Ledger,
        results: Vec<RawResult>,
    ) -> Result<Vec<RawResult>, Stop> {
        if !self.spills(&results) {
            return Ok(results);
        }
        let bytes_max = self.shared.settings.load().limits.result_bytes;
        let identity = Identity::new(&self.run, &self.envelope);
        let mut taken = Vec::with_capacity(results.len());
        for mut result in results {
            if let Some(checked) = self.check_reference(&identity, &result).await {
                match checked {
                    Ok(data) => {
                        result.data = Some(data);
                        taken.push(result);
                    }
                    Err(reason) => {
                        let text = format!("`{}`: {reason}", result.kind);
                        ledger.note("refused_result", &text, now_ms());
                    }
                }
                continue;
            }
            match self.spill_one(&identity, &result, bytes_max).await? {
                Ok(None) => taken.push(result),
                Ok(Some(Spilled { data, kept })) => {
                    result.data = Some(data);
                    self.kept.push(kept);
                    taken.push(result);
                }
                Err(reason) => {
                    let text = format!("`{}`: {reason}", result.kind);
                    ledger.note("refused_result", &text, now_ms());
                    if result.kind == kind::RUN_COMPLETED {
                        // The terminal is not dropped: the run has ended.
                        taken.push(result);
                    }
                }
            }
        }
        Ok(taken)
    }

    /// For an `artifact.created` without bytes: its data as it is stored, or why it is refused.
    async fn check_reference(
        &self,
        identity: &Identity,
        result: &RawResult,
    ) -> Option<Result<Box<RawValue>, &'static str>> {
        let data = result.data.as_deref().filter(|_| result.kind == kind::ARTIFACT_CREATED)?;
        // Data that is not valid is refused with all others.
        let Ok(Payload::ArtifactCreated(created)) = Payload::parse(&result.kind, Some(data.get()))
        else {
            return None;
        };
        if created.content_base64.is_some() {
            return None;
        }
        let Some(artifact_id) = &created.artifact_id else {
            return Some(Err("it has neither `artifact_id` nor `content_base64`"));
        };
        let row = self.shared.artifact(&self.run.workspace_id, artifact_id).await;
        let is_own = |row: &ArtifactRow| is_within(row, identity, Reach::Conversation);
        Some(match row {
            Ok(Some(row)) if is_own(&row) => Ok(stored(row, created.metadata)),
            Ok(_) => Err("there is no such artifact"),
            Err(error) => {
                tracing::warn!(%error, run.id = %self.run.run_id, "cannot look up an artifact");
                Err("the artifact could not be looked up")
            }
        })
    }

    /// Whether parts of these results may have to become artifacts.
    pub(super) fn spills(&self, results: &[RawResult]) -> bool {
        let bytes_max = self.shared.settings.load().limits.result_bytes;
        results.iter().any(|result| may_spill(result, bytes_max))
    }

    /// Retries while the object store is full or unavailable, as for the store itself.
    async fn spill_one(
        &self,
        identity: &Identity,
        result: &RawResult,
        bytes_max: usize,
    ) -> Result<Result<Option<Spilled>, String>, Stop> {
        loop {
            let error = match self.shared.spill(identity, result, bytes_max).await {
                Ok(spilled) => return Ok(Ok(spilled)),
                Err(ArtifactError::Objects(error)) if error.is_passing() => error,
                Err(error) => return Ok(Err(error.to_string())),
            };
            tracing::warn!(%error, run.id = %self.run.run_id, "cannot store bytes of a result, will retry");
            tokio::select! {
                () = tokio::time::sleep(STORE_RETRY) => {}
                stop = self.stopped() => return Err(stop),
            }
        }
    }

    /// Turns long unfinished messages into artifacts; their bytes are pinned until their rows are stored.
    pub(super) async fn fold(&self, ledger: &mut Ledger) -> Vec<Kept> {
        let Some(mut folded) = ledger.take_folded() else { return Vec::new() };
        let identity = Identity::new(&self.run, &self.envelope);
        let mut all_kept = Vec::new();
        for message in &mut folded.messages {
            let whole = std::mem::replace(message, Message::assistant(String::new()));
            let (small, kept) = self.shared.fold(&identity, whole).await;
            *message = small;
            all_kept.extend(kept);
        }
        ledger.put_folded(&folded);
        all_kept
    }

    /// The rows of artifacts that held results refer to; the bytes of others are unpinned.
    pub(super) fn rows_of(&mut self, held: &[ResultRecord]) -> Vec<NewArtifact> {
        self.kept.retain(|kept| {
            held.iter().any(|result| result.data.get().contains(&kept.row.artifact_id))
        });
        self.kept.iter().map(|kept| kept.row.clone()).collect()
    }
}

/// The description of a stored artifact, whatever the runner said about it.
fn stored(row: ArtifactRow, metadata: Option<Object>) -> Box<RawValue> {
    let created = ArtifactCreated {
        artifact_id: Some(row.artifact_id),
        name: row.name,
        mime_type: Some(row.mime_type),
        size_bytes: u64::try_from(row.size).ok(),
        sha256: Some(row.sha256),
        content_base64: None,
        metadata,
    };
    to_raw_value(&created).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
