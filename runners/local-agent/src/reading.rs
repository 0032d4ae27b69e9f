//! `artifact.read`: reads a text artifact in parts, or searches in it.
//!
//! Invariant: offsets are bytes of the artifact; a part never splits a character. What is not text is refused.

use greenroom_sdk::{AgentAPIError, ErrorCode, Object, RunCtx, ToolResource, Value, json};

pub(crate) const READ_ARTIFACT: &str = "artifact.read";
/// Bytes of one part.
const LENGTH: u32 = 8 * 1024;
const LENGTH_MAX: u32 = 32 * 1024;
/// Bytes that one search reads, and how many at a time.
const SEARCHED_MAX: u64 = 16 * 1024 * 1024;
const PIECE: u32 = 256 * 1024;
/// Hits of one search, and the bytes shown around each.
const HITS_MAX: usize = 20;
const AROUND: usize = 120;
const QUERY_BYTES_MAX: usize = 200;

/// The tool as the model sees it.
pub(crate) fn tool() -> ToolResource {
    ToolResource {
        tool_name: READ_ARTIFACT.to_owned(),
        description: Some(
            "Reads a part of a text artifact, for example of a result that was cut or of an attached \
             file, or finds where it contains some words."
                .to_owned(),
        ),
        parameters: schema(),
        ..ToolResource::default()
    }
}

fn schema() -> Object {
    let schema = json!({
        "type": "object",
        "properties": {
            "artifact_id": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0, "default": 0,
                "description": "The byte to start at"},
            "length": {"type": "integer", "minimum": 1, "maximum": LENGTH_MAX, "default": LENGTH,
                "description": "How many bytes to read"},
            "search": {"type": "string",
                "description": "Instead of reading: find this text, ignoring the case of letters"},
        },
        "required": ["artifact_id"],
        "additionalProperties": false,
    });
    schema.as_object().cloned().unwrap_or_default()
}

/// Executes a call of [`tool`].
pub(crate) async fn read(ctx: &RunCtx, args: &Object) -> Result<Value, AgentAPIError> {
    let known = ["artifact_id", "offset", "length", "search"];
    if let Some(other) = args.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(wrong(other, "is not a parameter of this tool"));
    }
    let id = args.get("artifact_id").and_then(Value::as_str).unwrap_or_default();
    if id.is_empty() {
        return Err(wrong("artifact_id", "must be the id of an artifact"));
    }
    let offset = number(args, "offset", 0, u64::MAX)?;
    let length = number(args, "length", u64::from(LENGTH), u64::from(LENGTH_MAX))?;
    match args.get("search") {
        None | Some(Value::Null) => part(ctx, id, offset, length).await,
        Some(Value::String(words)) if !words.is_empty() && words.len() <= QUERY_BYTES_MAX => {
            search(ctx, id, offset, words).await
        }
        Some(_) => Err(wrong("search", "must be a text of 1 to 200 bytes")),
    }
}

async fn part(ctx: &RunCtx, id: &str, offset: u64, length: u64) -> Result<Value, AgentAPIError> {
    let length = u32::try_from(length).unwrap_or(LENGTH_MAX);
    let read = ctx.artifacts().read_range(id, offset, length).await?;
    let (text, skipped) = readable(&read.bytes, offset > 0, !read.eof).ok_or_else(no_text)?;
    let start = offset + skipped as u64;
    let end = start + text.len() as u64;
    let next = (end < read.size_bytes && !text.is_empty()).then_some(end);
    Ok(json!({"artifact_id": id, "size_bytes": read.size_bytes, "offset": start, "end": end,
        "next_offset": next, "text": text}))
}

