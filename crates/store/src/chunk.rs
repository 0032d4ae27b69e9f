//! Stored results: many in one row, deltas coalesced, boundaries kept.
//!
//! Invariant: decoding gives back exactly the results that were put in, number by number, so that a reader
//! resumes at any number without losing or repeating a character.

use crate::StoreError;
use crate::types::{Chunk, ResultRecord};
use greenroom_protocol::result::kind;
use greenroom_protocol::{Role, RunError};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

/// One delta that carries nothing but its role, its text and perhaps its message's id.
#[derive(Debug, Clone, Copy)]
pub struct Delta<'a> {
    pub sequence: i64,
    pub role: Role,
    pub message_id: Option<&'a str>,
    pub text: &'a str,
    pub at_ms: i64,
    pub runner_sequence: Option<i64>,
    pub runner_timestamp: Option<i64>,
}

/// Collects results until they are stored together.
#[derive(Debug, Default)]
pub struct ChunkBuilder {
    entries: Vec<Entry>,
    first_seq: i64,
    last_seq: i64,
    bytes: usize,
}

/// Either one result (`kind` and `data`) or a block of consecutive deltas (`text` and `lengths`).
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    #[serde(rename = "s")]
    sequence: i64,
    #[serde(rename = "t")]
    at_ms: i64,
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    runner_sequence: Option<i64>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    runner_timestamp: Option<i64>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    usage: Option<Box<RawValue>>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(rename = "x", default, skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    lengths: Vec<u32>,
}

impl ChunkBuilder {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// About how large the chunk has grown.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push_delta(&mut self, delta: Delta<'_>) {
        self.advance(delta.sequence, delta.text.len() + 4);
        let length = u32::try_from(delta.text.len()).unwrap_or(u32::MAX);
        if let Some(block) = self.entries.last_mut().filter(|block| block.continues(&delta)) {
            block.text.push_str(delta.text);
            block.lengths.push(length);
            return;
        }
        self.entries.push(Entry {
            sequence: delta.sequence,
            at_ms: delta.at_ms,
            runner_sequence: delta.runner_sequence,
            runner_timestamp: delta.runner_timestamp,
            kind: None,
            data: None,
            usage: None,
            role: Some(delta.role),
            message_id: delta.message_id.map(str::to_owned),
            text: delta.text.to_owned(),
            lengths: vec![length],
        });
    }

    pub fn push(&mut self, record: &ResultRecord) {
        self.advance(record.sequence, record.data.get().len() + 64);
        self.entries.push(Entry {
            sequence: record.sequence,
            at_ms: record.at_ms,
            runner_sequence: record.runner_sequence,
            runner_timestamp: record.runner_timestamp,
            kind: Some(record.kind.clone().into_owned()),
            data: Some(record.data.clone()),
            usage: record.usage.clone(),
            role: None,
            message_id: None,
            text: String::new(),
            lengths: Vec::new(),
        });
    }

    /// The chunk, and an empty builder again; nothing when nothing was pushed.
    pub fn take(&mut self) -> Option<Chunk> {
        if self.entries.is_empty() {
            return None;
        }
        let built = std::mem::take(self);
        let body = serde_json::to_string(&built.entries).unwrap_or_default();
        Some(Chunk { first_seq: built.first_seq, last_seq: built.last_seq, body })
    }

    /// A chunk that holds `run.failed` alone, for runs that never started.
    pub fn terminal_failed(sequence: i64, error: &RunError, at_ms: i64) -> Chunk {
        let mut builder = ChunkBuilder::default();
        builder.push(&ResultRecord {
            sequence,
            kind: Cow::Borrowed(kind::RUN_FAILED),
            data: to_raw_value(error).unwrap_or_else(|_| RawValue::NULL.to_owned()),
            at_ms,
            runner_sequence: None,
            runner_timestamp: None,
            usage: None,
        });
        builder.take().unwrap_or(Chunk {
            first_seq: sequence,
            last_seq: sequence,
            body: "[]".into(),
        })
    }

    fn advance(&mut self, sequence: i64, bytes: usize) {
        if self.entries.is_empty() {
            self.first_seq = sequence;
        }
        self.last_seq = sequence;
        self.bytes += bytes;
    }
}

