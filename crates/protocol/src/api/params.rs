//! Parses the parameters of a call.
//!
//! Invariant: parsed parameters are an object, bounded in nesting, and passed their checks; an error names the
//! field and is bounded.

use crate::api::Method;
use crate::nesting::{self, NESTING_MAX};
use crate::{AgentAPIError, ErrorCode, object};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest error message, which may repeat what was sent.
const REASON_CHARS_MAX: usize = 300;

/// The parameters of one method.
pub trait Params: Serialize + DeserializeOwned {
    const METHOD: Method;

    /// Checks beyond the shape.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Invalid parameters; reported as `invalid_argument`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidParams {
    reason: String,
}

impl InvalidParams {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: truncated(reason.into()) }
    }
}

impl From<InvalidParams> for AgentAPIError {
    fn from(invalid: InvalidParams) -> Self {
        AgentAPIError::new(ErrorCode::InvalidArgument, invalid.reason)
    }
}

/// Parses and checks parameters.
pub fn parse<P: Params>(json: &str) -> Result<P, InvalidParams> {
    if nesting::depth(json.as_bytes()) > NESTING_MAX {
        let reason = format!("the parameters are nested deeper than {NESTING_MAX} levels");
        return Err(InvalidParams::new(reason));
    }
    let params: P =
        object::from_str(json).map_err(|error| InvalidParams::new(explain::<P>(json, &error)))?;
    params.check().map_err(InvalidParams::new)?;
    Ok(params)
}

/// Parses again, slower, to find the invalid field.
fn explain<P: Params>(json: &str, error: &serde_json::Error) -> String {
    let mut reader = serde_json::Deserializer::from_str(json);
    match serde_path_to_error::deserialize::<_, P>(&mut reader) {
        Err(error) if error.path().iter().next().is_some() => {
            let field = error.path().to_string();
            format!("`{field}`: {}", without_position(error.inner()))
        }
        _ => without_position(error),
    }
}

/// Line and column are useless in messages that programs write.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

fn truncated(reason: String) -> String {
    match reason.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    }
}
