//! Which tools a request offers: all of them, or relevant ones and a search for the others.
//!
//! Invariant: the order is stable and only grows at its end, also from run to run, so that prompt caches stay valid.
//! Offering does not affect what may be called.

use crate::config::Config;
use crate::tools::PROJECT_CLI;
use greenroom_sdk::{
    AgentAPIError, ErrorCode, Object, RunCtx, ToolResource, ToolSearchParams, Value, json,
};
use std::sync::{Mutex, PoisonError};

pub(crate) const SEARCH_TOOLS: &str = "search_tools";
/// Tools that are always offered: the first contains methods, the second reads skill cards.
const ALWAYS_OFFERED: [&str; 2] = [PROJECT_CLI, "skill.read"];
const TOP_K: u64 = 5;
const TOP_K_MAX: u64 = 20;

/// With this many times the configured number of tools, a conversation starts with a new choice.
const GROWTH_MAX: usize = 3;
/// A run adds this part of the configured number to what the last one offered.
const NEW_SHARE: usize = 4;
/// Characters of a search query.
const QUERY_CHARS_MAX: usize = 1000;

/// What earlier runs of the conversation have to do with the choice of tools.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// The names that the last run offered, if they were a choice.
    pub(crate) offered: Vec<String>,
    /// The last messages to the agent, newest first.
    pub(crate) said: Vec<String>,
}

pub(crate) struct Offer {
    /// Not all granted tools fit.
    is_choice: bool,
    granted: Vec<ToolResource>,
    offered: Vec<ToolResource>,
    /// Names found by a search, offered from the next request on.
    found: Mutex<Vec<String>>,
}

impl Offer {
    /// The tools of the first request: granted tools, and the agent's `own`.
    pub(crate) async fn new(
        ctx: &RunCtx,
        config: &Config,
        own: Vec<ToolResource>,
        earlier: &Earlier,
    ) -> Self {
        let mut granted = ctx.resources.tools.clone();
        granted.sort_by(|one, other| one.tool_name.cmp(&other.tool_name));
        let count = config.tools_in_prompt;
        if granted.len() <= count {
            let offered = granted.iter().cloned().chain(own).collect();
            return Self { is_choice: false, granted, offered, found: Mutex::default() };
        }
        let wanted = best(ctx, &granted, count, &earlier.said).await;
        let own: Vec<ToolResource> = std::iter::once(search_tool()).chain(own).collect();
        let known = [granted.clone(), own.clone()].concat();
        let mut offered = match earlier.offered.is_empty() {
            true => Vec::new(),
            false => continued(&earlier.offered, &wanted, &known, count),
        };
        if offered.is_empty() {
            let chosen = granted.iter().filter(|tool| wanted.contains(&tool.tool_name));
            offered = chosen.cloned().collect();
        }
        // Those of the client may be new.
        for tool in own {
            if offered.iter().all(|one| one.tool_name != tool.tool_name) {
                offered.push(tool);
            }
        }
        let is_choice = true;
        Self { is_choice, granted, offered, found: Mutex::default() }
    }

    /// The names of the offered tools, if they are a choice.
    pub(crate) fn chosen(&self) -> Vec<&str> {
        let names = self.offered.iter().map(|tool| tool.tool_name.as_str());
        if self.is_choice { names.collect() } else { Vec::new() }
    }

    pub(crate) fn tools(&self) -> &[ToolResource] {
        &self.offered
    }

    /// Keeps a called tool, and search results, for the rest of the run.
    pub(crate) fn used(&mut self, name: &str) {
        let found = std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner));
        for name in found.iter().map(String::as_str).chain([name]) {
            let is_new = !self.offered.iter().any(|tool| tool.tool_name == name);
            let granted = self.granted.iter().find(|tool| tool.tool_name == name);
            self.offered.extend(granted.filter(|_| is_new).cloned());
        }
    }

    /// Executes a call of `search_tools`; its results are offered from then on.
    pub(crate) async fn search(&self, ctx: &RunCtx, args: &Object) -> Result<Value, AgentAPIError> {
        let tools = ctx.tools().search_with(search_params(args)?).await?;
        let names = tools.iter().map(|tool| tool.tool_name.clone());
        self.found.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
        let listed = tools.iter().map(|tool| {
            json!({"name": tool.tool_name, "description": tool.description,
                "parameters": tool.parameters})
        });
        Ok(json!({"tools": listed.collect::<Vec<_>>()}))
    }
}

