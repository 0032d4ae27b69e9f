//! Strict inputs of methods: a handler gets validated types.
//!
//! Invariant: unknown fields are refused, dates are valid, times have a zone, texts have a length; every refusal
//! names the field.

use super::records::RecordsError;
use crate::ToolFailure;
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Why a method failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Trouble {
    /// The input is invalid; `field` is empty when it is about the input as a whole.
    Input {
        field: String,
        message: String,
    },
    Failure(ToolFailure),
}

impl Trouble {
    pub(super) fn input(field: &str, message: impl Into<String>) -> Self {
        Trouble::Input { field: field.to_owned(), message: message.into() }
    }

    pub(super) fn failure(code: &str, message: impl Into<String>) -> Self {
        Trouble::Failure(ToolFailure::new(code, message))
    }
}

impl From<RecordsError> for Trouble {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::Refused(refusal) => Trouble::Failure(refused(refusal)),
            error => Trouble::failure("UNAVAILABLE", error.to_string()),
        }
    }
}

/// Whether another client changed the record in the meantime.
pub(super) fn is_conflict(error: &RecordsError) -> bool {
    matches!(error, RecordsError::Refused(refusal) if conflicts(refusal))
}

fn conflicts(refusal: &AgentAPIError) -> bool {
    refusal.details.get("reason").and_then(Value::as_str) == Some("version_conflict")
}

fn refused(refusal: AgentAPIError) -> ToolFailure {
    let code = match refusal.code {
        ErrorCode::InvalidArgument if conflicts(&refusal) => "CONFLICT",
        ErrorCode::InvalidArgument => "INVALID_ARGUMENT",
        ErrorCode::Unauthorized => "UNAUTHORIZED",
        ErrorCode::NotFound => "NOT_FOUND",
        ErrorCode::DeadlineExceeded => "DEADLINE_EXCEEDED",
        ErrorCode::PayloadTooLarge => "PAYLOAD_TOO_LARGE",
        ErrorCode::RateLimited => "RATE_LIMITED",
        ErrorCode::RuntimeError => "RUNTIME_ERROR",
    };
    let failure = ToolFailure::new(code, refusal.message).detail("retryable", refusal.retryable);
    match refusal.details.get("version") {
        Some(version) if code == "CONFLICT" => failure.detail("version", version.clone()),
        _ => failure,
    }
}

/// Reads an input into its type.
pub(super) fn read<T: DeserializeOwned>(input: &Object) -> Result<T, Trouble> {
    serde_path_to_error::deserialize(Value::Object(input.clone())).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        // The path ends at an unknown field, and above a missing one.
        let missing = message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.split_once('`'))
            .map(|(name, _)| name.to_owned());
        let field = match (path.as_str(), missing) {
            (".", missing) => missing.unwrap_or_default(),
            (_, Some(missing)) => format!("{path}.{missing}"),
            (_, None) => path.clone(),
        };
        let says_where = message.contains(&format!("`{field}`")) || field.is_empty();
        let message = if says_where { message } else { format!("`{field}`: {message}") };
        Trouble::Input { field, message }
    })
}

/// A text of 1 to `MAX` characters, without surrounding whitespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<const MAX: usize>(pub(super) String);

impl<'de, const MAX: usize> Deserialize<'de> for Text<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?.trim().to_owned();
        match text.chars().count() {
            0 => Err(D::Error::custom("is empty")),
            chars if chars > MAX => {
                Err(D::Error::custom(format!("is longer than {MAX} characters")))
            }
            _ => Ok(Self(text)),
        }
    }
}

/// An id of a record or of an actor.
pub(super) type Id = Text<128>;

/// A calendar date, `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Day(pub(super) Date);

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let date = if has_shape(&text, "dddd-dd-dd") { text.parse().ok() } else { None };
        date.map(Self).ok_or_else(|| D::Error::custom("is not a date as YYYY-MM-DD"))
    }
}

/// A time with its zone, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at_ms: i64,
    pub(super) offset: Offset,
}

impl Moment {
    fn parse(text: &str) -> Option<Self> {
        let (seconds, rest) = text.split_at_checked(19)?;
        let zone_from = rest.find(['Z', '+', '-'])?;
        let (fraction, zone) = rest.split_at(zone_from);
        let digits = fraction.strip_prefix('.').unwrap_or("0");
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let fits = has_shape(seconds, "dddd-dd-ddTdd:dd:dd")
            && is_number
            && digits.len() <= 9
            && (zone == "Z" || has_shape(zone, "sdd:dd"));
        if !fits {
            return None;
        }
        let at: Timestamp = text.parse().ok()?;
        let minutes = match zone {
            "Z" => 0,
            zone => {
                let minutes =
                    zone[1..3].parse::<i32>().ok()? * 60 + zone[4..6].parse::<i32>().ok()?;
                if zone.starts_with('-') { -minutes } else { minutes }
            }
        };
        let offset = Offset::from_seconds(minutes * 60).ok()?;
        Some(Self { at_ms: at.as_millisecond(), offset })
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(
                "is not a time as RFC 3339 with its zone, e.g. 2026-04-21T10:00:00+08:00",
            )
        })
    }
}

/// An IANA time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone(pub(super) TimeZone);

impl Zone {
    pub(super) fn get(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().filter(|zone| zone.iana_name().is_some()).map(Self)
    }

    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::get(&name)
            .ok_or_else(|| D::Error::custom("is not an IANA time zone, e.g. Asia/Shanghai"))
    }
}

/// A field that may be absent (`None`), cleared with null (`Some(None)`) or set.
pub(super) fn clearable<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// A field that may be absent but not null.
pub(super) fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Whether a text has this shape: `d` is a digit, `s` a sign, other characters are literal.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b's' => matches!(byte, b'+' | b'-'),
            shape => byte == shape,
        })
}
