//! The project CLI (seed 004): one tool for the model, a static table of methods, one router.
//!
//! Invariant: a method that is not in the table, or not allowed here, is not run; an input that does not match
//! its method exactly reaches no handler. Handlers access data only through [`Records`].

mod calendar;
mod contacts;
mod dry;
mod http;
mod input;
mod memory;
mod methods;
mod outcome;
mod records;
mod subject;
mod table;

pub use dry::check;
pub use http::{HttpRecords, OnBehalf};
pub use methods::MethodSet;
pub use outcome::CliResult;
pub use records::{LIST_MAX, Module, Put, RecordWithLinks, Records, RecordsError};
pub(crate) use subject::{named as named_records, subject};
pub use table::{Action, MethodSpec, find, specs};

use crate::{Risk, Source, Tool, ToolFailure};
use greenroom_protocol::Object;
use greenroom_protocol::records::RecordLinkStatus;
use input::Trouble;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The name of the tool for models.
pub const TOOL_NAME: &str = "project_cli";
/// The code of a method that is not allowed or does not exist.
pub const NOT_ALLOWED: &str = "METHOD_NOT_ALLOWED";
/// For built-in methods.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The call of a model (seed 004 §4).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub module: String,
    pub method: String,
    pub input: Object,
}

impl Call {
    /// Reads the arguments of the tool; only the three layers are checked here.
    pub fn read(args: &Object) -> Result<Self, ToolFailure> {
        input::read(args).map_err(|trouble| {
            let (field, message) = match trouble {
                Trouble::Input { field, message } => (field, message),
                Trouble::Failure(failure) => return failure,
            };
            ToolFailure::new("INVALID_ARGUMENT", format!("{TOOL_NAME} arguments: {message}"))
                .detail("field", field)
                .detail("input_schema", input_schema())
        })
    }
}

/// The tool for models: thin on purpose, the contract of a method comes with its errors and skills.
pub fn tool() -> Tool {
    Tool {
        name: TOOL_NAME.to_owned(),
        description:
            "Run one method of a module of this project, e.g. module `calendar`, method `read`. \
                      A wrong input is answered with the contract of the method."
                .to_owned(),
        input_schema: input_schema(),
        output_schema: None,
        source: Source::ProjectCli,
        risk: Risk::Read,
        timeout: TIMEOUT,
    }
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "module": {"type": "string", "description": "Module, e.g. calendar"},
            "method": {"type": "string", "description": "Method of the module, e.g. read"},
            "input": {"type": "object", "description": "Input of the method"},
        },
        "required": ["module", "method", "input"],
        "additionalProperties": false,
    })
}

/// Runs a built-in method: the second permission check, the strict input, the handler.
pub async fn route(
    module: &str,
    method: &str,
    input: &Value,
    allowed: &MethodSet,
    records: &dyn Records,
) -> CliResult {
    let spec = match allowed_method(module, method, allowed) {
        Ok(spec) => spec,
        Err(failure) => return CliResult::Failed(failure),
    };
    let done = match input {
        Value::Object(input) => handle(spec.action, input, records).await,
        _ => Err(Trouble::input("", "the input is not an object")),
    };
    match done {
        Ok(data) => CliResult::Done { module: module.to_owned(), method: method.to_owned(), data },
        Err(trouble) => CliResult::Failed(to_failure(spec, trouble)),
    }
}

async fn handle(action: Action, input: &Object, records: &dyn Records) -> Result<Value, Trouble> {
    match action {
        Action::CalendarRead => calendar::read(input, records).await,
        Action::CalendarCreate => calendar::create(input, records).await,
        Action::CalendarUpdate => calendar::update(input, records).await,
        Action::CalendarDelete => calendar::delete(input, records).await,
        Action::CalendarShare => calendar::share(input, records).await,
        Action::CalendarAcceptInvite => {
            calendar::answer(input, RecordLinkStatus::Accepted, records).await
        }
        Action::CalendarRejectInvite => {
            calendar::answer(input, RecordLinkStatus::Rejected, records).await
        }
        Action::ContactsRead => contacts::read(input, records).await,
        Action::MemoryRead => memory::read(input, records).await,
        Action::MemoryUpdate => memory::update(input, records).await,
    }
}

fn to_failure(spec: &MethodSpec, trouble: Trouble) -> ToolFailure {
    let failure = match trouble {
        Trouble::Input { field, message } => {
            let message = format!("{} input does not match method schema: {message}", spec.name());
            let failure = ToolFailure::new("INVALID_ACTION_INPUT", message)
                .detail("input_schema", spec.contract());
            match field.is_empty() {
                true => failure,
                false => failure.detail("field", field),
            }
        }
        Trouble::Failure(failure) => failure,
    };
    failure.detail("module", spec.module).detail("method", spec.method)
}

/// The method, if it exists and is allowed here.
pub fn allowed_method(
    module: &str,
    method: &str,
    allowed: &MethodSet,
) -> Result<&'static MethodSpec, ToolFailure> {
    let name = format!("{module}.{method}");
    let usable: Vec<String> =
        specs().iter().map(MethodSpec::name).filter(|name| allowed.contains(name)).collect();
    match find(module, method) {
        Some(spec) if allowed.contains(&name) => Ok(spec),
        found => Err(not_allowed(module, method, found.is_some(), usable)),
    }
}

/// The refusal of a method, with similar names among the allowed ones.
pub fn not_allowed(module: &str, method: &str, exists: bool, usable: Vec<String>) -> ToolFailure {
    let name = format!("{module}.{method}");
    let close = if exists { Vec::new() } else { close_matches(&name, &usable) };
    let message = match (exists, close.first()) {
        (true, _) => format!("`{name}` may not be used here"),
        (false, Some(near)) => format!("there is no method `{name}`; did you mean `{near}`?"),
        (false, None) => format!("there is no method `{name}`"),
    };
    ToolFailure::new(NOT_ALLOWED, message)
        .detail("module", module)
        .detail("method", method)
        .detail("close_matches", close)
        .detail("allowed_methods", usable)
}

/// Up to three similar names, the nearest first.
pub fn close_matches(name: &str, among: &[String]) -> Vec<String> {
    const NEAR: f64 = 0.8;
    let name = name.to_lowercase();
    let mut scored: Vec<(f64, &String)> = among
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(&name, known), known))
        .map(|(score, known)| (score.max(strsim::jaro_winkler(&name, known) - 0.05), known))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, known)| known.clone()).collect()
}

#[cfg(test)]
mod in_memory;
#[cfg(test)]
mod tests;
