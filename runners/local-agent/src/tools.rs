//! The tool calls of one turn: each gets exactly one result.
//!
//! Invariant: what a model wrote that is no JSON is never executed; a call that fails is told as what it is.
//! Calls that only read run side by side, all others one after the other, in the order of the turn.

use crate::config::Config;
use crate::history;
use crate::limits::Limits;
use crate::retrieval::{self, Offer};
use futures_util::future::join_all;
use greenroom_sdk::{
    AgentAPIError, ErrorCode, ModelMessage, ModelToolCall, Object, Role, RunCtx, RunFailure,
    RunResult, ToolCallParams, ToolCallResult, ToolResource, Value, json,
};

/// The tool that the methods of the project CLI are called through.
pub(crate) const PROJECT_CLI: &str = "project_cli";
/// Calls that run side by side.
const AT_ONCE: usize = 8;
/// Calls of one answer that are carried out.
const CALLS_MAX: usize = 64;
/// Bytes of arguments that are no JSON which the model is told again.
const TOLD_BYTES_MAX: usize = 4 * 1024;
/// Names that are told to a model that asked for a tool which does not exist.
const CLOSE_NAMES: usize = 5;

/// What the model may call in this run: what was granted, and what the agent brings itself.
pub(crate) struct Toolbox<'a> {
    ctx: &'a RunCtx,
    offer: Offer,
}

/// How a call went.
struct Done {
    result: Value,
    error: Option<Value>,
    content: String,
}

impl<'a> Toolbox<'a> {
    pub(crate) async fn open(ctx: &'a RunCtx, config: &Config) -> Result<Self, RunFailure> {
        let own =
            Vec::from_iter(ctx.context.available_apis.history_search.then(history::search_tool));
        Ok(Self { ctx, offer: Offer::new(ctx, config, own).await })
    }

    /// What the next request offers.
    pub(crate) fn offered(&self) -> &[ToolResource] {
        self.offer.tools()
    }

    /// The granted tool that a model means by the name that providers write for it: only names that are
    /// offered come back as they were.
    pub(crate) fn meant(&self, name: &str) -> Option<String> {
        let granted = || self.ctx.resources.tools.iter().map(|tool| tool.tool_name.as_str());
        if granted().any(|known| known == name) {
            return None;
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let mut alike = granted().filter(|known| known.chars().map(plain).eq(name.chars()));
        alike.next().filter(|_| alike.next().is_none()).map(str::to_owned)
    }

    /// Carries the calls out and gives the model's messages of their results, in the order of the calls.
    pub(crate) async fn carry_out(
        &mut self,
        calls: &[ModelToolCall],
        limits: &mut Limits,
    ) -> Result<Vec<ModelMessage>, RunFailure> {
        let (calls, beyond) = calls.split_at(calls.len().min(CALLS_MAX));
        let mut told = Vec::with_capacity(calls.len() + beyond.len());
        let mut halt = None;
        for batch in self.batches(calls) {
            let done = join_all(batch.iter().map(|call| self.carry_out_one(call))).await;
            for (call, done) in batch.iter().zip(done) {
                let Done { error, mut content, .. } = done?;
                match limits.note(call, error.is_some()) {
                    Ok(Some(warning)) => content = warned(&content, &warning),
                    Ok(None) => {}
                    Err(failure) => halt = halt.or(Some(failure)),
                }
                self.offer.used(&call.name);
                told.push(result(&call.id, &call.name, content));
            }
            if let Some(failure) = halt {
                return Err(failure);
            }
        }
        for call in beyond {
            told.push(self.refuse(call).await?);
        }
        Ok(told)
    }

    /// The result of a call that is one too many.
    async fn refuse(&self, call: &ModelToolCall) -> Result<ModelMessage, RunFailure> {
        let error = json!({"code": "too_many_calls",
            "message": format!("too many calls at once: only the first {CALLS_MAX} were carried out"),
            "hint": "make the others in your next answer, if they are still needed"});
        let started = RunResult::tool_started(&call.id, &call.name, call.args.clone());
        self.ctx.emit(started).await?;
        self.ctx.emit(RunResult::tool_failed(&call.id, &call.name, error.clone())).await?;
        Ok(result(&call.id, &call.name, Done::failed(error).content))
    }

    /// Neighbours that only read stand in one batch.
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
        granted.is_none_or(|tool| tool.metadata.get("risk") == Some(&"read".into()))
    }

