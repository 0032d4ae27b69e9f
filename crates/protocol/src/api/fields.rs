//! Field types that several methods share: bounded numbers, times, names.
//!
//! Invariant: null is the same as missing; a parsed number is in its range.

use crate::api::{FILTER_VALUES_MAX, LIFETIME_S_MAX, QUERY_BYTES_MAX};
use crate::event::EVENT_ID_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A default for serde: `fixed::<50>`.
pub(super) fn fixed<const N: u32>() -> u32 {
    N
}

/// A `limit` or `top_k`: at least 1, capped at `MAX`, `DEFAULT` if null.
pub(super) fn limit<'de, D: Deserializer<'de>, const DEFAULT: u32, const MAX: u32>(
    from: D,
) -> Result<u32, D::Error> {
    Ok(optional_limit::<D, MAX>(from)?.unwrap_or(DEFAULT))
}

/// The same without a default.
pub(super) fn optional_limit<'de, D: Deserializer<'de>, const MAX: u32>(
    from: D,
) -> Result<Option<u32>, D::Error> {
    match crate::number::whole(from)? {
        Some(number) if number < 1 => {
            Err(D::Error::invalid_value(Unexpected::Signed(number), &"a positive number"))
        }
        Some(number) => Ok(Some(u32::try_from(number).unwrap_or(MAX).min(MAX))),
        None => Ok(None),
    }
}

/// A byte offset, 0 if null.
pub(super) fn offset<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(crate::number::size(from)?.unwrap_or(0))
}

/// Seconds: at least 1, up to a hundred years.
pub(super) fn lifetime<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    match crate::number::whole(from)? {
        Some(seconds) if !(1..=LIFETIME_S_MAX).contains(&seconds) => Err(D::Error::invalid_value(
            Unexpected::Signed(seconds),
            &"seconds, from 1 up to a hundred years",
        )),
        seconds => Ok(seconds),
    }
}

/// Null as the type's default.
pub(super) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A name or an id: not empty, bounded, no control characters.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > EVENT_ID_BYTES_MAX {
        return Err(format!("`{field}` must have 1 to {EVENT_ID_BYTES_MAX} bytes"));
    }
    match name.contains(char::is_control) {
        true => Err(format!("`{field}` must not contain control characters")),
        false => Ok(()),
    }
}

/// A text to compare names with: names have no control characters, and no store accepts U+0000.
pub(super) fn check_optional(field: &str, text: Option<&str>) -> Result<(), String> {
    match text.is_some_and(|text| text.contains(char::is_control)) {
        true => Err(format!("`{field}` must not contain control characters")),
        false => Ok(()),
    }
}

pub(super) fn check_query(field: &str, query: &str) -> Result<(), String> {
    if query.trim().is_empty() || query.len() > QUERY_BYTES_MAX {
        return Err(format!("`{field}` must have 1 to {QUERY_BYTES_MAX} bytes that are not blank"));
    }
    Ok(())
}

pub(super) fn check_values<T>(field: &str, values: &[T]) -> Result<(), String> {
    match values.len() > FILTER_VALUES_MAX {
        true => Err(format!("`{field}` has more than {FILTER_VALUES_MAX} values")),
        false => Ok(()),
    }
}

/// The standard alphabet with padding (RFC 4648 §4).
pub(super) fn check_base64(field: &str, text: &str) -> Result<(), String> {
    match crate::payload::is_base64(text) {
        true => Ok(()),
        false => Err(format!("`{field}` must be base64")),
    }
}

/// A time: RFC 3339, or Unix seconds with or without a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub unix_ms: i64,
}

/// Unix seconds of the years 1 to 9999.
const UNIX_S_RANGE: std::ops::RangeInclusive<f64> = -62_135_596_800.0..=253_402_300_799.0;

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged, expecting = "not a time in RFC 3339 or Unix seconds")]
        enum Form {
            Seconds(f64),
            Text(String),
        }
        let wrong = || D::Error::custom("not a time in RFC 3339 or Unix seconds");
        let unix_ms = match Form::deserialize(from)? {
            Form::Seconds(seconds) if UNIX_S_RANGE.contains(&seconds) => {
                (seconds * 1000.0).floor() as i64
            }
            Form::Seconds(_) => return Err(wrong()),
            Form::Text(text) => {
                let time = OffsetDateTime::parse(&text, &Rfc3339).map_err(|_| wrong())?;
                let ms = time.unix_timestamp_nanos().div_euclid(1_000_000);
                i64::try_from(ms).map_err(|_| wrong())?
            }
        };
        Ok(Moment { unix_ms })
    }
}

/// Written as Unix seconds.
impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.unix_ms % 1000 {
            0 => to.serialize_i64(self.unix_ms / 1000),
            _ => to.serialize_f64(self.unix_ms as f64 / 1000.0),
        }
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time: RFC 3339 text, or Unix seconds.",
            "type": ["string", "number"],
        })
    }
}
