//! Large parts of an event outside of `data` and its contents, and `data:` addresses anywhere.
//!
//! Invariant: the same sizes count everywhere: bytes over `CONTENT_BYTES_MAX` and objects over `DATA_BYTES_MAX` become
//! artifacts. Small entries of a large object stay in it, so that what is looked up by name is found.

use super::ingest::{CONTENT_BYTES_MAX, DATA_BYTES_MAX, media_mut, refusal, staged};
use super::{Draft, Kept, Owner, reference};
use crate::gateway::Refusal;
use crate::host::Shared;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::{NewEvent, Object};
use serde_json::{Value, json};

/// What a text becomes whose bytes are stored as an artifact.
const REFERENCE: &str = "artifact:";
const JSON: &str = "application/json";

impl Shared {
    /// Stores the large parts of an event's objects and addresses.
    pub(super) async fn ingest_parts(
        &self,
        event: &mut NewEvent,
        owner: &Owner,
        kept: &mut Vec<Kept>,
    ) -> Result<(), Refusal> {
        for media in event.input.contents.iter_mut().filter_map(media_mut) {
            let Some(address) = media.url.as_deref().and_then(DataAddress::parse) else { continue };
            let name = media.name.clone();
            let one = self.keep_address(&address, name, owner, "input.contents").await?;
            media.url = None;
            media.artifact_id = Some(one.row.artifact_id.clone());
            media.mime_type = Some(one.row.mime_type.clone());
            kept.push(one);
        }
        for (name, object) in objects(event) {
            let mut texts = Vec::new();
            object.values_mut().for_each(|value| addresses(value, &mut texts));
            for text in texts {
                let Some(address) = DataAddress::parse(text) else { continue };
                let one = self.keep_address(&address, None, owner, name).await?;
                *text = format!("{REFERENCE}{}", one.row.artifact_id);
                kept.push(one);
            }
            self.shrink(object, owner, name, kept).await?;
        }
        Ok(())
    }

    /// Replaces the large entries of an object that is too large, or else all of it.
    async fn shrink(
        &self,
        object: &mut Object,
        owner: &Owner,
        name: &str,
        kept: &mut Vec<Kept>,
    ) -> Result<(), Refusal> {
        if bytes_of(object) <= DATA_BYTES_MAX {
            return Ok(());
        }
        for value in object.values_mut() {
            let text = value.to_string();
            if text.len() > CONTENT_BYTES_MAX {
                *value = self.keep_json(text, owner, name, kept).await?;
            }
        }
        if bytes_of(object) > DATA_BYTES_MAX {
            let text = json!(object).to_string();
            let instead = self.keep_json(text, owner, name, kept).await?;
            *object = instead.as_object().cloned().unwrap_or_default();
        }
        Ok(())
    }

    async fn keep_json(
        &self,
        text: String,
        owner: &Owner,
        name: &str,
        kept: &mut Vec<Kept>,
    ) -> Result<Value, Refusal> {
        let mime_type = Some(JSON.to_owned());
        let draft = Draft { mime_type, owner: owner.clone(), ..Draft::default() };
        let one = self.artifacts.keep(staged(text.into_bytes()), draft, &self.redactor).await;
        let one = one.map_err(|error| refusal(error, name))?;
        let instead = json!({"artifact": reference(&one), "truncated": true});
        kept.push(one);
        Ok(instead)
    }

    async fn keep_address(
        &self,
        address: &DataAddress,
        name: Option<String>,
        owner: &Owner,
        part: &str,
    ) -> Result<Kept, Refusal> {
        let bytes = STANDARD.decode(&address.base64);
        let bytes = bytes
            .map_err(|error| Refusal::Invalid(format!("`{part}`: a `data:` address: {error}")))?;
        let mime_type = address.mime_type.clone();
        let draft = Draft { name, mime_type, owner: owner.clone(), ..Draft::default() };
        let one = self.artifacts.keep(staged(bytes), draft, &self.redactor).await;
        one.map_err(|error| refusal(error, part))
    }
}

/// A `data:` address with many bytes.
struct DataAddress {
    mime_type: Option<String>,
    base64: String,
}

impl DataAddress {
    fn parse(text: &str) -> Option<Self> {
        if text.len() / 4 * 3 <= CONTENT_BYTES_MAX {
            return None;
        }
        let (head, base64) = text.strip_prefix("data:")?.split_once(',')?;
        let mime_type = head.strip_suffix(";base64")?.trim();
        let mime_type = (!mime_type.is_empty()).then(|| mime_type.to_owned());
        Some(Self { mime_type, base64: base64.to_owned() })
    }
}

/// The objects of an event that senders fill as they like, with their names.
fn objects(event: &mut NewEvent) -> impl Iterator<Item = (&'static str, &mut Object)> {
    let input = &mut event.input;
    let chain = input.message_chain.as_mut().map(|chain| ("input.message_chain", chain));
    let actor = event.actor.as_mut();
    let actor = actor.map(|it| [("actor.metadata", &mut it.metadata), ("actor", &mut it.extra)]);
    let subject = event.subject.as_mut();
    let subject = subject.map(|it| [("subject.data", &mut it.data), ("subject", &mut it.extra)]);
    chain
        .into_iter()
        .chain([("input", &mut input.extra), ("metadata", &mut event.metadata)])
        .chain(actor.into_iter().flatten())
        .chain(subject.into_iter().flatten())
}

/// The texts in a value that are large `data:` addresses.
fn addresses<'a>(value: &'a mut Value, found: &mut Vec<&'a mut String>) {
    match value {
        Value::String(text) if text.starts_with("data:") => found.push(text),
        Value::Array(items) => items.iter_mut().for_each(|item| addresses(item, found)),
        Value::Object(fields) => fields.values_mut().for_each(|field| addresses(field, found)),
        _ => {}
    }
}

fn bytes_of(object: &Object) -> usize {
    if object.is_empty() { 0 } else { json!(object).to_string().len() }
}
