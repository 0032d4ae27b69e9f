//! `[approvals]`: who may answer approval requests, and within which time.
//!
//! Invariant: a token that may answer exists in this file.

use super::reader::{Reader, Value, clean};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    pub answer: Vec<Answerer>,
    pub expires: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answerer {
    /// Every token whose role is `admin`.
    Admin,
    /// One configured token of any role.
    Token(String),
}

impl Default for Approvals {
    fn default() -> Self {
        Self { answer: vec![Answerer::Admin], expires: Duration::from_secs(1_800) }
    }
}

impl Approvals {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let absent = Self::default();
        let approvals = Self {
            answer: reader.get("answer").and_then(|v| v.list(answerer)).unwrap_or(absent.answer),
            expires: reader
                .get("expires_s")
                .and_then(|v| v.integer(1..=604_800))
                .map_or(absent.expires, Duration::from_secs),
        };
        reader.finish();
        approvals
    }
}

fn answerer(value: &Value<'_>) -> Option<Answerer> {
    let text = value.filled_text()?;
    match text.strip_prefix("token:") {
        None if text == "admin" => Some(Answerer::Admin),
        Some(name) if value.cx.tokens.iter().any(|known| known == name) => {
            Some(Answerer::Token(name.to_owned()))
        }
        Some(name) => value.fail(
            format!("there is no token `{}`", clean(name)),
            format!("add `[tokens.{}]`", clean(name)),
        ),
        None => value.fail(
            format!("`{}` cannot answer", clean(text)),
            "write `admin`, or `token:NAME` for one of `[tokens]`",
        ),
    }
}