/// What the last run offered, as far as it still exists, then the best of what is new. A new choice if that becomes
/// too much.
fn continued(
    before: &[String],
    wanted: &[String],
    known: &[ToolResource],
    count: usize,
) -> Vec<ToolResource> {
    let find = |name: &String| known.iter().find(|tool| tool.tool_name == *name).cloned();
    let mut all: Vec<ToolResource> = before.iter().filter_map(find).collect();
    let is_new = |name: &&String| !before.contains(name);
    all.extend(wanted.iter().filter(is_new).take((count / NEW_SHARE).max(1)).filter_map(find));
    if all.len() > count * GROWTH_MAX { Vec::new() } else { all }
}

/// The names of the most relevant tools, best first. If the search fails, the first ones.
async fn best(
    ctx: &RunCtx,
    granted: &[ToolResource],
    count: usize,
    said: &[String],
) -> Vec<String> {
    let mut wanted: Vec<String> = Vec::new();
    for query in queries(ctx, said) {
        let top_k = u32::try_from(count).unwrap_or(u32::MAX);
        match ctx.tools().search_with(ToolSearchParams { query, top_k }).await {
            Ok(tools) => wanted.extend(tools.into_iter().map(|tool| tool.tool_name)),
            Err(_) => wanted.extend(granted.iter().map(|tool| tool.tool_name.clone())),
        }
    }
    let kept = ALWAYS_OFFERED.iter().map(|name| (*name).to_owned());
    let kept = kept.filter(|name| granted.iter().any(|tool| tool.tool_name == *name));
    let mut names: Vec<String> = Vec::new();
    for name in kept.chain(wanted) {
        if names.len() < count && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The search queries: the event's text, else its type and data; then the text with what was said before it, for an
/// event that means little by itself.
fn queries(ctx: &RunCtx, said: &[String]) -> Vec<String> {
    let text = ctx.text().trim();
    let texts = ctx.event.data.values().filter_map(Value::as_str);
    let words: Vec<&str> = match text.is_empty() {
        true => std::iter::once(ctx.event.event_type.as_str()).chain(texts).collect(),
        false => vec![text],
    };
    let alone = words.join(" ");
    let said = said.iter().map(|text| text.trim()).collect::<Vec<_>>().join("\n");
    let together = if said.is_empty() { String::new() } else { format!("{alone}\n{said}") };
    let queries = [alone, together].into_iter().filter(|query| !query.trim().is_empty());
    queries.map(|query| query.chars().take(QUERY_CHARS_MAX).collect()).collect()
}

fn search_params(args: &Object) -> Result<ToolSearchParams, AgentAPIError> {
    let wrong = |field: &str, problem: &str| {
        let error = AgentAPIError::new(ErrorCode::InvalidArgument, format!("`{field}` {problem}"));
        error.detail("field", field).detail("schema", Value::Object(schema()))
    };
    let query = match args.get("query") {
        Some(Value::String(query)) if !query.trim().is_empty() => query.clone(),
        _ => return Err(wrong("query", "must be a non-empty string")),
    };
    let top_k = match args.get("top_k") {
        None | Some(Value::Null) => TOP_K,
        Some(number) => match number.as_u64().filter(|top_k| (1..=TOP_K_MAX).contains(top_k)) {
            Some(top_k) => top_k,
            None => return Err(wrong("top_k", "must be an integer from 1 to 20")),
        },
    };
    match args.keys().find(|key| !["query", "top_k"].contains(&key.as_str())) {
        Some(other) => Err(wrong(other, "is not a parameter of this tool")),
        None => Ok(ToolSearchParams { query, top_k: u32::try_from(top_k).unwrap_or(u32::MAX) }),
    }
}

fn schema() -> Object {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, in a few words"},
            "top_k": {"type": "integer", "minimum": 1, "maximum": TOP_K_MAX, "default": TOP_K},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    match schema {
        Value::Object(schema) => schema,
        _ => Object::new(),
    }
}

/// The tool that finds the others.
pub(crate) fn search_tool() -> ToolResource {
    ToolResource {
        tool_name: SEARCH_TOOLS.to_owned(),
        description: Some(
            "Finds more tools by what they do. Not every tool is listed here: search before you \
             say that something cannot be done. What is found can be called at once."
                .to_owned(),
        ),
        parameters: schema(),
        ..ToolResource::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_names_the_field_that_is_wrong_and_the_schema() {
        let args = |value: Value| value.as_object().cloned().unwrap_or_default();
        for (given, field) in [
            (json!({}), "query"),
            (json!({"query": " "}), "query"),
            (json!({"query": "x", "top_k": 0}), "top_k"),
            (json!({"query": "x", "limit": 3}), "limit"),
        ] {
            let error = search_params(&args(given)).unwrap_err();
            assert_eq!(error.details["field"], field);
            assert_eq!(error.details["schema"], Value::Object(schema()));
        }
        let fine = search_params(&args(json!({"query": "mail", "top_k": 3}))).unwrap();
        assert_eq!((fine.query.as_str(), fine.top_k), ("mail", 3));
    }
}
