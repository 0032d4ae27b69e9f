//! The settings of the host: agents, surfaces, limits. Plain values, no IO.
//!
//! Invariant: `Settings` are replaced as a whole; a run keeps those it was started with.

use greenroom_config::Micro;
pub use greenroom_config::{
    Approval, Approvals, Budget, GrantPolicy, Limits, Reach, Retention, Scope, Telemetry, Threads,
};
use greenroom_protocol::{Object, OnInterrupt, Queue, Replaces, RunnerId};
use greenroom_surfaces::Surface;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub agents: Vec<Agent>,
    pub surfaces: BTreeMap<String, Surface>,
    pub limits: Limits,
    pub retention: Retention,
    pub approvals: Approvals,
    pub telemetry: Option<Telemetry>,
    /// Limit for the cost of all models of all agents, per day in UTC.
    pub budget_day: Option<Micro>,
    /// What the addresses of files for surfaces begin with: the public address, or the path alone.
    pub public_url: String,
    /// The address at which processes of this machine reach the host.
    pub host_url: String,
    /// The time zone of this machine, as an IANA name, if known.
    pub timezone: Option<String>,
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
    /// Slash commands, without the slash; `*`: any. Empty: also messages without one.
    pub commands: Vec<String>,
    pub scope: Scope,
    /// Dotted event field → the values it may have.
    pub filters: BTreeMap<String, Vec<Value>>,
    pub queue: Queue,
    /// What a run cancels if `queue` is `replace`.
    pub replaces: Replaces,
    pub deadline: Duration,
    pub on_interrupt: OnInterrupt,
    /// The surface for answers when the event names none.
    pub delivery: Option<String>,
    /// Becomes `ctx.config`.
    pub config: Object,
    pub grant: GrantPolicy,
    pub budget: Budget,
}
