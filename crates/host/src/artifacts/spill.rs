//! Turns large parts of a result into artifacts; the result carries a reference and a preview.
//!
//! Invariant: only large tool outputs, large messages and artifacts with inline bytes are changed; the artifact
//! holds everything that was removed.

use super::{ArtifactError, Draft, Kept, Owner};
use crate::context::Identity;
use crate::host::Shared;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_objects::Staged;
use greenroom_protocol::api::artifacts::check_artifact_name;
use greenroom_protocol::content::MediaElement;
use greenroom_protocol::payload::{
    ArtifactCreated, Message, MessageCompleted, RunCompleted, ToolCallCompleted,
};
use greenroom_protocol::result::kind;
use greenroom_protocol::{ArtifactRef, ContentElement, MessageContent, Object, RawResult};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// Bytes of text left in place of what was removed.
const PREVIEW_BYTES: usize = 2 * 1024;
/// Small parts stay beside the reference up to this size.
const BESIDE_BYTES_MAX: usize = 16 * 1024;
const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// A result that was changed, and the bytes that it refers to now.
pub(crate) struct Spilled {
    pub(crate) data: Box<RawValue>,
    pub(crate) kept: Kept,
}

/// A result whose bytes have to be stored first.
enum Large {
    Artifact(ArtifactCreated),
    Tool(ToolCallCompleted),
    Message(MessageCompleted),
    End(RunCompleted, Message),
}

impl Shared {
    /// Stores what is too large for a result of `bytes_max` bytes, and all inline bytes of artifacts.
    pub(crate) async fn spill(
        &self,
        identity: &Identity,
        result: &RawResult,
        bytes_max: usize,
    ) -> Result<Option<Spilled>, ArtifactError> {
        let Some(large) = large(result, bytes_max) else { return Ok(None) };
        let owner = owner_of(identity);
        match large {
            Large::Artifact(created) => self.keep_inline(created, owner).await,
            Large::Tool(call) => self.keep_output(call, owner).await,
            Large::Message(completed) => {
                let (message, kept) = self.keep_message(completed.message, owner).await?;
                Ok(Spilled { data: raw(&MessageCompleted { message }), kept })
            }
            Large::End(mut completed, message) => {
                let (message, kept) = self.keep_message(message, owner).await?;
                completed.message = Some(message);
                Ok(Spilled { data: raw(&completed), kept })
            }
        }
        .map(Some)
    }

    /// The message made from the deltas of a run at its end, treated like a `message.completed`: if it is too
    /// large, it becomes an artifact. If that fails, it is cut; the deltas themselves are among the results.
    pub(crate) async fn fold(
        &self,
        identity: &Identity,
        message: Message,
    ) -> (Message, Option<Kept>) {
        if !is_large(&message, self.settings.load().limits.result_bytes) {
            return (message, None);
        }
        let beginning = cut(&message);
        match self.keep_message(message, owner_of(identity)).await {
            Ok((message, kept)) => (message, Some(kept)),
            Err(error) => {
                tracing::warn!(%error, run.id = %identity.run_id, "cannot store the text of a run, text cut");
                (beginning, None)
            }
        }
    }

    async fn keep_inline(
        &self,
        mut created: ArtifactCreated,
        owner: Owner,
    ) -> Result<Spilled, ArtifactError> {
        let bytes = created.content_base64.take().unwrap_or_default();
        let bytes = STANDARD.decode(bytes);
        let bytes =
            bytes.map_err(|error| ArtifactError::Invalid(format!("`content_base64`: {error}")))?;
        let bytes_max = self.settings.load().limits.artifact_bytes;
        if bytes.len() as u64 > bytes_max {
            return Err(ArtifactError::TooLarge { bytes_max });
        }
        check_claims(&created, &bytes)?;
        let mut metadata = created.metadata.take().unwrap_or_default();
        if let Some(id) = created.artifact_id.take() {
            // The runner's name for it; the host assigns ids.
            metadata.insert("runner_artifact_id".to_owned(), id.into());
        }
        let draft = Draft {
            name: created.name.take(),
            mime_type: created.mime_type.take(),
            metadata,
            expires_at: None,
            owner,
        };
        let bytes = self.redactor.exact().bytes(&bytes).into_owned();
        let kept = self.artifacts.keep(staged(bytes), draft, &self.redactor).await?;
        let row = &kept.row;
        let data = ArtifactCreated {
            artifact_id: Some(row.artifact_id.clone()),
            name: row.name.clone(),
            mime_type: Some(row.mime_type.clone()),
            size_bytes: u64::try_from(row.size).ok(),
            sha256: Some(row.sha256.clone()),
            content_base64: None,
            metadata: serde_json::from_str(&row.metadata).ok(),
        };
        Ok(Spilled { data: raw(&data), kept })
    }

