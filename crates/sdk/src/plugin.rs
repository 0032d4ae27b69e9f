//! A plugin and the runners it offers.
//!
//! Invariant: every runner of a plugin that is served has a valid id that no other runner of it has.

use crate::{Manifest, RunCtx, RunFailure};
use futures_util::future::BoxFuture;
use greenroom_protocol::runner_id::InvalidRunnerId;
use greenroom_protocol::wire::PluginIdentity;
use greenroom_protocol::{AgentRunnerManifest, RunnerId};
use std::sync::Arc;
use std::time::Duration;

/// How long a cancelled run may tidy up before it is dropped.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// An agent: it is told about one event and answers with results.
pub trait Runner: Send + Sync + 'static {
    /// What the runner is called, can do and asks for.
    fn manifest(&self) -> Manifest;

    /// Does the work of one run, sending results through `ctx`. `Ok` without a terminal result sends
    /// `run.completed`; `Err` sends `run.failed`; so does a panic. Many runs go on at the same time.
    fn run(&self, ctx: RunCtx) -> impl Future<Output = Result<(), RunFailure>> + Send;
}

/// A process that offers runners. Serve it with [`crate::serve`].
pub struct Plugin {
    identity: PluginIdentity,
    runners: Vec<(Manifest, Arc<dyn AnyRunner>)>,
    pub(crate) cancel_grace: Duration,
    pub(crate) threads: Option<usize>,
}

/// Why a plugin cannot be served as it is.
#[derive(Debug, thiserror::Error)]
pub enum InvalidPlugin {
    #[error(transparent)]
    Name(#[from] InvalidRunnerId),
    #[error("the runner `{0}` is there twice")]
    Twice(RunnerId),
    #[error("the plugin offers no runner")]
    Empty,
}

impl Plugin {
    pub fn new(author: impl Into<String>, name: impl Into<String>) -> Self {
        let (author, name) = (author.into(), name.into());
        Self {
            identity: PluginIdentity { author, name, version: String::new() },
            runners: Vec::new(),
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

    /// How long a cancelled run may tidy up before its future is dropped; 2 seconds unless set.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Worker threads; one per core unless set. One thread is fastest for runners that never block.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    pub(crate) fn checked(self) -> Result<CheckedPlugin, InvalidPlugin> {
        if self.runners.is_empty() {
            return Err(InvalidPlugin::Empty);
        }
        let mut runners: Vec<(AgentRunnerManifest, Arc<dyn AnyRunner>)> = Vec::new();
        for (manifest, runner) in self.runners {
            let id = RunnerId::new(&self.identity.author, &self.identity.name, &manifest.name)?;
            if runners.iter().any(|(other, _)| other.id == id) {
                return Err(InvalidPlugin::Twice(id));
            }
            runners.push((manifest.with_id(id), runner));
        }
        Ok(CheckedPlugin { identity: self.identity, runners, cancel_grace: self.cancel_grace })
    }
}

pub(crate) struct CheckedPlugin {
    pub(crate) identity: PluginIdentity,
    runners: Vec<(AgentRunnerManifest, Arc<dyn AnyRunner>)>,
    pub(crate) cancel_grace: Duration,
}

impl CheckedPlugin {
    pub(crate) fn manifests(&self) -> Vec<&AgentRunnerManifest> {
        self.runners.iter().map(|(manifest, _)| manifest).collect()
    }

    pub(crate) fn get(&self, id: &RunnerId) -> Option<Arc<dyn AnyRunner>> {
        let found = self.runners.iter().find(|(manifest, _)| manifest.id == *id);
        found.map(|(_, runner)| runner.clone())
    }
}

/// `Runner` in a form that fits into one list with others.
pub(crate) trait AnyRunner: Send + Sync {
    fn start(self: Arc<Self>, ctx: RunCtx) -> BoxFuture<'static, Result<(), RunFailure>>;
}

impl<R: Runner> AnyRunner for R {
    fn start(self: Arc<Self>, ctx: RunCtx) -> BoxFuture<'static, Result<(), RunFailure>> {
        Box::pin(async move { self.run(ctx).await })
    }
}