impl Entry {
    fn continues(&self, delta: &Delta<'_>) -> bool {
        let Ok(count) = i64::try_from(self.lengths.len()) else { return false };
        self.kind.is_none()
            && self.sequence + count == delta.sequence
            && self.at_ms == delta.at_ms
            && self.runner_timestamp == delta.runner_timestamp
            && self.role == Some(delta.role)
            && self.message_id.as_deref() == delta.message_id
            && self.runner_sequence.map(|first| first.checked_add(count))
                == delta.runner_sequence.map(Some)
    }
}

/// The results of a stored chunk, in order.
pub fn decode(body: &str) -> Result<Vec<ResultRecord>, StoreError> {
    let entries: Vec<Entry> = serde_json::from_str(body)
        .map_err(|error| StoreError::Refused(format!("a stored chunk does not parse: {error}")))?;
    let mut records = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry.kind {
            Some(kind) => records.push(ResultRecord {
                sequence: entry.sequence,
                kind: Cow::Owned(kind),
                data: entry.data.unwrap_or_else(|| RawValue::NULL.to_owned()),
                at_ms: entry.at_ms,
                runner_sequence: entry.runner_sequence,
                runner_timestamp: entry.runner_timestamp,
                usage: entry.usage,
            }),
            None => unfold(&entry, &mut records)?,
        }
    }
    Ok(records)
}

fn unfold(block: &Entry, records: &mut Vec<ResultRecord>) -> Result<(), StoreError> {
    let mut start = 0;
    for (index, length) in (0_i64..).zip(&block.lengths) {
        let end = start + *length as usize;
        let text = block.text.get(start..end).ok_or_else(|| {
            StoreError::Refused("a stored delta block has wrong boundaries".to_owned())
        })?;
        start = end;
        records.push(ResultRecord {
            sequence: block.sequence + index,
            kind: Cow::Borrowed(kind::MESSAGE_DELTA),
            data: delta_data(
                block.role.unwrap_or(Role::Assistant),
                text,
                block.message_id.as_deref(),
            ),
            at_ms: block.at_ms,
            runner_sequence: block.runner_sequence.map(|first| first + index),
            runner_timestamp: block.runner_timestamp,
            usage: None,
        });
    }
    Ok(())
}

#[derive(Serialize)]
struct DeltaData<'a> {
    chunk: DeltaChunk<'a>,
}

#[derive(Serialize)]
struct DeltaChunk<'a> {
    role: Role,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
}