async fn search(ctx: &RunCtx, id: &str, offset: u64, words: &str) -> Result<Value, AgentAPIError> {
    let needle = words.to_ascii_lowercase();
    let (mut hits, mut at, until) = (Vec::new(), offset, offset.saturating_add(SEARCHED_MAX));
    let (size, is_over) = loop {
        let read = ctx.artifacts().read_range(id, at, PIECE).await?;
        let found = places(&read.bytes, needle.as_bytes());
        // A hit near the end is found again, with more around it, in the next piece.
        let overlap = if read.eof { 0 } else { needle.len() + AROUND };
        let fresh = read.bytes.len().saturating_sub(overlap);
        let new = found.filter(|place| *place < fresh || read.eof);
        hits.extend(new.map(|place| (at + place as u64, around(&read.bytes, place, needle.len()))));
        let next = at + fresh as u64;
        if read.eof || fresh == 0 || hits.len() > HITS_MAX || next >= until {
            break (read.size_bytes, read.eof && hits.len() <= HITS_MAX);
        }
        at = next;
    };
    hits.truncate(HITS_MAX);
    let shown: Vec<Value> =
        hits.iter().map(|(at, text)| json!({"offset": at, "text": text})).collect();
    let next = (!is_over).then(|| hits.last().map_or(until, |(at, _)| at + 1));
    Ok(json!({"artifact_id": id, "size_bytes": size, "search": words, "hits": shown,
        "next_offset": next}))
}

/// Where a text contains another, in ASCII without regard to case.
fn places<'b>(bytes: &'b [u8], needle: &'b [u8]) -> impl Iterator<Item = usize> + 'b {
    let is_here =
        |window: &[u8]| window.iter().map(u8::to_ascii_lowercase).eq(needle.iter().copied());
    bytes
        .windows(needle.len())
        .enumerate()
        .filter(move |(_, window)| is_here(window))
        .map(|(at, _)| at)
}

/// The text around a hit, on one line.
fn around(bytes: &[u8], at: usize, length: usize) -> String {
    let from = at.saturating_sub(AROUND);
    let to = (at + length + AROUND).min(bytes.len());
    let text = String::from_utf8_lossy(&bytes[from..to]);
    text.trim_matches('\u{fffd}').split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A part as text, and the bytes skipped before its first whole character; none if it is not text.
fn readable(bytes: &[u8], may_begin_inside: bool, may_end_inside: bool) -> Option<(&str, usize)> {
    let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let skipped = match may_begin_inside {
        true => bytes.iter().take(3).take_while(is_inside).count(),
        false => 0,
    };
    let whole = &bytes[skipped..];
    let text = match std::str::from_utf8(whole) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() && may_end_inside => {
            std::str::from_utf8(&whole[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some((text, skipped))
}

fn no_text() -> AgentAPIError {
    AgentAPIError::new(ErrorCode::InvalidArgument, "the artifact is not text in UTF-8")
}

fn number(args: &Object, field: &str, default: u64, max: u64) -> Result<u64, AgentAPIError> {
    match args.get(field) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => match value.as_u64() {
            Some(0) if field == "length" => Err(wrong(field, "must be at least 1")),
            Some(number) => Ok(number.min(max)),
            None => Err(wrong(field, "must be a non-negative integer")),
        },
    }
}

fn wrong(field: &str, problem: &str) -> AgentAPIError {
    let error = AgentAPIError::new(ErrorCode::InvalidArgument, format!("`{field}` {problem}"));
    error.detail("field", field).detail("schema", Value::Object(schema()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_splits_a_character() {
        let text = "日历".as_bytes();
        assert_eq!(readable(text, false, false), Some(("日历", 0)));
        assert_eq!(readable(&text[1..], true, false), Some(("历", 2)));
        assert_eq!(readable(&text[..4], false, true), Some(("日", 0)));
        assert_eq!(readable(&text[..4], false, false), None);
        assert_eq!(readable(b"a\0b", false, false), None);
        assert_eq!(readable(&[0xff, 0xfe], true, true), None);
    }

    #[test]
    fn a_search_ignores_the_case_of_letters() {
        assert_eq!(places("One oNE 日历one".as_bytes(), b"one").collect::<Vec<_>>(), [0, 4, 14]);
        assert_eq!(around("a  b\nhit\tc".as_bytes(), 5, 3), "a b hit c");
    }
}
