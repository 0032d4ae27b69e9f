//! `message.delta` parsed without copying: the one payload that the host handles 200,000 times a second.
//!
//! Invariant: `DeltaRef::parse` accepts what `MessageDelta` accepts, if all of it is readable JSON, and reports
//! additional fields.

use crate::Role;
use crate::payload::{InvalidPayload, MessageChunk, MessageDelta, Payload, check_readable};
use crate::result::kind;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The data of one `message.delta`, borrowed from its JSON text unless it contains escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaRef<'a> {
    pub role: Role,
    pub content: Cow<'a, str>,
    pub message_id: Option<Cow<'a, str>>,
    /// The content replaces all deltas since the last `message.completed`.
    pub replace: bool,
    /// There are fields beyond `chunk.{role,content,message_id}`, which must be kept from the text.
    pub has_more: bool,
}

impl<'a> DeltaRef<'a> {
    pub fn parse(data: &'a str) -> Result<Self, InvalidPayload> {
        let delta: Self = serde_json::from_str(data).map_err(|reason| InvalidPayload::Shape {
            kind: kind::MESSAGE_DELTA.to_owned(),
            reason,
        })?;
        if delta.has_more {
            check_readable(kind::MESSAGE_DELTA, data)?;
        }
        Ok(delta)
    }
}

impl From<DeltaRef<'_>> for Payload {
    fn from(delta: DeltaRef<'_>) -> Self {
        Payload::MessageDelta(MessageDelta {
            chunk: MessageChunk {
                role: delta.role,
                content: delta.content.into_owned(),
                message_id: delta.message_id.map(Cow::into_owned),
                replace: delta.replace,
            },
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for DeltaRef<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(DeltaVisitor)
    }
}

struct DeltaVisitor;

impl<'de> Visitor<'de> for DeltaVisitor {
    type Value = DeltaRef<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `chunk`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DeltaRef<'de>, A::Error> {
        let mut chunk: Option<Chunk<'de>> = None;
        let mut has_more = false;
        while let Some(field) = map.next_key::<DeltaField>()? {
            match field {
                DeltaField::Chunk => set(&mut chunk, "chunk", map.next_value()?)?,
                DeltaField::Other => {
                    map.next_value::<IgnoredAny>()?;
                    has_more = true;
                }
            }
        }
        let Chunk(delta) = chunk.ok_or_else(|| A::Error::missing_field("chunk"))?;
        Ok(DeltaRef { has_more: has_more || delta.has_more, ..delta })
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum DeltaField {
    Chunk,
    #[serde(other)]
    Other,
}

struct Chunk<'a>(DeltaRef<'a>);

impl<'de> Deserialize<'de> for Chunk<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ChunkVisitor).map(Chunk)
    }
}

struct ChunkVisitor;

impl<'de> Visitor<'de> for ChunkVisitor {
    type Value = DeltaRef<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `content`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DeltaRef<'de>, A::Error> {
        let mut role: Option<Role> = None;
        let mut content: Option<Text<'de>> = None;
        let mut message_id: Option<Option<Text<'de>>> = None;
        let mut replace: Option<bool> = None;
        let mut has_more = false;
        while let Some(field) = map.next_key::<ChunkField>()? {
            match field {
                ChunkField::Role => set(&mut role, "role", map.next_value()?)?,
                ChunkField::Content => set(&mut content, "content", map.next_value()?)?,
                ChunkField::MessageId => set(&mut message_id, "message_id", map.next_value()?)?,
                ChunkField::Replace => set(&mut replace, "replace", map.next_value()?)?,
                ChunkField::Other => {
                    map.next_value::<IgnoredAny>()?;
                    has_more = true;
                }
            }
        }
        let Text(content) = content.ok_or_else(|| A::Error::missing_field("content"))?;
        let message_id = message_id.flatten().map(|Text(id)| id);
        let role = role.unwrap_or(Role::Assistant);
        // Rare, so it is stored as it came.
        let has_more = has_more || replace.is_some();
        Ok(DeltaRef { role, content, message_id, replace: replace == Some(true), has_more })
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum ChunkField {
    Role,
    Content,
    MessageId,
    Replace,
    #[serde(other)]
    Other,
}

#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn set<T, E: Error>(slot: &mut Option<T>, field: &'static str, value: T) -> Result<(), E> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(field)),
    }
}