/// The data of a `message.delta`, in the form in which it is published.
pub fn delta_data(role: Role, content: &str, message_id: Option<&str>) -> Box<RawValue> {
    to_raw_value(&DeltaData { chunk: DeltaChunk { role, content, message_id } })
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(records: &[ResultRecord]) -> Vec<String> {
        let line = |r: &ResultRecord| {
            format!(
                "{} {} {} {} {:?}{}",
                r.sequence,
                r.kind,
                r.data,
                r.at_ms,
                r.runner_sequence,
                r.runner_timestamp.map(|at| format!(" at {at}")).unwrap_or_default()
            )
        };
        records.iter().map(line).collect()
    }

    #[test]
    fn a_block_of_deltas_comes_back_number_by_number() {
        let mut builder = ChunkBuilder::default();
        for (index, text) in ["你", "好, ", "", "wor\"ld"].into_iter().enumerate() {
            builder.push_delta(Delta {
                sequence: 7 + index as i64,
                role: Role::Assistant,
                message_id: None,
                text,
                at_ms: 99,
                runner_sequence: Some(1 + index as i64),
                runner_timestamp: None,
            });
        }
        let chunk = builder.take().unwrap();
        assert_eq!((chunk.first_seq, chunk.last_seq), (7, 10));
        assert_eq!(
            lines(&decode(&chunk.body).unwrap()),
            [
                r#"7 message.delta {"chunk":{"role":"assistant","content":"你"}} 99 Some(1)"#,
                r#"8 message.delta {"chunk":{"role":"assistant","content":"好, "}} 99 Some(2)"#,
                r#"9 message.delta {"chunk":{"role":"assistant","content":""}} 99 Some(3)"#,
                r#"10 message.delta {"chunk":{"role":"assistant","content":"wor\"ld"}} 99 Some(4)"#,
            ]
        );
        assert!(builder.is_empty());
    }

    #[test]
    fn a_chunk_of_the_first_version_is_read() {
        let body = r#"[{"s":1,"t":99,"r":"assistant","m":"m1","x":"蓝色的","n":[6,3]},
            {"s":3,"t":99,"q":7,"k":"run.completed","d":{"finish_reason": "stop"},"u":{"input_tokens": 3}}]"#;
        assert_eq!(
            lines(&decode(body).unwrap()),
            [
                r#"1 message.delta {"chunk":{"role":"assistant","content":"蓝色","message_id":"m1"}} 99 None"#,
                r#"2 message.delta {"chunk":{"role":"assistant","content":"的","message_id":"m1"}} 99 None"#,
                r#"3 run.completed {"finish_reason": "stop"} 99 Some(7)"#,
            ]
        );
    }

    #[test]
    fn numbers_of_a_runners_own_do_not_run_over() {
        let mut builder = ChunkBuilder::default();
        for (sequence, runner_sequence) in [(1, Some(i64::MAX)), (2, None), (3, None)] {
            let (role, message_id, text, at_ms) = (Role::Assistant, None, "x", 9);
            let runner_timestamp = None;
            builder.push_delta(Delta {
                sequence,
                role,
                message_id,
                text,
                at_ms,
                runner_sequence,
                runner_timestamp,
            });
        }
        let records = decode(&builder.take().unwrap().body).unwrap();
        let numbers: Vec<Option<i64>> = records.iter().map(|one| one.runner_sequence).collect();
        assert_eq!(numbers, [Some(i64::MAX), None, None]);
    }

    proptest! {
        #[test]
        fn whatever_goes_in_comes_out(
            steps in prop::collection::vec(
                (1..3_i64, ".{0,8}", 0..2_i64, prop::option::of(0..9_i64), prop::option::of("[ab]"), any::<bool>(),
                    prop::option::of(0..2_i64)),
                1..60,
            )
        ) {
            let mut builder = ChunkBuilder::default();
            let mut expected = Vec::new();
            let (mut sequence, mut at_ms) = (0, 1000);
            for (gap, text, second, runner_sequence, message_id, plain, runner_timestamp) in &steps {
                sequence += gap;
                at_ms += second;
                let data = delta_data(Role::Assistant, text, message_id.as_deref());
                if *plain {
                    builder.push_delta(Delta {
                        sequence,
                        role: Role::Assistant,
                        message_id: message_id.as_deref(),
                        text,
                        at_ms,
                        runner_sequence: *runner_sequence,
                        runner_timestamp: *runner_timestamp,
                    });
                }
                let record = ResultRecord {
                    sequence,
                    kind: Cow::Borrowed(kind::MESSAGE_DELTA),
                    data,
                    at_ms,
                    runner_sequence: *runner_sequence,
                    runner_timestamp: *runner_timestamp,
                    usage: None,
                };
                if !*plain {
                    builder.push(&record);
                }
                expected.push(record);
            }
            let chunk = builder.take().unwrap();
            prop_assert_eq!(lines(&decode(&chunk.body).unwrap()), lines(&expected));
        }

        #[test]
        fn a_damaged_body_is_an_error_and_no_panic(body in ".{0,200}") {
            let _ = decode(&body);
        }
    }
}
