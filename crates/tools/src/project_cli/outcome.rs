//! The standard output of a method of the project CLI (seed 004 §5, §8).
//!
//! Invariant: one JSON object with `ok`; module and method are those that were called, whatever a child
//! writes.

use crate::{Status, ToolFailure, ToolOutput};
use greenroom_protocol::Object;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub enum CliResult {
    Done { module: String, method: String, data: Value },
    Failed(ToolFailure),
}

impl CliResult {
    pub fn is_ok(&self) -> bool {
        matches!(self, CliResult::Done { .. })
    }

    pub fn to_value(&self) -> Value {
        match self {
            CliResult::Done { module, method, data } => {
                json!({"ok": true, "module": module, "method": method, "data": data})
            }
            CliResult::Failed(error) => json!({"ok": false, "error": error}),
        }
    }

    /// Parses the output of a child; a bare value is its data.
    pub fn read(module: &str, method: &str, stdout: &[u8]) -> Result<Self, serde_json::Error> {
        let done =
            |data| CliResult::Done { module: module.to_owned(), method: method.to_owned(), data };
        let mut fields: Object = match serde_json::from_slice(stdout)? {
            Value::Object(fields) => fields,
            bare => return Ok(done(bare)),
        };
        match fields.get("ok") {
            Some(Value::Bool(true)) => Ok(done(fields.remove("data").unwrap_or(Value::Null))),
            Some(Value::Bool(false)) => {
                let error = fields.remove("error").unwrap_or(Value::Null);
                Ok(CliResult::Failed(
                    failure(error).detail("module", module).detail("method", method),
                ))
            }
            _ => Ok(done(Value::Object(fields))),
        }
    }

    /// As the output of a tool; `result` keeps module, method and data.
    pub fn into_output(self) -> ToolOutput {
        match self {
            CliResult::Done { module, method, data } => {
                let partial = data.get("outcome").and_then(Value::as_str) == Some("partial");
                let result = json!({"module": module, "method": method, "data": data});
                let output = ToolOutput::success(result);
                match partial {
                    true => ToolOutput { status: Status::Partial, ..output },
                    false => output,
                }
            }
            CliResult::Failed(failure) => ToolOutput::failure(failure),
        }
    }
}

/// The error of a child, as far as it can be read.
fn failure(error: Value) -> ToolFailure {
    match serde_json::from_value::<ToolFailure>(error.clone()) {
        Ok(failure) => failure,
        Err(_) => {
            let message = match &error {
                Value::String(message) => message.clone(),
                _ => "the method failed without saying why".to_owned(),
            };
            ToolFailure::new("METHOD_FAILED", message)
        }
    }
}

impl Serialize for CliResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}
