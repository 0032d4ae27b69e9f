//! The tool calls of one turn: each gets exactly one result.
//!
//! Invariant: invalid JSON is never executed; a failed call is reported as such. Calls that only read are executed
//! concurrently, all others one at a time, in the order of the turn; what a call may change, the host says.

use crate::client::{self, Client};
use crate::config::Config;
use crate::history;
use crate::limits::Limits;
use crate::reading;
use crate::retrieval::{self, Earlier, Offer};
use futures_util::future::join_all;
use greenroom_sdk::{
    AgentAPIError, ErrorCode, ModelMessage, ModelToolCall, Object, Role, RunCtx, RunFailure,
    RunResult, ToolCallParams, ToolCallResult, ToolResource, Value, json,
};

/// The tool for methods of the project CLI.
pub(crate) const PROJECT_CLI: &str = "project_cli";
/// Maximum concurrent calls.
const AT_ONCE: usize = 8;
/// Maximum executed calls per response.
const CALLS_MAX: usize = 64;
/// Longest invalid arguments that are repeated to the model.
const REPEATED_BYTES_MAX: usize = 4 * 1024;
/// Number of similar names suggested for an unknown tool.
const CLOSE_NAMES: usize = 5;

/// The tools of this run: granted ones, and the agent's own.
pub(crate) struct Toolbox<'a> {
    ctx: &'a RunCtx,
    offer: Offer,
    client: Client,
}

/// The results of one turn's calls, in their order, and the warnings in them by call id.
pub(crate) struct Executed {
    pub(crate) messages: Vec<ModelMessage>,
    pub(crate) warnings: Object,
}

/// The outcome of a call.
struct Outcome {
    result: Value,
    error: Option<Value>,
    content: String,
}

impl<'a> Toolbox<'a> {
    pub(crate) async fn open(
        ctx: &'a RunCtx,
        config: &Config,
        client: Client,
        earlier: &Earlier,
    ) -> Result<Self, RunFailure> {
        let apis = &ctx.context.available_apis;
        let own = [
            apis.history_search.then(history::search_tool),
            apis.artifact_read.then(reading::tool),
            client.state_tool(),
        ];
        let mut own: Vec<ToolResource> = own.into_iter().flatten().collect();
        let known = ctx.resources.tools.iter().chain(&own).map(|tool| tool.tool_name.as_str());
        client.check_names(known.chain([retrieval::SEARCH_TOOLS]))?;
        own.extend_from_slice(client.tools());
        Ok(Self { ctx, offer: Offer::new(ctx, config, own, earlier).await, client })
    }

    /// Whether the client answers this call, after the run.
    pub(crate) fn is_of_client(&self, call: &ModelToolCall) -> bool {
        self.client.answers(call)
    }

    /// The tools of the next request.
    pub(crate) fn offered(&self) -> &[ToolResource] {
        self.offer.tools()
    }

    /// The names of the offered tools, if they are a choice.
    pub(crate) fn chosen(&self) -> Vec<&str> {
        self.offer.chosen()
    }

