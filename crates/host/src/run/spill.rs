//! Turns large parts of results into artifacts before the results are numbered.
//!
//! Invariant: the bytes are stored before the result that refers to them is numbered, and their rows are
//! committed with it or not at all.

use super::stop::Stop;
use super::{RunTask, STORE_RETRY};
use crate::artifacts::{ArtifactError, Kept, Spilled, may_spill};
use crate::context::Identity;
use crate::ids::now_ms;
use crate::ledger::Ledger;
use greenroom_protocol::RawResult;
use greenroom_protocol::payload::Message;
use greenroom_protocol::result::kind;
use greenroom_store::types::{NewArtifact, ResultRecord};

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
