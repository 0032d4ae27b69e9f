//! The settings of the host: agents, surfaces, limits. Plain values, no IO.
//!
//! Invariant: `Settings` are replaced as a whole; a run keeps those it was started with.

use crate::budget::{Budget, Micro};
use greenroom_protocol::manifest::StorageArea;
use greenroom_protocol::payload::StateScope;
use greenroom_protocol::{Object, RunnerId};
use greenroom_store::types::{OnInterrupt, Queue};
use greenroom_surfaces::Surface;
use greenroom_tools::Risk;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub agents: Vec<Agent>,
    pub surfaces: BTreeMap<String, Surface>,
    pub limits: Limits,
    pub retention: Retention,
    pub approvals: Approvals,
    /// Limit for the cost of all models of all agents, per day in UTC.
    pub budget_day: Option<Micro>,
    /// The time zone of this machine, as an IANA name, if known.
    pub timezone: Option<String>,
}

/// `[approvals]`: how long an approval stays open. The server decides who may answer.
#[derive(Debug, Clone)]
pub struct Approvals {
    pub expires: Duration,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { expires: Duration::from_secs(1800) }
    }
}

/// A binding: which events go to which runner, with which config and which grant.
#[derive(Debug, Clone)]
pub struct Agent {
    pub name: String,
    /// A built-in agent yields to any matching agent of the user.
    pub built_in: bool,
    pub runner: RunnerId,
    /// Event types, with `*` for any characters. Empty: only events that name the agent.
    pub events: Vec<String>,
    pub scope: Scope,
    /// Dotted event field → the values it may have.
    pub filters: BTreeMap<String, Vec<Value>>,
    pub queue: Queue,
    pub deadline: Duration,
    pub on_interrupt: OnInterrupt,
    /// The surface for answers when the event names none.
    pub delivery: Option<String>,
    /// Becomes `ctx.config`.
    pub config: Object,
    pub grant: GrantPolicy,
    pub budget: Budget,
}

/// Where an agent listens; an absent part matches anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    pub workspace: Option<String>,
    pub bot: Option<String>,
    pub conversation: Option<String>,
    pub actor: Option<String>,
}

/// What a run may read beyond its own event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    #[default]
    None,
    Conversation,
    Workspace,
}

/// Whether an action is refused, needs an approval or is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    Never,
    Ask,
    Always,
}

/// `[agents.NAME.grant]`: what the binding allows (CONTRACT §4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantPolicy {
    pub models: Vec<String>,
    pub tools: Vec<String>,
    pub knowledge: Vec<String>,
    pub history: Reach,
    pub event_log: Reach,
    pub artifacts: Reach,
    pub state: BTreeSet<StateScope>,
    pub storage: BTreeSet<StorageArea>,
    pub actions: BTreeMap<String, Approval>,
    pub files: Vec<String>,
    pub skills: Vec<String>,
    pub modules: Vec<String>,
    pub risks: BTreeMap<Risk, Approval>,
}

impl Default for GrantPolicy {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            tools: Vec::new(),
            knowledge: Vec::new(),
            history: Reach::Conversation,
            event_log: Reach::Conversation,
            artifacts: Reach::Conversation,
            state: [StateScope::Conversation, StateScope::Actor, StateScope::Runner].into(),
            storage: [StorageArea::Plugin, StorageArea::Binding].into(),
            actions: BTreeMap::new(),
            files: Vec::new(),
            skills: Vec::new(),
            modules: Vec::new(),
            // What cannot be undone needs an approval.
            risks: Risk::ALL
                .into_iter()
                .map(|risk| match risk {
                    Risk::Destructive => (risk, Approval::Ask),
                    Risk::Read | Risk::Write | Risk::External => (risk, Approval::Always),
                })
                .collect(),
        }
    }
}

/// `[retention]`: how long rows are kept; `None`: for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    pub events: Option<Duration>,
    pub transcript: Option<Duration>,
    pub ledger: Option<Duration>,
    pub audit: Option<Duration>,
    pub artifacts: Option<Duration>,
    /// Pause between two searches for expired rows.
    pub collect_every: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            events: None,
            transcript: None,
            ledger: None,
            audit: Some(Duration::from_secs(90 * 86_400)),
            artifacts: None,
            collect_every: Duration::from_secs(60),
        }
    }
}

/// The limits that the host itself keeps.
#[derive(Debug, Clone)]
pub struct Limits {
    pub result_bytes: usize,
    pub state_value_bytes: usize,
    /// State of one owner: a conversation, an actor, a subject, a runner or a binding.
    pub state_owner_bytes: u64,
    pub lane_length: i64,
    pub runs_open: usize,
    pub page_size: usize,
    /// Batches of results that a live reader may lag behind.
    pub subscriber_buffer: usize,
    pub runner_start: Duration,
    pub cancel_grace: Duration,
    /// How long a delivery is tried again; none: it is tried once.
    pub delivery_retry: Duration,
    /// Longest pause between two attempts.
    pub delivery_pause_max: Duration,
    /// Cost of the calls that one run may make per second; a look-up costs 1, a search 100.
    pub calls_per_s_run: u64,
    /// The same for all runs of one plugin together.
    pub calls_per_s_plugin: u64,
    /// Largest parameters of one call.
    pub call_bytes: usize,
    /// Largest answer of one call.
    pub response_bytes: usize,
    pub artifact_bytes: u64,
    /// Most bytes of an artifact in one answer.
    pub read_range_bytes: u64,
    pub storage_value_bytes: usize,
    pub storage_plugin_bytes: u64,
    pub storage_workspace_bytes: u64,
    /// Messages that wait to be pulled by one run.
    pub steering_length: i64,
    /// Approvals of one run that nobody has answered.
    pub approvals_pending: i64,
    /// Larger results of tools become artifacts.
    pub tool_result_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            result_bytes: 1 << 20,
            state_value_bytes: 256 << 10,
            state_owner_bytes: 16 << 20,
            lane_length: 100,
            runs_open: 20_000,
            page_size: 200,
            subscriber_buffer: 1024,
            runner_start: Duration::from_secs(20),
            cancel_grace: Duration::from_secs(5),
            delivery_retry: Duration::from_secs(86_400),
            delivery_pause_max: Duration::from_secs(900),
            calls_per_s_run: 50_000,
            calls_per_s_plugin: 200_000,
            call_bytes: 8 << 20,
            response_bytes: 6 << 20,
            artifact_bytes: 256 << 20,
            read_range_bytes: 1 << 20,
            storage_value_bytes: 4 << 20,
            storage_plugin_bytes: 256 << 20,
            storage_workspace_bytes: 2 << 30,
            steering_length: 100,
            approvals_pending: 1000,
            tool_result_bytes: 256 << 10,
        }
    }
}
