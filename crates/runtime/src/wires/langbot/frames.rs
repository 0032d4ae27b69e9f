//! Frames of the LangBot wire: one JSON object per line, long messages in pieces.
//!
//! Invariant: no line is longer than the plugin reads, and the lines of one message are contiguous.

use bytes::Bytes;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Longest message in one line, and longest piece of a longer one.
pub(crate) const PIECE_BYTES_MAX: usize = 16 * 1024;
/// Enough for most requests.
const REQUEST_BYTES: usize = 4 * 1024;
/// Longest message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most pieces of a long message.
pub(crate) const PIECES_MAX: usize = 4096;

/// A line of the plugin, borrowed.
#[derive(Debug, Deserialize)]
pub(crate) struct Frame<'a> {
    /// Only in pieces of a long message.
    #[serde(default, borrow, rename = "type")]
    pub(crate) kind: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) total_size: Option<u64>,
    #[serde(default)]
    pub(crate) offset: Option<u64>,
    #[serde(default)]
    pub(crate) seq_id: Option<i64>,
    /// Only in requests.
    #[serde(default, borrow)]
    pub(crate) action: Option<Cow<'a, str>>,
    /// Only in responses; 0 is success.
    #[serde(default)]
    pub(crate) code: Option<i64>,
    #[serde(default, borrow)]
    pub(crate) message: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(crate) data: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(crate) chunk_status: Option<Cow<'a, str>>,
    /// 1 if the plugin acknowledges chunks.
    #[serde(default)]
    pub(crate) stream_flow_control: Option<u8>,
}

/// Whether further answers to the same call follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Continue,
    End,
}

impl Part {
    fn as_str(self) -> &'static str {
        match self {
            Part::Continue => "continue",
            Part::End => "end",
        }
    }
}

pub(crate) fn request(number: i64, action: &str, data: &impl Serialize) -> Bytes {
    let mut message = Vec::with_capacity(REQUEST_BYTES);
    message.extend_from_slice(
        format!(r#"{{"seq_id":{number},"action":"{action}","data":"#).as_bytes(),
    );
    // Protocol types have string keys only and no failing serialisers.
    serde_json::to_writer(&mut message, data).expect("protocol types are JSON");
    message.push(b'}');
    framed(message)
}

/// The only answer to a call.
pub(crate) fn answer(id: &str, answer: Result<Box<RawValue>, AgentAPIError>) -> Bytes {
    match answer {
        Ok(data) => success(id, data.get(), Part::Continue, None),
        Err(error) => refusal(id, &error),
    }
}

/// One answer to a call; `index` counts the chunks of a stream that is acknowledged.
pub(crate) fn success(id: &str, data: &str, part: Part, index: Option<u64>) -> Bytes {
    let status = part.as_str();
    let index = index.map(|index| format!(r#","stream_index":{index}"#)).unwrap_or_default();
    let message = format!(
        r#"{{"seq_id":{id},"code":0,"message":"success","data":{data},"chunk_status":"{status}"{index}}}"#
    );
    if message.len() > MESSAGE_BYTES_MAX {
        let bytes = message.len();
        let message = format!("the answer has {bytes} bytes, {MESSAGE_BYTES_MAX} are allowed");
        return refusal(id, &AgentAPIError::new(ErrorCode::PayloadTooLarge, message));
    }
    framed(message.into_bytes())
}

fn refusal(id: &str, error: &AgentAPIError) -> Bytes {
    let text = json!(error.message);
    let data = json!({ "error": error });
    let message = format!(
        r#"{{"seq_id":{id},"code":1,"message":{text},"data":{data},"chunk_status":"continue"}}"#
    );
    framed(message.into_bytes())
}

/// One line, or the lines of a long message.
fn framed(mut message: Vec<u8>) -> Bytes {
    if message.len() <= PIECE_BYTES_MAX {
        message.push(b'\n');
        return message.into();
    }
    // It was made from text just now.
    let text = String::from_utf8_lossy(&message);
    let mut lines = Vec::with_capacity(message.len() + message.len() / 4);
    lines.extend_from_slice(
        format!("{{\"type\":\"chunk_start\",\"total_size\":{}}}\n", message.len()).as_bytes(),
    );
    let mut offset = 0;
    for piece in pieces(&text) {
        let data = json!(piece);
        lines.extend_from_slice(
            format!("{{\"type\":\"chunk_data\",\"data\":{data},\"offset\":{offset}}}\n").as_bytes(),
        );
        offset += piece.len();
    }
    lines.extend_from_slice(b"{\"type\":\"chunk_end\"}\n");
    lines.into()
}

/// Parts of at most `PIECE_BYTES_MAX` bytes, split at character boundaries.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, left) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        rest = left;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::super::chunks::{Assembly, Joined};
    use super::*;

    fn lines(frame: &Bytes) -> Vec<&str> {
        std::str::from_utf8(frame).unwrap().lines().collect()
    }

    #[test]
    fn a_short_message_is_one_line() {
        let frame = request(7, "run_runner", &json!({"runner_name": "main"}));
        assert_eq!(
            lines(&frame),
            [r#"{"seq_id":7,"action":"run_runner","data":{"runner_name":"main"}}"#]
        );
    }

    #[test]
    fn a_refusal_carries_its_code_where_the_sdk_looks_for_it() {
        let error = AgentAPIError::new(ErrorCode::NotFound, "no \"such\" thing");
        let frame = answer("3", Err(error));
        assert_eq!(
            lines(&frame),
            [
                r#"{"seq_id":3,"code":1,"message":"no \"such\" thing","data":{"error":{"code":"not_found","details":{},"message":"no \"such\" thing","retryable":false}},"chunk_status":"continue"}"#
            ]
        );
    }

    #[test]
    fn a_long_message_comes_in_pieces_that_are_put_together_again() {
        let text = "é\"\\\n".repeat(20_000);
        let frame = request(1, "x", &json!({ "text": text }));
        let lines = lines(&frame);
        assert!(lines.iter().all(|line| line.len() < 64 * 1024));
        assert!(lines[0].starts_with(r#"{"type":"chunk_start","total_size":"#));
        assert_eq!(lines[lines.len() - 1], r#"{"type":"chunk_end"}"#);
        let mut assembly = None;
        let mut whole = None;
        for line in lines {
            let frame: Frame<'_> = serde_json::from_str(line).unwrap();
            match Assembly::take(&mut assembly, &frame) {
                Joined::Whole(message) => whole = Some(message),
                Joined::Part => {}
                Joined::Broken(reason) => panic!("{reason}"),
            }
        }
        let whole: serde_json::Value = serde_json::from_str(&whole.unwrap()).unwrap();
        assert_eq!(whole, json!({"seq_id": 1, "action": "x", "data": {"text": text}}));
    }
}
