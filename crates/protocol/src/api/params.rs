//! Reading the parameters of a call.
//!
//! Invariant: what was read is an object, not nested too deep, and passed its own checks; an error names
//! the field it is about and is never longer than the caller can use.

use crate::api::Method;
use crate::nesting::{self, NESTING_MAX};
use crate::{AgentAPIError, ErrorCode, object};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An error repeats what was sent up to so many characters.
const REASON_CHARS_MAX: usize = 300;

/// The parameters of one method.
pub trait Params: Serialize + DeserializeOwned {
    /// The method they belong to.
    const METHOD: Method;

    /// What the shape alone does not say.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Why parameters were not taken; becomes `invalid_argument`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidParams {
    reason: String,
}

impl InvalidParams {
    /// A reason that names its field.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: shortened(reason.into()) }
    }
}

impl From<InvalidParams> for AgentAPIError {
    fn from(invalid: InvalidParams) -> Self {
        AgentAPIError::new(ErrorCode::InvalidArgument, invalid.reason)
    }
}

/// Reads and checks parameters as they came over a wire.
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

/// Reads again, slower, to say which field it was.
fn explain<P: Params>(json: &str, error: &serde_json::Error) -> String {
    let mut reader = serde_json::Deserializer::from_str(json);
    match serde_path_to_error::deserialize::<_, P>(&mut reader) {
        Err(found) if found.path().iter().next().is_some() => {
            let field = found.path().to_string();
            format!("`{field}`: {}", without_position(found.inner()))
        }
        _ => without_position(error),
    }
}

/// Lines and columns say little about a message that a program wrote.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

fn shortened(reason: String) -> String {
    match reason.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    }
}