    async fn keep_output(
        &self,
        mut call: ToolCallCompleted,
        owner: Owner,
    ) -> Result<Spilled, ArtifactError> {
        self.redactor.value(&mut call.result);
        let (instead, kept) = self.keep_large(&call.result, owner).await?;
        call.result = instead;
        if call.error.to_string().len() > BESIDE_BYTES_MAX {
            call.error = self::preview(&call.error.to_string()).into();
        }
        Ok(Spilled { data: raw(&call), kept })
    }

    async fn keep_message(
        &self,
        message: Message,
        owner: Owner,
    ) -> Result<(Message, Kept), ArtifactError> {
        let message = self.clean_message(message)?;
        let text = message.content.text();
        let mut parts = vec![ContentElement::Text { text: format!("{} …", preview(&text)) }];
        parts.extend(message.media().filter(|part| is_reference(part)).cloned());
        let is_text_alone = message.segments.is_none() && message.media().next().is_none();
        let (body, mime_type) = match is_text_alone {
            true => (text, TEXT),
            false => (json!(message).to_string(), JSON),
        };
        let Message { role, message_id, metadata, .. } = message;
        let kept = self.keep_text(body, mime_type, owner).await?;
        parts.push(ContentElement::File(MediaElement {
            artifact_id: Some(kept.row.artifact_id.clone()),
            mime_type: Some(kept.row.mime_type.clone()),
            ..MediaElement::default()
        }));
        let metadata = metadata.filter(|all| json!(all).to_string().len() <= BESIDE_BYTES_MAX);
        let mut metadata = metadata.unwrap_or_default();
        metadata.insert("truncated".to_owned(), true.into());
        let content = MessageContent::Parts(parts);
        let message =
            Message { role, content, message_id, segments: None, metadata: Some(metadata) };
        Ok((message, kept))
    }

    /// The message without secrets. Consumes it, because it may be many megabytes.
    fn clean_message(&self, message: Message) -> Result<Message, ArtifactError> {
        let mut whole = serde_json::to_value(&message).unwrap_or_default();
        drop(message);
        self.redactor.value(&mut whole);
        serde_json::from_value(whole).map_err(|error| ArtifactError::Invalid(error.to_string()))
    }

    /// Bytes that a tool returned besides its result.
    pub(crate) async fn keep_attachment(
        &self,
        bytes: Vec<u8>,
        name: Option<String>,
        mime_type: String,
        owner: Owner,
    ) -> Result<Kept, ArtifactError> {
        let bytes = self.redactor.exact().bytes(&bytes).into_owned();
        let staged = staged(bytes);
        // A server may give a wrong type, and a path as the name.
        let agreed = greenroom_objects::mime::agree(Some(&mime_type), staged.head()).is_ok();
        let mime_type = agreed.then_some(mime_type);
        let name = name.filter(|name| check_artifact_name(name).is_ok());
        let draft = Draft { name, mime_type, owner, ..Draft::default() };
        self.artifacts.keep(staged, draft, &self.redactor).await
    }

    /// A result that is too large to return: its replacement, and the bytes.
    pub(crate) async fn keep_large(
        &self,
        result: &Value,
        owner: Owner,
    ) -> Result<(Value, Kept), ArtifactError> {
        let (text, mime_type) = match result {
            Value::String(text) => (text.clone(), TEXT),
            other => (other.to_string(), JSON),
        };
        let preview = preview(&text).to_owned();
        let kept = self.keep_text(text, mime_type, owner).await?;
        let instead = json!({"artifact": reference(&kept), "preview": preview, "truncated": true});
        Ok((instead, kept))
    }

