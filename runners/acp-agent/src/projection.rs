//! What the harness may know of the event: files in `.greenroom` of its workspace, written before each run.
//!
//! Invariant: a file is replaced as a whole; it contains only what this run was given, and no token.

use crate::workspace::{Place, write_atomically};
use greenroom_sdk::{Object, RunCtx, Value, json};
use std::fmt::Write;
use std::io;

/// The name that programs know this form by.
const SCHEMA: &str = "langbot.agent_runner.external_harness_context.v1";
/// Metadata of the runtime that are credentials of the run.
const CREDENTIALS: [&str; 2] = ["run_token", "traceparent"];
pub(crate) const CONTEXT: &str = "agent-context.json";
pub(crate) const SUMMARY: &str = "LANGBOT_CONTEXT.md";

/// Writes the files for this run.
pub(crate) fn write(ctx: &RunCtx, place: &Place) -> io::Result<()> {
    let folder = place.own_folder()?;
    let json = serde_json::to_vec_pretty(&context(ctx)).map_err(io::Error::other)?;
    write_atomically(&folder.join(CONTEXT), &json)?;
    write_atomically(&folder.join(SUMMARY), summary(ctx).as_bytes())
}

/// Removes them: what they grant is over.
pub(crate) fn remove(place: &Place) {
    for name in [CONTEXT, SUMMARY] {
        let _ = std::fs::remove_file(place.work.join(crate::workspace::OWN).join(name));
    }
}

fn context(ctx: &RunCtx) -> Value {
    let mut runtime = json!(ctx.runtime);
    if let Some(metadata) = runtime["metadata"].as_object_mut() {
        metadata.retain(|name, _| !CREDENTIALS.contains(&name.as_str()));
    }
    json!({
        "schema": SCHEMA,
        "run_id": ctx.run_id,
        "event": ctx.event,
        "actor": ctx.actor,
        "subject": ctx.subject,
        "input": ctx.input,
        "delivery": ctx.delivery,
        "resources": ctx.resources,
        "context": ctx.context,
        "state": ctx.state,
        "runtime": runtime,
    })
}

/// What a person would want to know.
fn summary(ctx: &RunCtx) -> String {
    let mut text = String::from("# Context of this message\n\n");
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let value: String = value.chars().filter(|c| !c.is_control()).take(500).collect();
            let _ = writeln!(text, "- {name}: {value}");
        }
    };
    let actor = ctx.actor.as_ref();
    let who = actor.map(|actor| {
        let id = actor.actor_id.clone().unwrap_or_default();
        match &actor.actor_name {
            Some(name) => format!("{name} ({} {id})", actor.actor_type),
            None => format!("{} {id}", actor.actor_type),
        }
    });
    let conversation = ctx.conversation.as_ref();
    line("from", who);
    line("event", Some(ctx.event.event_type.clone()));
    line("conversation", conversation.and_then(|one| one.conversation_id.clone()));
    line("thread", conversation.and_then(|one| one.thread_id.clone()));
    line("answers go to", Some(ctx.delivery.surface.clone()));
    line("language", ctx.runtime.locale.clone());
    line("time zone", ctx.runtime.timezone.clone());
    let tools: Vec<String> =
        ctx.resources.tools.iter().map(|tool| tool.tool_name.clone()).collect();
    line("tools of the host", Some(tools.join(", ")));
    line("earlier messages", ctx.context.has_history_before.then(|| "yes".to_owned()));
    text.push_str("\nThe complete context is in `agent-context.json` beside this file.\n");
    text
}

/// The state that this runner keeps: where a session can be found again.
pub(crate) struct Pointers {
    pub(crate) session_id: Option<String>,
    pub(crate) working_directory: Option<String>,
}

pub(crate) const SESSION_ID: &str = "external.session_id";
pub(crate) const WORKING_DIRECTORY: &str = "external.working_directory";

impl Pointers {
    pub(crate) fn read(state: &Object) -> Self {
        let text = |key: &str| state.get(key).and_then(Value::as_str).map(str::to_owned);
        Self { session_id: text(SESSION_ID), working_directory: text(WORKING_DIRECTORY) }
    }
}