    async fn carry_out_one(&self, call: &ModelToolCall) -> Result<Done, RunFailure> {
        let ctx = self.ctx;
        ctx.emit(RunResult::tool_started(&call.id, &call.name, call.args.clone())).await?;
        let done = self.answer(call).await;
        // A run that is over has nobody to tell.
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

    async fn answer(&self, call: &ModelToolCall) -> Done {
        let (Value::Object(args), None) = (&call.args, &call.args_error) else {
            return Done::failed(malformed(call));
        };
        let ctx = self.ctx;
        let is_granted = ctx.resources.tools.iter().any(|tool| tool.tool_name == call.name);
        let own = match call.name.as_str() {
            _ if is_granted => None,
            retrieval::SEARCH_TOOLS => Some(self.offer.search(ctx, args).await),
            history::SEARCH_HISTORY => Some(history::search(ctx, args).await),
            // The host decides what exists, and tells its operator of a grant that is missing.
            _ => match called(ctx, call, args.clone()).await {
                done if done.error.is_none() => return done,
                _ => return Done::failed(self.unknown(&call.name)),
            },
        };
        match own {
            Some(Ok(result)) => Done { content: result.to_string(), result, error: None },
            Some(Err(error)) => Done::failed(told(error)),
            None => called(ctx, call, args.clone()).await,
        }
    }

    fn unknown(&self, name: &str) -> Value {
        let known = self.ctx.resources.tools.iter().chain(self.offered());
        let names: Vec<&str> = known.map(|tool| tool.tool_name.as_str()).collect();
        json!({"code": "unknown_tool", "message": format!("there is no tool `{name}`"),
            "close_matches": close(name, &names),
            "hint": "call one of the tools that are offered, by its exact name"})
    }
}

impl Done {
    fn failed(error: Value) -> Self {
        let content = json!({"status": "failure", "error": error}).to_string();
        Self { result: Value::Null, content, error: Some(error) }
    }
}

async fn called(ctx: &RunCtx, call: &ModelToolCall, parameters: Object) -> Done {
    let params = ToolCallParams {
        tool_call_id: Some(call.id.clone()),
        ..ToolCallParams::new(&call.name, parameters)
    };
    match ctx.tools().call_with(params).await {
        Ok(ToolCallResult { result, content, error: None, .. }) => {
            Done { content: content.unwrap_or_else(|| result.to_string()), result, error: None }
        }
        Ok(ToolCallResult { content, error: Some(error), .. }) => {
            let failed = Done::failed(error);
            Done { content: content.unwrap_or_else(|| failed.content.clone()), ..failed }
        }
        Err(error) => Done::failed(told(error)),
    }
}

/// The message that answers a call; the same for a call of this run and for one of the past.
pub(crate) fn result(id: &str, name: &str, content: String) -> ModelMessage {
    ModelMessage {
        tool_call_id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        ..ModelMessage::text(Role::Tool, hinted(content))
    }
}

/// What a tool says went wrong, with what to do about it where the tool does not say.
fn hinted(content: String) -> String {
    let Ok(mut told) = serde_json::from_str::<Value>(&content) else { return content };
    let failed = told.get("status") == Some(&"failure".into());
    let Some(Value::Object(error)) = told.get_mut("error").filter(|_| failed) else {
        return content;
    };
    let hint = match error.get("code").and_then(Value::as_str) {
        _ if error.contains_key("hint") => return content,
        Some("INVALID_ARGUMENT" | "INVALID_ACTION_INPUT") => {
            "correct the arguments so that they fit the schema, and call again"
        }
        Some("TIMEOUT") => "it took too long: ask for less or do without",
        Some("CANCELLED") => "it was called off: whether it had an effect is not known",
        _ => "try something else, or tell the user",
    };
    error.insert("hint".to_owned(), hint.into());
    told.to_string()
}

/// A refusal, with what helps to call again.
fn told(error: AgentAPIError) -> Value {
    let hint = match error.code {
        ErrorCode::Unauthorized => "this was not allowed: do without it or ask the user",
        ErrorCode::InvalidArgument => "correct the arguments and call again",
        ErrorCode::DeadlineExceeded => "it took too long: ask for less or do without",
        _ if error.retryable => "try again, or do without",
        _ => "do without it, or tell the user",
    };
    let mut told = json!({"code": error.code, "message": error.message, "hint": hint});
    if !error.details.is_empty() {
        told["details"] = Value::Object(error.details);
    }
    told
}

fn malformed(call: &ModelToolCall) -> Value {
    let reason = call.args_error.as_deref().unwrap_or("the arguments are not an object");
    let wrote = call.args_text.as_deref();
    let wrote = wrote.map(|wrote| &wrote[..wrote.floor_char_boundary(TOLD_BYTES_MAX)]);
    json!({"code": "invalid_arguments", "message": format!("the arguments are not valid: {reason}"),
        "arguments": wrote, "hint": "call again with one JSON object"})
}

/// The warning stands in the result, so that nothing stands between a call and its result.
fn warned(content: &str, warning: &str) -> String {
    match serde_json::from_str(content) {
        Ok(Value::Object(mut object)) => {
            object.insert("warning".to_owned(), warning.into());
            Value::Object(object).to_string()
        }
        _ => format!("{content}\n\nwarning: {warning}"),
    }
}

/// The names that are most like `name`, best first.
fn close(name: &str, names: &[&str]) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> =
        names.iter().map(|known| (unlikeness(name, known), *known)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(CLOSE_NAMES).map(|(_, known)| known.to_owned()).collect()
}

/// How many of a thousand pairs of neighbouring letters the names do not share.
pub(crate) fn unlikeness(one: &str, other: &str) -> usize {
    let pairs = |name: &str| {
        let letters: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
        letters.windows(2).map(<[char]>::to_vec).collect::<Vec<_>>()
    };
    let (one, mut other) = (pairs(one), pairs(other));
    let all = one.len() + other.len();
    let mut alone = 0;
    for pair in &one {
        match other.iter().position(|had| had == pair) {
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
    fn the_names_that_are_most_alike_come_first() {
        let names = ["fs.write", "calendar.read", "fs.read", "fs.read_dir", "mail.send", "a", "b"];
        let close = close("fs.raed", &names);
        assert_eq!(close.len(), CLOSE_NAMES);
        assert_eq!(close[0], "fs.read");
    }

    #[test]
    fn a_failure_says_what_to_do_about_it_unless_the_tool_has_said_so() {
        let told = hinted(r#"{"status":"failure","error":{"code":"TIMEOUT"}}"#.to_owned());
        assert!(told.contains("it took too long"), "{told}");
        for same in [
            r#"{"status":"failure","error":{"code":"TIMEOUT","hint":"wait"}}"#,
            r#"{"error": {"code": 7}}"#,
            "no JSON",
        ] {
            assert_eq!(hinted(same.to_owned()), same);
        }
    }

    #[test]
    fn a_warning_stays_inside_the_result() {
        assert_eq!(
            warned(r#"{"status":"failure"}"#, "stop"),
            r#"{"status":"failure","warning":"stop"}"#
        );
        assert_eq!(warned("plain", "stop"), "plain\n\nwarning: stop");
    }
}