    async fn keep_text(
        &self,
        text: String,
        mime_type: &str,
        owner: Owner,
    ) -> Result<Kept, ArtifactError> {
        // It may hold any character, U+0000 too: then it is stored as bytes, not as text.
        let plain = !text.bytes().any(|byte| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r'));
        let mime_type = if plain { mime_type } else { greenroom_objects::mime::OCTETS };
        let draft = Draft { mime_type: Some(mime_type.to_owned()), owner, ..Draft::default() };
        let staged = staged(text.into_bytes());
        // Text that begins like another type is stored all the same.
        let draft = match greenroom_objects::mime::agree(draft.mime_type.as_deref(), staged.head())
        {
            Ok(_) => draft,
            Err(_) => {
                Draft { mime_type: Some(greenroom_objects::mime::OCTETS.to_owned()), ..draft }
            }
        };
        self.artifacts.keep(staged, draft, &self.redactor).await
    }
}

/// Whether a message of text alone is more than a result may hold.
pub(crate) fn is_large(message: &Message, bytes_max: usize) -> bool {
    message.content.text().len() > bytes_max
}

/// The beginning of a message of text alone.
fn cut(message: &Message) -> Message {
    let text = format!("{} …", preview(&message.content.text()));
    let mut metadata = message.metadata.clone().unwrap_or_default();
    metadata.insert("truncated".to_owned(), true.into());
    Message { metadata: Some(metadata), ..Message::assistant(text) }
}

pub(crate) fn owner_of(identity: &Identity) -> Owner {
    Owner {
        conversation_id: identity.conversation_id.clone(),
        session: identity.session.clone(),
        run_id: Some(identity.run_id.clone()),
        agent: Some(identity.agent.clone()),
    }
}

/// A quick check whether a result may have to spill; almost none has.
pub(crate) fn may_spill(result: &RawResult, bytes_max: usize) -> bool {
    let bytes = result.data.as_ref().map_or(0, |data| data.get().len());
    bytes > bytes_max || result.kind == kind::ARTIFACT_CREATED
}

/// What has to be stored before the result can be numbered.
fn large(result: &RawResult, bytes_max: usize) -> Option<Large> {
    let data = result.data.as_deref()?.get();
    match result.kind.as_ref() {
        kind::ARTIFACT_CREATED => {
            let created: ArtifactCreated = serde_json::from_str(data).ok()?;
            created.content_base64.is_some().then_some(Large::Artifact(created))
        }
        kind::TOOL_CALL_COMPLETED if data.len() > bytes_max => {
            serde_json::from_str(data).ok().map(Large::Tool)
        }
        kind::MESSAGE_COMPLETED if data.len() > bytes_max => {
            serde_json::from_str(data).ok().map(Large::Message)
        }
        kind::RUN_COMPLETED if data.len() > bytes_max => {
            let mut completed: RunCompleted = serde_json::from_str(data).ok()?;
            let message = completed.message.take()?;
            Some(Large::End(completed, message))
        }
        _ => None,
    }
}

/// A size or hash given by the runner has to match the bytes.
fn check_claims(created: &ArtifactCreated, bytes: &[u8]) -> Result<(), ArtifactError> {
    let disagree = |field: &str| {
        Err(ArtifactError::Invalid(format!("`{field}` does not match `content_base64`")))
    };
    if created.size_bytes.is_some_and(|size| size != bytes.len() as u64) {
        return disagree("size_bytes");
    }
    let hash = || greenroom_objects::ObjectId::of(bytes).to_string();
    match &created.sha256 {
        Some(claimed) if claimed.to_ascii_lowercase() != hash() => disagree("sha256"),
        _ => Ok(()),
    }
}

/// The reference to stored bytes.
pub(crate) fn reference(kept: &Kept) -> ArtifactRef {
    ArtifactRef {
        artifact_id: kept.row.artifact_id.clone(),
        name: kept.row.name.clone(),
        mime_type: Some(kept.row.mime_type.clone()),
        size_bytes: u64::try_from(kept.row.size).ok(),
        sha256: Some(kept.row.sha256.clone()),
        metadata: Object::new(),
        extra: Object::new(),
    }
}

/// Media by reference.
fn is_reference(part: &ContentElement) -> bool {
    part.media().is_some_and(|media| media.data_base64.is_none())
}

/// The beginning of a text, whole characters only.
fn preview(text: &str) -> &str {
    &text[..text.floor_char_boundary(PREVIEW_BYTES)]
}

fn staged(bytes: Vec<u8>) -> Staged {
    Staged::from_bytes(Bytes::from(bytes))
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