    /// The granted tool for a name as providers rewrite it: only offered names are
    /// restored.
    pub(crate) fn resolve_name(&self, name: &str) -> Option<String> {
        let tools = || self.ctx.resources.tools.iter().chain(self.client.tools());
        let granted = || tools().map(|tool| tool.tool_name.as_str());
        if granted().any(|known| known == name) {
            return None;
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let mut alike = granted().filter(|known| known.chars().map(plain).eq(name.chars()));
        alike.next().filter(|_| alike.next().is_none()).map(str::to_owned)
    }

    /// Executes the calls and returns their result messages, in the order of the calls.
    pub(crate) async fn execute(
        &mut self,
        calls: &[ModelToolCall],
        limits: &mut Limits,
    ) -> Result<Executed, RunFailure> {
        let (calls, beyond) = calls.split_at(calls.len().min(CALLS_MAX));
        let mut outcomes = Vec::with_capacity(calls.len());
        for batch in self.batches(calls) {
            let done = join_all(batch.iter().map(|call| self.execute_one(call))).await;
            for done in done {
                outcomes.push(done?);
            }
        }
        let failed: Vec<bool> = outcomes.iter().map(|done| done.error.is_some()).collect();
        let noted = limits.note_round(calls, &failed)?;
        let mut messages = Vec::with_capacity(calls.len() + beyond.len());
        let mut warnings = Object::new();
        for ((call, done), warning) in calls.iter().zip(outcomes).zip(noted) {
            let content = match &warning {
                Some(warning) => with_warning(&done.content, warning),
                None => done.content,
            };
            warnings.extend(warning.map(|warning| (call.id.clone(), warning.into())));
            self.offer.used(&call.name);
            messages.push(result(&call.id, &call.name, content));
        }
        for call in beyond {
            messages.push(self.reject(call).await?);
        }
        Ok(Executed { messages, warnings })
    }

    /// The result of a call beyond the limit.
    async fn reject(&self, call: &ModelToolCall) -> Result<ModelMessage, RunFailure> {
        let error = json!({"code": "too_many_calls",
            "message": format!("too many calls at once: only the first {CALLS_MAX} were executed"),
            "hint": "repeat the others in your next answer, if they are still needed"});
        let started = RunResult::tool_started(&call.id, &call.name, call.args.clone());
        self.ctx.emit(started).await?;
        self.ctx.emit(RunResult::tool_failed(&call.id, &call.name, error.clone())).await?;
        Ok(result(&call.id, &call.name, Outcome::failed(error).content))
    }

    /// Adjacent calls that only read are one batch.
    fn batches<'c>(&self, calls: &'c [ModelToolCall]) -> Vec<&'c [ModelToolCall]> {
        let mut batches = Vec::new();
        let mut rest = calls;
        while !rest.is_empty() {
            let reads = rest.iter().take(AT_ONCE).take_while(|call| self.only_reads(call)).count();
            let (batch, after) = rest.split_at(reads.max(1));
            batches.push(batch);
            rest = after;
        }
        batches
    }

    fn only_reads(&self, call: &ModelToolCall) -> bool {
        let granted = self.ctx.resources.tools.iter().find(|tool| tool.tool_name == call.name);
        // The agent's own tools read, and the host refuses unknown ones.
        let Some(tool) = granted else { return true };
        let risk = match tool.metadata.get("risks") {
            Some(methods) => method(call).and_then(|method| methods.get(&method)),
            None => tool.metadata.get("risk"),
        };
        risk.and_then(Value::as_str) == Some("read")
    }

    async fn execute_one(&self, call: &ModelToolCall) -> Result<Outcome, RunFailure> {
        let ctx = self.ctx;
        ctx.emit(RunResult::tool_started(&call.id, &call.name, call.args.clone())).await?;
        let done = self.answer(call).await;
        // A cancelled run sends nothing.
        if ctx.is_cancelled() {
            return Err(RunFailure::cancelled());
        }
        let completed = match &done.error {
            Some(error) => RunResult::tool_failed(&call.id, &call.name, error.clone()),
            None => RunResult::tool_completed(&call.id, &call.name, done.result.clone()),
        };
        ctx.emit(completed).await?;
        Ok(done)
    }

    async fn answer(&self, call: &ModelToolCall) -> Outcome {
        let (Value::Object(args), None) = (&call.args, &call.args_error) else {
            return Outcome::failed(malformed(call));
        };
        let ctx = self.ctx;
        let is_granted = ctx.resources.tools.iter().any(|tool| tool.tool_name == call.name);
        let own = match call.name.as_str() {
            _ if is_granted => None,
            retrieval::SEARCH_TOOLS => Some(self.offer.search(ctx, args).await),
            history::SEARCH_HISTORY => Some(history::search(ctx, args).await),
            client::UPDATE_STATE => Some(self.client.update_state(ctx, args).await),
            reading::READ_ARTIFACT => Some(reading::read(ctx, args).await),
            // The host decides what exists, and tells its operator of a missing grant.
            _ => match call_host(ctx, call, args.clone()).await {
                done if done.error.is_none() => return done,
                _ => return Outcome::failed(self.unknown(&call.name)),
            },
        };
        match own {
            Some(Ok(result)) => Outcome { content: result.to_string(), result, error: None },
            Some(Err(error)) => Outcome::failed(error_value(error)),
            None => call_host(ctx, call, args.clone()).await,
        }
    }

    fn unknown(&self, name: &str) -> Value {
        let known = self.ctx.resources.tools.iter().chain(self.offered());
        let names: Vec<&str> = known.map(|tool| tool.tool_name.as_str()).collect();
        json!({"code": "unknown_tool", "message": format!("unknown tool `{name}`"),
            "close_matches": similar_names(name, &names),
            "hint": "call one of the tools that are offered, by its exact name"})
    }
}

impl Outcome {
    fn failed(error: Value) -> Self {
        let content = json!({"status": "failure", "error": error}).to_string();
        Self { result: Value::Null, content, error: Some(error) }
    }
}

async fn call_host(ctx: &RunCtx, call: &ModelToolCall, parameters: Object) -> Outcome {
    let params = ToolCallParams {
        tool_call_id: Some(call.id.clone()),
        ..ToolCallParams::new(&call.name, parameters)
    };
    match ctx.tools().call_with(params).await {
        Ok(ToolCallResult { result, content, error: None, .. }) => {
            Outcome { content: content.unwrap_or_else(|| result.to_string()), result, error: None }
        }
        Ok(ToolCallResult { content, error: Some(error), .. }) => {
            let failed = Outcome::failed(error);
            Outcome { content: content.unwrap_or_else(|| failed.content.clone()), ..failed }
        }
        Err(error) => Outcome::failed(error_value(error)),
    }
}

/// The result message of a call, of this run or an earlier one.
pub(crate) fn result(id: &str, name: &str, content: String) -> ModelMessage {
    let (content, failed) = with_hint(content);
    ModelMessage {
        tool_call_id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        is_error: failed.then_some(true),
        ..ModelMessage::text(Role::Tool, content)
    }
}

