//! The routes of CopilotKit's runtime: info, run, connect, stop.
//!
//! Invariant: a client that connects gets the stored thread of the agent that it names, then the running run as
//! a live stream.

use super::event::{Event, Outcome};
use super::follow::StreamStart;
use super::input::{Profile, SOURCE, TOOL_RESULT};
use super::{AguiRequest, RunToFollow, follow, history};
use crate::access::Caller;
use crate::facts::{can_read, stored_id};
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use crate::stream::respond;
use axum::extract::{Path, Request, State};
use futures_util::stream;
use greenroom_host::HistoryQuery;
use greenroom_protocol::{RunStatus, RunView};
use greenroom_store::reads::Direction;
use greenroom_store::reads::conversations::Reach;
use greenroom_store::reads::runs::RunFilter;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// Items of a thread that a connecting client gets.
const ITEMS_SHOWN: usize = 200;
/// Runs of a thread that are examined.
const RUNS_SHOWN: usize = 200;

pub(crate) async fn info(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    params.only(&[])?;
    let settings = app.host.settings();
    let visible = settings.agents.iter().filter(|agent| caller.require_agent(&agent.name).is_ok());
    let agents: Map<String, Value> = visible
        .map(|agent| {
            let description = json!({"name": agent.name, "description": agent.runner.to_string(),
                "className": "GreenroomAgent"});
            (agent.name.clone(), description)
        })
        .collect();
    ok(json!({"version": env!("CARGO_PKG_VERSION"), "agents": agents, "mode": "sse",
        "a2uiEnabled": true, "audioFileTranscriptionEnabled": false}))
}

pub(crate) async fn connect(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(agent): Id,
    request: Request,
) -> ApiResult {
    let agui = AguiRequest::read(app, caller, params, agent, request).await?;
    agui.connect().await
}

pub(crate) async fn stop(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Path((agent, thread)): Path<(String, String)>,
) -> ApiResult {
    caller.require_cancel()?;
    let params = params.only(&["workspace_id"])?;
    let (Id(agent), Id(thread)) = (Id::parse(agent)?, Id::parse(thread)?);
    caller.require_agent(&agent)?;
    let workspace = params.workspace();
    let mut stopped = 0;
    let thread = stored_id(&app, &caller, workspace, thread).await?;
    if !can_read(&app, &caller, workspace, Some(&thread)).await? {
        return ok(json!({"stopped": stopped}));
    }
    let agents = agents_of(&app, &caller, &agent);
    for run in runs(&app, workspace, &agents, &thread).await? {
        if run.status.is_open() {
            app.host.cancel(workspace, &run.run_id).await?;
            stopped += 1;
        }
    }
    ok(json!({"stopped": stopped}))
}

/// The agents whose runs are in a thread of `agent`: itself, and those that take its slash commands.
fn agents_of(app: &App, caller: &Caller, agent: &str) -> HashSet<String> {
    let settings = app.host.settings();
    let commands = settings.agents.iter().filter(|agent| !agent.commands.is_empty());
    let visible = commands.filter(|agent| caller.require_agent(&agent.name).is_ok());
    visible.map(|agent| agent.name.clone()).chain([agent.to_owned()]).collect()
}

/// The runs of these agents in a thread, newest first.
async fn runs(
    app: &App,
    workspace: &str,
    agents: &HashSet<String>,
    thread: &str,
) -> Result<Vec<RunView>, Problem> {
    let filter = RunFilter { conversation_id: Some(thread.to_owned()), ..RunFilter::default() };
    let page = app.host.runs(workspace, filter, None, RUNS_SHOWN).await?;
    let mut runs = page.map(|page| page.items).unwrap_or_default();
    runs.retain(|run| agents.contains(&run.agent));
    Ok(runs)
}

