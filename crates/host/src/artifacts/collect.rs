//! Collection: removes expired artifacts, then unreferenced bytes, then unfinished uploads.
//!
//! Invariant: bytes are deleted only while they are claimed and after the store was read, so none are deleted
//! that a row refers to or is about to. Small steps; a failure is retried in the next round.

use super::{ArtifactError, Artifacts};
use crate::host::Shared;
use crate::ids::now_ms;
use greenroom_objects::Shard;
use greenroom_store::commands::RemoveArtifacts;
use greenroom_store::{StoreError, reads};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long unreferenced bytes may stay.
const BYTES_EVERY: Duration = Duration::from_secs(3600);
/// Artifacts removed by one command.
const STEP: i64 = 500;

/// Collects now and periodically, until the host stops.
pub(crate) async fn collect_regularly(shared: Arc<Shared>) {
    let stopping = shared.tasks.stopping().clone();
    let mut bytes_at = Instant::now();
    loop {
        match collect(&shared, bytes_at).await {
            Ok(0) => {}
            Ok(removed) => {
                tracing::info!(removed, "removed expired artifacts and unreferenced bytes")
            }
            Err(error) => tracing::warn!(%error, "cannot collect artifacts, will retry"),
        }
        if bytes_at <= Instant::now() {
            bytes_at = Instant::now() + BYTES_EVERY;
        }
        let pause = shared.settings.load().retention.collect_every;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopping.cancelled() => return,
        }
    }
}

/// One round; returns how much was removed. Bytes are scanned if artifacts were removed, or periodically.
async fn collect(shared: &Arc<Shared>, bytes_at: Instant) -> Result<usize, ArtifactError> {
    let mut removed = remove_rows(shared).await?;
    if removed == 0 && bytes_at > Instant::now() {
        return Ok(0);
    }
    // Not by dropping the future: a deletion in progress must end under its claim.
    for shard in Shard::all() {
        if shared.tasks.stopping().is_cancelled() {
            return Ok(removed);
        }
        removed += collect_shard(shared, &shared.artifacts, shard).await?;
    }
    Ok(removed + shared.artifacts.objects.sweep().await?)
}

async fn remove_rows(shared: &Arc<Shared>) -> Result<usize, StoreError> {
    let keep = shared.settings.load().retention.artifacts;
    let mut removed = 0;
    while !shared.tasks.stopping().is_cancelled() {
        let now = now_ms();
        let age_ms = keep.map(|keep| i64::try_from(keep.as_millis()).unwrap_or(i64::MAX));
        let read = shared.store.read(move |tx| {
            let expired = reads::artifacts::expired(tx, now, STEP)?;
            match age_ms {
                Some(age_ms) if expired.is_empty() => {
                    reads::artifacts::made_before(tx, now.saturating_sub(age_ms), STEP)
                }
                _ => Ok(expired),
            }
        });
        let artifacts = read.await?;
        if artifacts.is_empty() {
            break;
        }
        removed += artifacts.len();
        shared.store.commit(RemoveArtifacts { artifacts }).await?;
        // Runs come first.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(removed)
}

async fn collect_shard(
    shared: &Shared,
    artifacts: &Artifacts,
    shard: Shard,
) -> Result<usize, ArtifactError> {
    let objects = artifacts.objects.list(shard).await?;
    if objects.is_empty() {
        return Ok(0);
    }
    let digits = shard.to_string();
    let used = shared.store.read(move |tx| reads::artifacts::hashes(tx, &digits)).await?;
    let used: HashSet<String> = used.into_iter().collect();
    let mut removed = 0;
    for id in objects.into_iter().map(|object| object.id) {
        if used.contains(&id.to_string()) {
            continue;
        }
        // They are pinned: a row is about to refer to them.
        let Some(_claim) = artifacts.pins.claim(id) else { continue };
        let hash = id.to_string();
        let read = shared.store.read(move |tx| reads::artifacts::is_referred_to(tx, &hash));
        if !read.await? {
            artifacts.objects.delete(id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}
