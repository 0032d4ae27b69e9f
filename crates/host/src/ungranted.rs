//! Calls of tools that exist but are not granted, with the line that would grant them, for operators.
//!
//! Invariant: the runner gets the same answer as for a tool that does not exist; the list is bounded.

use crate::host::Shared;
use crate::ids::now_ms;
use crate::settings::{Agent, Settings};
use greenroom_store::commands::RecordDiagnostics;
use greenroom_store::types::Diagnostic;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of the diagnostic that a run gets.
const KIND: &str = "grant.missing";
/// Tools remembered, over all agents.
const REMEMBERED_MAX: usize = 256;

/// The list of a grant that a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    Modules,
}

/// A refused call.
pub(crate) struct Refused<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) list: List,
    pub(crate) name: &'a str,
}

/// Tools that were refused since the last reload.
#[derive(Default)]
pub(crate) struct Ungranted {
    /// By agent and name: the message, and the last run that got it.
    seen: Mutex<BTreeMap<(String, String), (String, String)>>,
}

impl Ungranted {
    /// Logs which line would grant the tool and adds it to the diagnostics of the run, once per run.
    pub(crate) fn note(shared: &Arc<Shared>, settings: &Settings, refused: &Refused<'_>) {
        let Some(message) = shared.ungranted.remember(settings, refused) else { return };
        tracing::warn!(run.id = refused.run_id, agent = refused.agent, "{message}");
        let diagnostic = Diagnostic { kind: KIND.to_owned(), message, created_at: now_ms() };
        let (store, run_id) = (shared.store.clone(), refused.run_id.to_owned());
        let command = RecordDiagnostics { run_id, diagnostics: vec![diagnostic] };
        shared.tasks.spawn("note of a missing grant", async move {
            if let Err(error) = store.commit(command).await {
                tracing::warn!(%error, "cannot store the diagnostic of a missing grant");
            }
        });
    }

    /// One sentence per agent and tool.
    pub(crate) fn list(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let sentence = |((agent, _), (message, _)): (&(String, String), &(String, String))| {
            format!("agent `{agent}`: {message}")
        };
        seen.iter().map(sentence).collect()
    }

    /// Another configuration may grant what was refused.
    pub(crate) fn clear(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The message, unless the run has it already.
    fn remember(&self, settings: &Settings, refused: &Refused<'_>) -> Option<String> {
        let key = (refused.agent.to_owned(), refused.name.to_owned());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = seen.len() >= REMEMBERED_MAX;
        match seen.get_mut(&key) {
            Some((_, run)) if run == refused.run_id => None,
            Some((message, run)) => {
                refused.run_id.clone_into(run);
                Some(message.clone())
            }
            None if is_full => None,
            None => {
                let agent = settings.agents.iter().find(|agent| agent.name == refused.agent);
                let message = message(agent, refused);
                seen.insert(key, (message.clone(), refused.run_id.to_owned()));
                Some(message)
            }
        }
    }
}

/// The line to add, and where.
fn message(agent: Option<&Agent>, refused: &Refused<'_>) -> String {
    let Refused { name, list, agent: agent_name, .. } = refused;
    let (what, key) = match list {
        List::Tools => ("tool", "tools"),
        List::Modules => ("method", "modules"),
    };
    let granted = agent.map(|agent| match list {
        List::Tools => &agent.grant.tools,
        List::Modules => &agent.grant.modules,
    });
    let names = granted.into_iter().flatten().map(String::as_str).chain([*name]);
    let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    let line = format!("{key} = [{}]", names.join(", "));
    let place = match agent.is_some_and(|agent| agent.built_in) {
        true => format!(
            "a `[agents.{agent_name}.grant]` of your own, the built-in agent's cannot be changed"
        ),
        false => format!("`[agents.{agent_name}.grant]`"),
    };
    format!("the {what} `{name}` exists but is not granted; to allow it, write `{line}` in {place}")
}
