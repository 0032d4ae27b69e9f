//! A plugin with its runners and tools.
//!
//! Invariant: every runner of a served plugin has a valid id, every tool a valid description, and names are unique.

use crate::{Manifest, RunCtx, RunFailure, Tool};
use futures_util::future::BoxFuture;
use greenroom_protocol::manifest::StaticRefs;
use greenroom_protocol::runner_id::InvalidRunnerId;
use greenroom_protocol::wire::{InvalidTool, PluginIdentity, PluginTool, TOOLS_MAX};
use greenroom_protocol::{AgentRunnerManifest, RunnerId};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Default grace period of a cancelled run.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// An agent: it gets one event and replies with results.
pub trait Runner: Send + Sync + 'static {
    fn manifest(&self) -> Manifest;

    /// Executes one run, sending results through `ctx`. `Ok` without a terminal result sends `run.completed`; `Err` and
    /// panics send `run.failed`. Many runs execute concurrently.
    fn run(&self, ctx: RunCtx) -> impl Future<Output = Result<(), RunFailure>> + Send;
}

/// A process with runners, tools, or both. Serve it with [`crate::serve`].
pub struct Plugin {
    identity: PluginIdentity,
    runners: Vec<(Manifest, Arc<dyn AnyRunner>)>,
    tools: Vec<Tool>,
    pub(crate) cancel_grace: Duration,
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidPlugin {
    #[error(transparent)]
    Name(#[from] InvalidRunnerId),
    #[error("duplicate runner `{0}`")]
    DuplicateRunner(RunnerId),
    #[error("invalid tool `{name}`: {reason}")]
    Tool { name: String, reason: InvalidTool },
    #[error("duplicate tool `{0}`")]
    DuplicateTool(String),
    #[error("a plugin may have at most {TOOLS_MAX} tools, this one has {0}")]
    TooManyTools(usize),
    #[error("the plugin has no runner and no tool")]
    Empty,
}

impl Plugin {
    pub fn new(author: impl Into<String>, name: impl Into<String>) -> Self {
        let (author, name) = (author.into(), name.into());
        Self {
            identity: PluginIdentity { author, name, version: String::new() },
            runners: Vec::new(),
            tools: Vec::new(),
            cancel_grace: CANCEL_GRACE,
            threads: None,
        }
    }

    /// The plugin's version, usually `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.identity.version = version.into();
        self
    }

    pub fn runner(mut self, runner: impl Runner) -> Self {
        self.runners.push((runner.manifest(), Arc::new(runner)));
        self
    }

    /// Adds a tool, for runs of any agent.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// How long a cancelled run may clean up before its future is dropped; default: 2 seconds.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Worker threads; default: one per core. One thread is fastest for runners that never block.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    pub(crate) fn checked(self) -> Result<CheckedPlugin, InvalidPlugin> {
        if self.runners.is_empty() && self.tools.is_empty() {
            return Err(InvalidPlugin::Empty);
        }
        let mut runners: Vec<(AgentRunnerManifest, Arc<dyn AnyRunner>)> = Vec::new();
        for (manifest, runner) in self.runners {
            let id = RunnerId::new(&self.identity.author, &self.identity.name, &manifest.name)?;
            if runners.iter().any(|(other, _)| other.id == id) {
                return Err(InvalidPlugin::DuplicateRunner(id));
            }
            runners.push((manifest.with_id(id), runner));
        }
        let (tools, cancel_grace) = (check_tools(self.tools)?, self.cancel_grace);
        Ok(CheckedPlugin { identity: self.identity, runners, tools, cancel_grace })
    }
}

pub(crate) struct CheckedPlugin {
    pub(crate) identity: PluginIdentity,
    runners: Vec<(AgentRunnerManifest, Arc<dyn AnyRunner>)>,
    tools: Vec<Tool>,
    pub(crate) cancel_grace: Duration,
}

/// Checks each tool as the host does.
fn check_tools(tools: Vec<Tool>) -> Result<Vec<Tool>, InvalidPlugin> {
    if tools.len() > TOOLS_MAX {
        return Err(InvalidPlugin::TooManyTools(tools.len()));
    }
    for (index, tool) in tools.iter().enumerate() {
        let name = tool.spec.name.clone();
        // Serialization cannot fail: string keys only.
        let json = serde_json::to_string(&tool.spec).unwrap_or_default();
        if let Err(reason) = PluginTool::parse(&json) {
            return Err(InvalidPlugin::Tool { name, reason });
        }
        if tools[..index].iter().any(|other| other.spec.name == name) {
            return Err(InvalidPlugin::DuplicateTool(name));
        }
    }
    Ok(tools)
}

impl CheckedPlugin {
    pub(crate) fn tools(&self) -> Vec<&PluginTool> {
        self.tools.iter().map(|tool| &tool.spec).collect()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.spec.name == name).cloned()
    }

    pub(crate) fn manifests(&self) -> Vec<&AgentRunnerManifest> {
        self.runners.iter().map(|(manifest, _)| manifest).collect()
    }

    /// The manifests as they are sent: without what the default would say anyway, so that the host can tell a runner
    /// that asks for references from one that says nothing.
    pub(crate) fn sent_manifests(&self) -> Vec<Value> {
        let sent = |manifest: &AgentRunnerManifest| {
            let mut sent = json!(manifest);
            if matches!(manifest.context.wants_static_context_refs, StaticRefs::Unsaid)
                && let Some(context) = sent["context"].as_object_mut()
            {
                context.remove("wants_static_context_refs");
            }
            sent
        };
        self.manifests().into_iter().map(sent).collect()
    }

    pub(crate) fn get(&self, id: &RunnerId) -> Option<Arc<dyn AnyRunner>> {
        let runner = self.runners.iter().find(|(manifest, _)| manifest.id == *id);
        runner.map(|(_, runner)| runner.clone())
    }
}

/// An object-safe `Runner`.
pub(crate) trait AnyRunner: Send + Sync {
    fn start(self: Arc<Self>, ctx: RunCtx) -> BoxFuture<'static, Result<(), RunFailure>>;
}

impl<R: Runner> AnyRunner for R {
    fn start(self: Arc<Self>, ctx: RunCtx) -> BoxFuture<'static, Result<(), RunFailure>> {
        Box::pin(async move { self.run(ctx).await })
    }
}
