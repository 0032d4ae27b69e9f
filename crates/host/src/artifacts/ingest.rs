//! Turns large parts of an event into artifacts; the event carries references.
//!
//! Invariant: the references are in the event before it is stored, and their rows are written with it.

use super::{ArtifactError, Draft, Kept, Owner};
use crate::context::workspace_of;
use crate::gateway::{Refusal, Sender};
use crate::host::Shared;
use crate::ids::now_ms;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_objects::{ObjectsError, Staged};
use greenroom_protocol::content::MediaElement;
use greenroom_protocol::{ContentElement, NewEvent, Object, RawEventRef};
use greenroom_store::commands::uploaded_by;
use greenroom_store::types::ArtifactRow;
use greenroom_store::{StoreError, reads, session_key};
use serde_json::json;
use std::collections::HashMap;

/// Bytes of `data` that an event holds inline, at most.
pub(super) const DATA_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one content element that an event holds inline, at most.
pub(super) const CONTENT_BYTES_MAX: usize = 32 * 1024;
/// Uploads that one event may refer to.
const UPLOADS_MAX: usize = 100;

/// An event with references in place of its large parts.
pub(crate) struct Ingested {
    pub(crate) event: NewEvent,
    pub(crate) raw_ref: Option<RawEventRef>,
    pub(crate) kept: Vec<Kept>,
}

impl Shared {
    /// Stores the large parts of an event. Most events have none and are unchanged.
    pub(crate) async fn ingest(
        &self,
        sender: &Sender,
        mut event: NewEvent,
    ) -> Result<Ingested, Refusal> {
        let (mut kept, mut raw_ref) = (Vec::new(), None);
        let session = session_key(event.bot_id.as_deref(), event.thread_id.as_deref());
        let conversation_id = event.conversation_id.clone();
        let owner = Owner { conversation_id, session, ..Owner::default() };
        self.describe(sender, &mut event).await?;
        for element in &mut event.input.contents {
            let Some(media) = media_mut(element).filter(|media| is_large(media)) else { continue };
            let bytes = media.data_base64.take().unwrap_or_default();
            let bytes = STANDARD.decode(bytes).map_err(|error| {
                Refusal::Invalid(format!("`input.contents`: `data_base64`: {error}"))
            })?;
            let draft = Draft {
                name: media.name.clone(),
                mime_type: media.mime_type.clone(),
                owner: owner.clone(),
                ..Draft::default()
            };
            let one = self.artifacts.keep(staged(bytes), draft, &self.redactor).await;
            let one = one.map_err(|error| refusal(error, "input.contents"))?;
            media.artifact_id = Some(one.row.artifact_id.clone());
            media.mime_type = Some(one.row.mime_type.clone());
            kept.push(one);
        }
        self.ingest_parts(&mut event, &owner, &mut kept).await?;
        if let Some(data) = large(&event.data) {
            let mime_type = Some("application/json".to_owned());
            let draft = Draft { mime_type, owner, ..Draft::default() };
            let one = self.artifacts.keep(staged(data), draft, &self.redactor).await;
            let one = one.map_err(|error| refusal(error, "data"))?;
            raw_ref = Some(RawEventRef {
                ref_id: one.row.artifact_id.clone(),
                artifact_id: Some(one.row.artifact_id.clone()),
                mime_type: Some(one.row.mime_type.clone()),
                size_bytes: u64::try_from(one.row.size).ok(),
                extra: Object::new(),
            });
            event.data = Object::new();
            kept.push(one);
        }
        Ok(Ingested { event, raw_ref, kept })
    }

