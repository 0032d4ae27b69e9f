//! Puts the bytes of an event's files into the input of a runner whose wire has no artifacts.
//!
//! Invariant: only artifacts of the event's own conversation are read, or of none; what is too large stays a
//! reference.

use super::RunTask;
use crate::artifacts::Artifacts;
use crate::artifacts::ingest::{is_for, media_mut};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::context::AgentInput;
use greenroom_protocol::{AgentRunnerManifest, ContentElement};
use std::collections::HashMap;

/// Bytes of all files of one run: a message to a plugin has at most 16 MiB, and each file is in it twice.
const FILES_BYTES_MAX: u64 = 4 << 20;
/// The wire of such runners.
const WIRE: &str = "langbot";

impl RunTask {
    pub(super) async fn inline_files(
        &self,
        manifest: &AgentRunnerManifest,
        input: &mut AgentInput,
    ) {
        if manifest.metadata.get("wire").and_then(|wire| wire.as_str()) != Some(WIRE) {
            return;
        }
        let mut files = HashMap::new();
        let mut left = FILES_BYTES_MAX;
        for id in ids(input) {
            if let Some(data) = self.read_file(&id, left).await {
                left = left.saturating_sub(data.len() as u64);
                files.insert(id, STANDARD.encode(&data));
            }
        }
        for media in input.contents.iter_mut().filter_map(media_mut) {
            let id = media.artifact_id.as_deref().unwrap_or_default();
            if let Some(data) = files.get(id).filter(|_| media.data_base64.is_none()) {
                media.data_base64 = Some(data.clone());
            }
        }
        for attached in &mut input.attachments {
            if let Some(data) = files.get(&attached.artifact_id) {
                attached.extra.insert("data_base64".to_owned(), data.as_str().into());
            }
        }
    }

    async fn read_file(&self, artifact_id: &str, bytes_max: u64) -> Option<bytes::Bytes> {
        let row = self.shared.artifact(&self.run.workspace_id, artifact_id).await.ok()??;
        let size = u64::try_from(row.size).ok().filter(|size| *size <= bytes_max)?;
        if !is_for(&row, self.run.conversation_id.as_deref(), &self.run.session, None) {
            return None;
        }
        let read = self.shared.artifacts.objects.read(Artifacts::place_of(&row).ok()?, 0..size);
        let read = read.await;
        if let Err(error) = &read {
            tracing::warn!(run.id = %self.run.run_id, artifact_id, %error, "cannot read a file of the event");
        }
        read.ok()
    }
}

/// The artifacts of an input, each once.
fn ids(input: &AgentInput) -> Vec<String> {
    let media = input.contents.iter().filter_map(ContentElement::media);
    let media = media.filter(|media| media.data_base64.is_none());
    let media = media.filter_map(|media| media.artifact_id.clone());
    let attached = input.attachments.iter().map(|attached| attached.artifact_id.clone());
    let mut ids: Vec<String> = Vec::new();
    for id in media.chain(attached).filter(|id| !id.contains('\0')) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}