/// A tool's error, with a hint unless the tool gave one; and whether it is an error.
fn with_hint(content: String) -> (String, bool) {
    let Ok(mut value) = serde_json::from_str::<Value>(&content) else { return (content, false) };
    let failed = value.get("status") == Some(&"failure".into());
    let Some(Value::Object(error)) = value.get_mut("error").filter(|_| failed) else {
        return (content, false);
    };
    let hint = match error.get("code").and_then(Value::as_str) {
        _ if error.contains_key("hint") => return (content, true),
        Some("INVALID_ARGUMENT" | "INVALID_ACTION_INPUT") => {
            "correct the arguments so that they fit the schema, and call again"
        }
        Some("TIMEOUT") => "it took too long: ask for less or do without",
        Some("CANCELLED") => "it was cancelled: whether it had an effect is unknown",
        _ => "try something else, or tell the user",
    };
    error.insert("hint".to_owned(), hint.into());
    (value.to_string(), true)
}

/// An API error with a hint.
fn error_value(error: AgentAPIError) -> Value {
    let hint = match error.code {
        ErrorCode::Unauthorized => "this was not allowed: do without it or ask the user",
        ErrorCode::InvalidArgument => "correct the arguments and call again",
        ErrorCode::DeadlineExceeded => "it took too long: ask for less or do without",
        _ if error.retryable => "try again, or do without",
        _ => "do without it, or tell the user",
    };
    let mut value = json!({"code": error.code, "message": error.message, "hint": hint});
    if !error.details.is_empty() {
        value["details"] = Value::Object(error.details);
    }
    value
}

fn malformed(call: &ModelToolCall) -> Value {
    let reason = call.args_error.as_deref().unwrap_or("the arguments are not an object");
    let wrote = call.args_text.as_deref();
    let wrote = wrote.map(|wrote| &wrote[..wrote.floor_char_boundary(REPEATED_BYTES_MAX)]);
    json!({"code": "invalid_arguments", "message": format!("the arguments are not valid: {reason}"),
        "arguments": wrote, "hint": "call again with one JSON object"})
}

/// The warning is part of the result, because nothing may separate a call from its result.
pub(crate) fn with_warning(content: &str, warning: &str) -> String {
    match serde_json::from_str(content) {
        Ok(Value::Object(mut object)) => {
            object.insert("warning".to_owned(), warning.into());
            Value::Object(object).to_string()
        }
        _ => format!("{content}\n\nwarning: {warning}"),
    }
}

/// The method of the project CLI that a call names.
pub(crate) fn method(call: &ModelToolCall) -> Option<String> {
    let word = |key: &str| call.args.get(key).and_then(Value::as_str);
    (call.name == PROJECT_CLI).then_some(())?;
    Some(format!("{}.{}", word("module")?, word("method")?))
}

/// The most similar names, best first.
fn similar_names(name: &str, names: &[&str]) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> =
        names.iter().map(|known| (name_distance(name, known), *known)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(CLOSE_NAMES).map(|(_, known)| known.to_owned()).collect()
}

/// The letter pairs that the names do not share, per thousand.
pub(crate) fn name_distance(one: &str, other: &str) -> usize {
    let pairs = |name: &str| {
        let letters: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
        letters.windows(2).map(<[char]>::to_vec).collect::<Vec<_>>()
    };
    let (one, mut other) = (pairs(one), pairs(other));
    let all = one.len() + other.len();
    let mut alone = 0;
    for pair in &one {
        match other.iter().position(|candidate| candidate == pair) {
            Some(at) => drop(other.swap_remove(at)),
            None => alone += 1,
        }
    }
    (alone + other.len()) * 1000 / all.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_names_come_first() {
        let names = ["fs.write", "calendar.read", "fs.read", "fs.read_dir", "mail.send", "a", "b"];
        let similar_names = similar_names("fs.raed", &names);
        assert_eq!(similar_names.len(), CLOSE_NAMES);
        assert_eq!(similar_names[0], "fs.read");
    }

    #[test]
    fn a_failure_has_a_hint_unless_the_tool_gave_one() {
        let hinted = with_hint(r#"{"status":"failure","error":{"code":"TIMEOUT"}}"#.to_owned());
        assert!(hinted.0.contains("it took too long") && hinted.1, "{hinted:?}");
        for (same, failed) in [
            (r#"{"status":"failure","error":{"code":"TIMEOUT","hint":"wait"}}"#, true),
            (r#"{"error": {"code": 7}}"#, false),
            ("no JSON", false),
        ] {
            assert_eq!(with_hint(same.to_owned()), (same.to_owned(), failed));
        }
    }

    #[test]
    fn a_warning_stays_inside_the_result() {
        assert_eq!(
            with_warning(r#"{"status":"failure"}"#, "stop"),
            r#"{"status":"failure","warning":"stop"}"#
        );
        assert_eq!(with_warning("plain", "stop"), "plain\n\nwarning: stop");
    }
}
