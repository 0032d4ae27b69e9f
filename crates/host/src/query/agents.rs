//! Agents for operators: their configuration, their runners, and the grant of a run that would start now.
//!
//! Invariant: reads only; no secret is shown.

use crate::binding::{Match, explain, resolve};
use crate::context::workspace_of;
use crate::gateway::{Refusal, refuse_host_source, surface};
use crate::grant::Grant;
use crate::host::Host;
use crate::resources::granted_resources;
use crate::settings::Agent;
use greenroom_protocol::NewEvent;
use greenroom_runtime::RunnerState;
use serde_json::{Value, json};

impl Host {
    /// Every agent, in the order of the configuration.
    pub fn agents(&self) -> Vec<Value> {
        self.settings().agents.iter().map(|agent| self.agent_view(agent)).collect()
    }

    /// One agent in full.
    pub fn agent(&self, name: &str) -> Option<Value> {
        let settings = self.settings();
        let agent = settings.agents.iter().find(|agent| agent.name == name)?;
        let descriptor = self.runtime().descriptor(&agent.runner);
        let usd = |micro: Option<i64>| micro.map(|micro| micro as f64 / 1_000_000.0);
        let mut view = self.agent_view(agent);
        let more = json!({
            "budget": {"run_usd": usd(agent.budget.run), "day_usd": usd(agent.budget.day)},
            "config": agent.config, "policy": agent.grant, "grant": self.grant_of(agent),
            "manifest": descriptor.map(|descriptor| descriptor.manifest.clone()),
            "runner": self.runner_state(agent.runner.as_str()).as_ref().map(runner_view),
        });
        if let (Value::Object(view), Value::Object(more)) = (&mut view, more) {
            view.extend(more);
        }
        self.redactor().value(&mut view);
        Some(view)
    }

    /// The agent that an event would go to, and its grant. Nothing is stored.
    pub fn try_event(&self, event: &NewEvent) -> Result<Value, Refusal> {
        refuse_host_source(event)?;
        let settings = self.settings();
        let workspace = workspace_of(event);
        let candidates: Vec<Value> = explain(&settings.agents, event, workspace)
            .into_iter()
            .map(|it| {
                json!({"agent": it.agent.name, "built_in": it.agent.built_in,
                    "matches": it.matches, "chosen": it.chosen, "why": it.why})
            })
            .collect();
        let (mut agent, mut reason, mut tie) = (None, None, Vec::new());
        let outcome = match resolve(&settings.agents, event, workspace) {
            Match::One(one, bound) => {
                (agent, reason) = (Some(one), Some(bound.reason));
                "run"
            }
            Match::None => "unbound",
            Match::Unknown => "unknown_agent",
            Match::Tie(names) => {
                tie = names.into_iter().map(str::to_owned).collect();
                "tie"
            }
        };
        let surface = surface(&settings, None, event, agent)?;
        let grant = agent.and_then(|agent| self.grant_of(agent));
        let seen = grant.as_ref().map(|grant| granted_resources(grant, &self.resources()));
        let binding = agent.map(|agent| {
            json!({"queue": agent.queue.as_str(), "deadline_s": agent.deadline.as_secs(),
                "on_interrupt": agent.on_interrupt.as_str(), "delivery": surface})
        });
        let available =
            agent.is_some_and(|agent| self.runtime().descriptor(&agent.runner).is_some());
        let mut tried = json!({
            "agent": agent.map(|agent| &agent.name), "outcome": outcome, "reason": reason,
            "tie": tie, "candidates": candidates, "binding": binding, "grant": grant,
            "resources": seen, "runner_available": available,
        });
        self.redactor().value(&mut tried);
        Ok(tried)
    }

    /// The process that offers a runner, or offered it before it ended.
    pub(crate) fn runner_state(&self, runner_id: &str) -> Option<RunnerState> {
        let mut states = self.runtime().runners();
        let offers = |state: &RunnerState| {
            state.descriptors.iter().any(|offered| offered.manifest.id.as_str() == runner_id)
        };
        let plugin = runner_id.strip_prefix("plugin:").and_then(|rest| rest.rsplit_once('/'));
        let was = |state: &RunnerState| {
            state.plugin.is_some() && state.plugin.as_deref() == plugin.map(|(plugin, _)| plugin)
        };
        let index = states.iter().position(offers).or_else(|| states.iter().position(was))?;
        Some(states.swap_remove(index))
    }

    /// The grant that a run of an agent would get now; none while its runner is unknown.
    fn grant_of(&self, agent: &Agent) -> Option<Grant> {
        let descriptor = self.runtime().descriptor(&agent.runner)?;
        Some(Grant::build(agent, &descriptor.manifest, &self.resources().names()))
    }

    fn agent_view(&self, agent: &Agent) -> Value {
        let available = self.runtime().descriptor(&agent.runner).is_some();
        json!({"name": agent.name, "runner_id": agent.runner, "events": agent.events,
            "commands": agent.commands, "scope": agent.scope, "filters": agent.filters,
            "queue": agent.queue.as_str(),
            "deadline_s": agent.deadline.as_secs(), "on_interrupt": agent.on_interrupt.as_str(),
            "delivery": agent.delivery, "built_in": agent.built_in,
            "runner_available": available})
    }
}

/// A runner's process without its descriptors.
fn runner_view(state: &RunnerState) -> Value {
    let mut view = serde_json::to_value(state).unwrap_or_default();
    if let Some(view) = view.as_object_mut() {
        view.remove("descriptors");
    }
    view
}
