//! The runtime as the host sees it.
//!
//! Invariant: a reload affects only runners that changed, and a stopped process finishes its runs first.

use crate::child::Children;
use crate::connection::ConnectionId;
use crate::listening::Heard;
use crate::pins::Pins;
use crate::proxy::Proxy;
use crate::registry::{Entry, Phase, Registry};
use crate::remote::{self, AttachError};
use crate::run::RunHandle;
use crate::slot::Slot;
use crate::spec::{RunnerSpec, Settings};
use crate::state::{Descriptor, RunnerState, Unavailable};
use crate::supervisor;
use crate::tasks::Tasks;
use crate::tools::{PluginToolAnswer, PluginToolCall, PluginToolError, PluginTools};
use bytes::Bytes;
use futures_util::{Sink, Stream};
use greenroom_protocol::{AgentRunRequest, RunnerId};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub struct Runtime(Arc<Shared>);

/// What every part of the runtime needs.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) proxy: Arc<dyn Proxy>,
    pub(crate) registry: Registry,
    pub(crate) tasks: Tasks,
    children: Children,
    numbers: AtomicU64,
}

impl Shared {
    pub(crate) fn next_connection(&self) -> ConnectionId {
        ConnectionId(self.next_number())
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Runtime {
    pub fn new(settings: Settings, proxy: Arc<dyn Proxy>) -> Self {
        let tasks = Tasks::default();
        Self(Arc::new(Shared {
            registry: Registry::new(Pins::load(&settings.run_dir)),
            children: Children::within(settings.clone(), tasks.clone()),
            settings,
            proxy,
            tasks,
            numbers: AtomicU64::new(0),
        }))
    }

    /// Applies a configuration: starts new runners, stops removed ones, replaces changed ones.
    pub async fn apply(&self, specs: Vec<RunnerSpec>) {
        let shared = &self.0;
        let names: BTreeSet<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let folders: Vec<PathBuf> = specs
            .iter()
            .filter(|spec| !spec.command.is_empty())
            .map(|spec| spec.dir.clone())
            .collect();
        let with_hidden = |spec: RunnerSpec| {
            let hidden = self.hidden_from(&spec, &folders);
            (spec, hidden)
        };
        let specs: Vec<(RunnerSpec, Vec<PathBuf>)> = specs.into_iter().map(with_hidden).collect();
        let starting = shared.registry.change(|entries| {
            entries.by_name.retain(|name, entry| {
                let kept = names.contains(name);
                if !kept {
                    entry.stop.cancel();
                }
                kept
            });
            entries.yield_to_pins(specs.iter().map(|(spec, _)| spec));
            let mut starting = Vec::new();
            for (spec, hidden) in specs {
                let current = entries.by_name.get(&spec.name);
                let is_same = |entry: &Entry| {
                    entry.spec == spec && entry.hidden == hidden && !entry.stop.is_cancelled()
                };
                if current.is_some_and(is_same)
                    || entries
                        .by_name
                        .get_mut(&spec.name)
                        .is_some_and(|entry| entry.takes_files(&spec, &hidden))
                {
                    continue;
                }
                let current = entries.by_name.get(&spec.name);
                let mut entry = Entry::new(spec.clone(), hidden.clone(), shared.next_number());
                entry.expect(entries.pins.get(&spec.name), current);
                if let Some(current) = current {
                    current.stop.cancel();
                }
                let (generation, stop) = (entry.generation, entry.stop.clone());
                let changed = entry.changed.clone();
                entries.by_name.insert(spec.name.clone(), entry);
                if !spec.command.is_empty() {
                    let shared = shared.clone();
                    starting.push(Slot { shared, spec, hidden, generation, stop, changed });
                }
            }
            entries.index();
            starting
        });
        for slot in starting {
            shared.tasks.spawn(slot.keep());
        }
    }

    /// Every configured runner, by name.
    pub fn runners(&self) -> Vec<RunnerState> {
        self.0.registry.states()
    }

    /// The descriptor of a runner, also while its process is down.
    pub fn descriptor(&self, id: &RunnerId) -> Option<Arc<Descriptor>> {
        self.0.registry.descriptor(id)
    }

    /// Waits for a runner that is starting; fails immediately if it cannot be ready in time.
    pub async fn ready(
        &self,
        id: &RunnerId,
        wait: Duration,
    ) -> Result<Arc<Descriptor>, Unavailable> {
        self.0.registry.ready(id, wait).await
    }

    /// Starts a run as soon as its runner has room for it. The caller has committed it.
    pub async fn start_run(&self, request: AgentRunRequest) -> Result<RunHandle, Unavailable> {
        self.0.registry.connection(&request.runner_id)?.start_run(&request).await
    }

    /// Whether some plugin listens to the events of an agent.
    pub fn is_heard(&self, agent: &str) -> bool {
        self.0.registry.is_heard(agent)
    }

    /// Tells the plugins that listen of an event that was handled. Waits for none of them.
    pub fn tell(&self, heard: Heard) {
        self.0.registry.tell(&Arc::new(heard));
    }

    /// The tools of every runner that offers some, by its name; also while its process is down.
    pub fn tools(&self) -> Vec<PluginTools> {
        self.0.registry.tools()
    }

    /// Changes whenever [`Runtime::tools`] does.
    pub fn tools_changes(&self) -> watch::Receiver<u64> {
        self.0.registry.tools_changes()
    }

    /// Calls a tool of a runner. Waits for a process that is starting; dropping the future cancels the call,
    /// as `cancel` does.
    pub async fn call_tool(
        &self,
        runner: &str,
        call: PluginToolCall,
        cancel: CancellationToken,
    ) -> Result<PluginToolAnswer, PluginToolError> {
        if cancel.is_cancelled() {
            return Err(PluginToolError::Cancelled);
        }
        let Shared { registry, settings, .. } = &*self.0;
        let left = call.deadline.saturating_duration_since(Instant::now());
        let wait = left.min(settings.limits.configured.runner_start);
        let calling = async {
            let connection = registry.tool_connection(runner, &call.tool_name, wait).await?;
            connection.call_tool(&call).await
        };
        tokio::select! {
            biased;
            answer = tokio::time::timeout_at(call.deadline, calling) => {
                answer.unwrap_or(Err(PluginToolError::TimedOut))
            }
            () = cancel.cancelled() => Err(PluginToolError::Cancelled),
        }
    }

    /// Serves a remote runner; returns when its connection is over.
    pub async fn attach<T, R, W>(&self, name: &str, transport: T) -> Result<(), AttachError>
    where
        T: Stream<Item = Result<Bytes, R>> + Sink<Bytes, Error = W> + Send,
        R: Display + Send,
        W: Display + Send,
    {
        remote::attach(&self.0, name, transport).await
    }

    /// Stops every runner: runs may end within `grace`, then processes are asked to stop, terminated and
    /// killed.
    pub async fn shutdown(&self, grace: Duration) {
        let shared = &self.0;
        let connections = shared.registry.change(|entries| {
            let stopped = entries.by_name.values_mut().map(|entry| {
                entry.phase = Phase::Draining;
                entry.stop.cancel();
                entry.connection.take()
            });
            stopped.flatten().collect::<Vec<_>>()
        });
        let idle = futures_util::future::join_all(connections.iter().map(|connection| async {
            let mut live = connection.live();
            // A connection that is gone has no runs either.
            let _ = live.wait_for(|live| *live == 0).await;
        }));
        if tokio::time::timeout(grace, idle).await.is_err() {
            for connection in &connections {
                let message = connection.says("was stopped with the host");
                connection.fail(None, &crate::run::RunEnd::Crashed { message });
            }
        }
        // Each step of stopping a process is bounded; dropping the sockets ends what is left.
        let steps = shared.settings.limits.stop_step * 4;
        if let Err(left) = shared.tasks.finish(steps).await {
            let left = left.join(", ");
            tracing::warn!(left, "runner processes did not end in time");
        }
    }

    /// Starts programs for tools, under the same supervisor and in the same folder.
    pub fn children(&self) -> Children {
        self.0.children.clone()
    }

    /// What the host and the spec hide, and the folders of other runners.
    fn hidden_from(&self, spec: &RunnerSpec, folders: &[PathBuf]) -> Vec<PathBuf> {
        if spec.command.is_empty() {
            return Vec::new();
        }
        let dir = supervisor::resolve(&spec.dir);
        let is_own = |folder: &PathBuf| *folder == dir || spec.paths.contains(folder);
        let others = folders.iter().map(|folder| supervisor::resolve(folder));
        let others = others.filter(|folder| !is_own(folder));
        self.0.settings.hidden.iter().chain(&spec.hidden).cloned().chain(others).collect()
    }
}
