//! What the harness may know and use of this run: files in `.greenroom` of its workspace and skills in its home,
//! written before each run.
//!
//! Invariant: a file is replaced as a whole; there is only what this run was given, and no token.

use crate::beneath::Folder;
use crate::prompt::download;
use crate::sha256_hex;
use crate::skills::{self, Skills};
use crate::workspace::{Place, numbered, plain_name};
use greenroom_sdk::protocol::FileResource;
use greenroom_sdk::{Object, RunCtx, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

/// The name that programs know this form by.
const SCHEMA: &str = "langbot.agent_runner.external_harness_context.v1";
/// Metadata of the runtime that are credentials of the run.
const CREDENTIALS: [&str; 2] = ["run_token", "traceparent"];
pub(crate) const CONTEXT: &str = "agent-context.json";
pub(crate) const SUMMARY: &str = "LANGBOT_CONTEXT.md";
/// The folder of granted files.
const GRANTED: &str = "granted";
/// Largest granted file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What is projected for one run.
pub(crate) struct Projection {
    pub(crate) skills: Skills,
}

impl Projection {
    /// Reads what the run was granted.
    pub(crate) async fn read(ctx: &RunCtx, skills_folder: Option<&str>) -> Self {
        let skills = match skills_folder {
            Some(_) => Skills::read(ctx).await,
            None => Skills::default(),
        };
        Self { skills }
    }

    /// Writes it, and removes what earlier runs were granted.
    pub(crate) async fn write(
        &self,
        ctx: &RunCtx,
        place: &Place,
        skills_folder: Option<&str>,
    ) -> io::Result<()> {
        self.skills.write(place, skills_folder)?;
        let folder = place.own_folder()?;
        let files = write_granted(ctx, &folder).await?;
        let json = serde_json::to_vec_pretty(&context(ctx, &files)).map_err(io::Error::other)?;
        folder.write(CONTEXT, &json)?;
        folder.write(SUMMARY, summary(ctx, &files, &self.skills).as_bytes())
    }
}

/// Removes everything: what it grants is over.
pub(crate) fn remove(place: &Place, skills_folder: Option<&str>) {
    skills::remove(place, skills_folder);
    let Ok(folder) = place.work_folder().and_then(|work| work.open(place.own_path())) else {
        return;
    };
    for name in [CONTEXT, SUMMARY, GRANTED] {
        let _ = folder.remove(name);
    }
}

/// Stores the granted files; the result is their paths below the folder, by id.
async fn write_granted(ctx: &RunCtx, own: &Folder) -> io::Result<BTreeMap<String, String>> {
    let granted = &ctx.resources.files;
    if granted.is_empty() {
        own.remove(GRANTED)?;
        return Ok(BTreeMap::new());
    }
    let folder = own.make(GRANTED)?;
    let mut paths = BTreeMap::new();
    let mut names: Vec<String> = Vec::new();
    for file in granted {
        let name = plain_name(file.name.as_deref().unwrap_or("file"));
        let Some(name) = numbered(&name).find(|name| !names.contains(name)) else { continue };
        if !is_current(&folder, &name, file) {
            match download(ctx, &file.file_id).await {
                Ok(bytes) => folder.write(&name, &bytes)?,
                Err(why) => {
                    eprintln!("cannot read the granted file `{name}`: {why}");
                    continue;
                }
            }
        }
        paths.insert(file.file_id.clone(), format!("{GRANTED}/{name}"));
        names.push(name);
    }
    for (name, _) in folder.entries()? {
        if !names.contains(&name) {
            folder.remove(&name)?;
        }
    }
    Ok(paths)
}

/// Whether the file is there already, with the granted content.
fn is_current(folder: &Folder, name: &str, file: &FileResource) -> bool {
    let Some(wanted) = file.metadata.get("sha256").and_then(Value::as_str) else { return false };
    let size = file.size_bytes.unwrap_or(FILE_BYTES_MAX);
    folder.read(name, size).is_ok_and(|bytes| sha256_hex(&bytes) == wanted)
}

fn context(ctx: &RunCtx, files: &BTreeMap<String, String>) -> Value {
    let mut runtime = json!(ctx.runtime);
    if let Some(metadata) = runtime["metadata"].as_object_mut() {
        metadata.retain(|name, _| !CREDENTIALS.contains(&name.as_str()));
    }
    let mut resources = json!(ctx.resources);
    for file in resources["files"].as_array_mut().into_iter().flatten() {
        if let Some(path) = file["file_id"].as_str().and_then(|id| files.get(id)) {
            file["metadata"]["path"] = path.as_str().into();
        }
    }
    json!({
        "schema": SCHEMA,
        "run_id": ctx.run_id,
        "event": ctx.event,
        "actor": ctx.actor,
        "subject": ctx.subject,
        "input": ctx.input,
        "delivery": ctx.delivery,
        "resources": resources,
        "context": ctx.context,
        "state": ctx.state,
        "runtime": runtime,
    })
}

/// What a person would want to know.
fn summary(ctx: &RunCtx, files: &BTreeMap<String, String>, skills: &Skills) -> String {
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
    let tools = ctx.resources.tools.iter().map(|tool| tool.tool_name.clone());
    line("tools of the host", Some(joined(tools)));
    let knowledge = ctx.resources.knowledge_bases.iter();
    line("knowledge", Some(joined(knowledge.map(|base| base.kb_id.clone()))));
    line("skills", Some(joined(skills.0.iter().map(|skill| skill.name.clone()))));
    line("files to read, beside this one", Some(joined(files.values().cloned())));
    line("earlier messages", ctx.context.has_history_before.then(|| "yes".to_owned()));
    text.push_str("\nThe complete context is in `agent-context.json` beside this file.\n");
    text
}

fn joined(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
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
