//! The schema of a tool's arguments: compiled once, checked on every call.
//!
//! Invariant: a schema never makes us read a file or a url, and the cost of a check is bounded before it runs.
//! The source of the schema is kept unchanged.

mod modern;
mod nulls;
mod weight;

pub use modern::modern;
pub use nulls::leave_out_nulls;

use crate::ToolFailure;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use weight::Weight;

/// Longest schema, as JSON text.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// Deepest nesting of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Backtracking steps of one pattern on one text.
const BACKTRACK_MAX: usize = 100_000;
/// Largest compiled pattern.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Mistakes that are reported at once.
const MISTAKES_MAX: usize = 5;
const MESSAGE_CHARS_MAX: usize = 300;

/// A schema to check arguments against.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: Validator,
    weight: Weight,
}

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSchema {
    #[error("the schema is not an object")]
    NotAnObject,
    #[error("the schema is larger than {SCHEMA_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the schema is nested deeper than {SCHEMA_DEPTH_MAX} levels")]
    TooDeep,
    #[error("the schema refers to `{0}`, which is outside of it")]
    Remote(String),
    #[error("the schema refers to `{0}`, which it does not hold")]
    Dangling(String),
    #[error("the schema refers to itself without end at `{0}`")]
    Endless(String),
    #[error("the schema takes too many steps to check anything against it")]
    TooCostly,
    #[error("the schema is not valid: {0}")]
    Invalid(String),
}

/// One mistake in the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where, e.g. `filter.tags[0]`; empty for the arguments as a whole.
    pub field: String,
    pub message: String,
}

impl Schema {
    pub fn compile(source: &Value) -> Result<Self, BadSchema> {
        if !source.is_object() {
            return Err(BadSchema::NotAnObject);
        }
        if depth(source) > SCHEMA_DEPTH_MAX {
            return Err(BadSchema::TooDeep);
        }
        if source.to_string().len() > SCHEMA_BYTES_MAX {
            return Err(BadSchema::TooLarge);
        }
        let weight = Weight::of(source)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACK_MAX)
            .size_limit(PATTERN_BYTES_MAX);
        let built = jsonschema::options().offline().with_pattern_options(patterns).build(source);
        let validator = built.map_err(|error| BadSchema::Invalid(short(&error.to_string())))?;
        Ok(Self { source: source.clone(), validator, weight })
    }

    /// The schema, unchanged.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The mistakes, up to `MISTAKES_MAX`.
    pub fn mistakes(&self, args: &Value) -> Vec<Mistake> {
        if !self.weight.is_affordable(args) {
            let message = "the arguments are too large or too deep for the schema".to_owned();
            return vec![Mistake { field: String::new(), message }];
        }
        if self.validator.is_valid(args) {
            return Vec::new();
        }
        self.validator.iter_errors(args).take(MISTAKES_MAX).map(|error| mistake(&error)).collect()
    }

    /// Refuses arguments with mistakes, with the field and the schema.
    pub fn check(&self, args: &Value) -> Result<(), ToolFailure> {
        let mistakes = self.mistakes(args);
        let Some(first) = mistakes.first() else { return Ok(()) };
        let told: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
        Err(ToolFailure::new("INVALID_ARGUMENT", told.join("; "))
            .detail("field", first.field.clone())
            .detail("input_schema", self.source.clone()))
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.field.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "`{}`: {}", self.field, self.message),
        }
    }
}

/// The nesting depth of a value; a scalar has depth 1.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => None,
    };
    1 + below.unwrap_or(0)
}

fn mistake(error: &ValidationError<'_>) -> Mistake {
    if let Some(inner) = nearest(error.kind()) {
        return mistake(inner);
    }
    let at = field(error.instance_path().as_str());
    let inside = |name: &str| match at.is_empty() {
        true => name.to_owned(),
        false => format!("{at}.{name}"),
    };
    let (field, message) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            (inside(property.as_str().unwrap_or_default()), "is required".to_owned())
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let first = unexpected.first().map(String::as_str).unwrap_or_default();
            (inside(first), "is not a known field".to_owned())
        }
        // The value is not quoted: it may be long or private.
        _ => (at, short(&error.masked_with("the value").to_string())),
    };
    Mistake { field, message }
}

/// Of alternatives that all failed, the mistake of the nearest one: the fewest mistakes, then the deepest.
fn nearest(kind: &ValidationErrorKind) -> Option<&ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        kind
    else {
        return None;
    };
    let reach = |errors: &&Vec<ValidationError<'static>>| {
        let deepest = errors.iter().map(|error| error.instance_path().as_str().len()).max();
        let of_type =
            errors.iter().any(|error| matches!(error.kind(), ValidationErrorKind::Type { .. }));
        let of_value =
            errors.iter().any(|error| matches!(error.kind(), ValidationErrorKind::Constant { .. }));
        (of_value, of_type && deepest == Some(0), errors.len(), usize::MAX - deepest.unwrap_or(0))
    };
    context.iter().filter(|errors| !errors.is_empty()).min_by_key(reach)?.first()
}

/// `/filter/tags/0` as `filter.tags[0]`.
fn field(pointer: &str) -> String {
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push_str(&format!("[{part}]"));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&part);
        }
    }
    text
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