    /// Describes the artifacts that an event refers to as they are stored, whatever the sender says about them: a
    /// runner decides by the type whether its model can read them.
    pub(crate) async fn describe(
        &self,
        sender: &Sender,
        event: &mut NewEvent,
    ) -> Result<(), Refusal> {
        let ids = uploads_of(event);
        if ids.is_empty() {
            return Ok(());
        }
        let (workspace, now) = (workspace_of(event).to_owned(), now_ms());
        let read = self.store.read(move |tx| {
            let get = |id: &String| reads::artifacts::get(tx, &workspace, id, now).transpose();
            ids.iter().filter_map(get).collect::<Result<Vec<ArtifactRow>, _>>()
        });
        let rows = read.await.map_err(Refusal::Store)?;
        let conversation = event.conversation_id.clone();
        let session = session_key(event.bot_id.as_deref(), event.thread_id.as_deref());
        let uploader = sender.limit.as_ref().map(|limit| uploaded_by(&limit.own.begun_by));
        let known: HashMap<&str, &ArtifactRow> = rows
            .iter()
            .filter(|row| is_for(row, conversation.as_deref(), &session, uploader.as_deref()))
            .map(|row| (row.artifact_id.as_str(), row))
            .collect();
        for attached in &mut event.input.attachments {
            let Some(row) = known.get(attached.artifact_id.as_str()) else { continue };
            attached.name = attached.name.take().or_else(|| row.name.clone());
            attached.mime_type = Some(row.mime_type.clone());
            attached.size_bytes = u64::try_from(row.size).ok();
            attached.sha256 = Some(row.sha256.clone());
        }
        for media in event.input.contents.iter_mut().filter_map(media_mut) {
            let id = media.artifact_id.as_deref().unwrap_or_default();
            let Some(row) = known.get(id) else { continue };
            media.name = media.name.take().or_else(|| row.name.clone());
            media.mime_type = Some(row.mime_type.clone());
        }
        Ok(())
    }
}

/// Whether an artifact belongs to the session, or to none yet. Of others nothing is revealed, and to a limited
/// sender nothing of the uploads of another one.
pub(crate) fn is_for(
    row: &ArtifactRow,
    conversation: Option<&str>,
    session: &str,
    uploader: Option<&str>,
) -> bool {
    let may_use = uploader.is_none_or(|own| row.metadata == own || row.metadata == "{}");
    let is_free = row.conversation_id.is_none() && row.run_id.is_none() && row.agent.is_none();
    let is_free = is_free && may_use;
    // An upload for the conversation belongs to the session of the first event that names it.
    let is_reached = row.session == session || (row.run_id.is_none() && row.agent.is_none());
    let is_there = conversation.is_some() && row.conversation_id.as_deref() == conversation;
    is_free || (is_there && is_reached)
}

/// The ids of artifacts that an event refers to.
pub(crate) fn uploads_of(event: &NewEvent) -> Vec<String> {
    let media =
        event.input.contents.iter().filter_map(|element| element.media()?.artifact_id.clone());
    let attached = event.input.attachments.iter().map(|attached| attached.artifact_id.clone());
    let mut ids: Vec<String> = media.chain(attached).filter(|id| !id.contains('\0')).collect();
    ids.sort();
    ids.dedup();
    ids.truncate(UPLOADS_MAX);
    ids
}

pub(crate) fn media_mut(element: &mut ContentElement) -> Option<&mut MediaElement> {
    match element {
        ContentElement::Text { .. } => None,
        ContentElement::Image(media)
        | ContentElement::Audio(media)
        | ContentElement::Video(media)
        | ContentElement::File(media) => Some(media),
    }
}

fn is_large(media: &MediaElement) -> bool {
    media.data_base64.as_ref().is_some_and(|data| data.len() / 4 * 3 > CONTENT_BYTES_MAX)
}

/// The data as JSON, if it is too large to be inline.
fn large(data: &Object) -> Option<Vec<u8>> {
    if data.is_empty() {
        return None;
    }
    let data = json!(data).to_string().into_bytes();
    (data.len() > DATA_BYTES_MAX).then_some(data)
}

pub(super) fn staged(bytes: Vec<u8>) -> Staged {
    Staged::from_bytes(Bytes::from(bytes))
}

pub(super) fn refusal(error: ArtifactError, part: &str) -> Refusal {
    match error {
        ArtifactError::Invalid(reason) => Refusal::Invalid(format!("`{part}`: {reason}")),
        ArtifactError::Objects(ObjectsError::Full) => Refusal::Store(StoreError::Full),
        ArtifactError::Store(error) => Refusal::Store(error),
        error => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot store the large parts of an event"
            );
            Refusal::Store(StoreError::Unavailable(error.to_string()))
        }
    }
}