impl AguiRequest {
    async fn connect(self) -> ApiResult {
        self.caller.require_agent(&self.agent)?;
        if !can_read(&self.app, &self.caller, &self.workspace, Some(&self.conversation)).await? {
            return Ok(self.stored_response(Vec::new()));
        }
        let agents = agents_of(&self.app, &self.caller, &self.agent);
        let runs = runs(&self.app, &self.workspace, &agents, &self.conversation).await?;
        // The oldest running run: the others wait for it.
        let live = runs.iter().rev().find(|run| run.status == RunStatus::Running);
        let stored_runs: HashSet<&str> = runs
            .iter()
            .map(|run| run.run_id.as_str())
            .filter(|run_id| live.is_none_or(|live| live.run_id != *run_id))
            .collect();
        let mut items = self.items().await?;
        self.add_tool_results(&mut items).await?;
        items.retain(|item| {
            let run_id = item["run_id"].as_str().unwrap_or_default();
            let is_live = live.is_some_and(|live| live.run_id == run_id);
            let is_input = item["role"] == "user" || item["role"] == "event";
            stored_runs.contains(run_id) || (is_live && is_input)
        });
        let works = self.works(&items, live).await?;
        let base = &self.app.options.base_path;
        let look = history::Look { base, catalogue: self.input.catalogue(), works: &works };
        let messages = history::messages(&items, look);
        let mut history = match items.is_empty() {
            true => Vec::new(),
            false => vec![history::snapshot(messages.clone())],
        };
        match live {
            Some(live) => {
                let run = RunToFollow {
                    run_id: live.run_id.clone(),
                    from: StreamStart::Beginning,
                    may_be_waiting: true,
                };
                let state = self.input.state.clone();
                self.follow_with(run, messages, state, history).await
            }
            None => {
                // Steps and sub-agents are events only: those of the newest run are repeated.
                let newest = runs.first().and_then(|run| works.get(&run.run_id));
                history.extend(newest.into_iter().flat_map(|work| work.progress.iter().cloned()));
                Ok(self.stored_response(history))
            }
        }
    }

    /// What the stored runs of these items showed of their work.
    async fn works(
        &self,
        items: &[Value],
        live: Option<&RunView>,
    ) -> Result<HashMap<String, history::Work>, Problem> {
        let runs: HashSet<&str> = items.iter().filter_map(|item| item["run_id"].as_str()).collect();
        let stored = runs.into_iter().filter(|run| live.is_none_or(|live| live.run_id != *run));
        let found = self.app.host.results_with_work(stored.map(str::to_owned).collect()).await?;
        let works = found.into_iter().map(|(run_id, records)| {
            let work = history::Work::of_run(self.stream(run_id.clone()), &records);
            (run_id, work)
        });
        Ok(works.collect())
    }

    async fn items(&self) -> Result<Vec<Value>, Problem> {
        let (direction, language) = (Direction::Backward, self.language);
        // What the client replaced is not shown again.
        let hidden = self.app.host.superseded(&self.workspace, &self.conversation).await?;
        let query = HistoryQuery { cursor: None, direction, limit: ITEMS_SHOWN, language, hidden };
        let page =
            self.app.host.history(&self.workspace, &self.conversation, Reach::All, query).await?;
        Ok(page.flatten().map(|page| page.items).unwrap_or_default())
    }

    /// The results of the client's tools, which only the events of the items have.
    async fn add_tool_results(&self, items: &mut [Value]) -> Result<(), Problem> {
        let is_result = |item: &&mut Value| item["metadata"]["event_type"] == TOOL_RESULT;
        for item in items.iter_mut().filter(is_result) {
            let Some(id) = item["event_id"].as_str() else { continue };
            let events = self.app.host.events_by_id(&self.workspace, id).await?;
            let own = events.iter().find(|event| {
                event["source"] == SOURCE && event["conversation_id"] == item["conversation_id"]
            });
            item["results"] = own.map(|event| event["event"]["data"]["results"].clone()).into();
        }
        Ok(())
    }

    /// A stream of stored items only.
    fn stored_response(&self, history: Vec<Event>) -> axum::response::Response {
        let (thread_id, run_id) = (self.input.thread_id.clone(), self.input.run_id.clone());
        let profile = self.input.profile();
        let started = Event::RunStarted {
            thread_id: thread_id.clone(),
            run_id: run_id.clone(),
            protocol_version: (profile == Profile::One).then_some("1.0"),
            metadata: Map::new(),
        };
        let outcome = (profile == Profile::One).then_some(Outcome::Success { pending: Vec::new() });
        let (result, usage) = (None, Vec::new());
        let finished = Event::RunFinished { thread_id, run_id, result, outcome, usage };
        let events = [started].into_iter().chain(history).chain([finished]).collect();
        let frames = follow::frames(events, None);
        respond(stream::once(async move { frames }))
    }
}
