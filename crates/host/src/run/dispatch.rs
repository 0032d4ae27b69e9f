//! The start of a run: freezes and stores its grant, builds its context, calls its runner.

use super::RunTask;
use super::stop::{Stop, unavailable};
use crate::context::{ContextParts, Identity};
use crate::grant::Grant;
use crate::granted_files::RunFile;
use crate::ids::now_ms;
use crate::live::Rights;
use crate::proxy::audit::Subject;
use crate::resources::{Resources, granted_resources};
use crate::statics::{self, Sources};
use greenroom_protocol::{AgentRunRequest, AgentRunnerManifest, RunnerId};
use greenroom_runtime::{RunHandle, Unavailable};
use greenroom_store::StoreError;
use greenroom_store::commands::FreezeGrant;
use greenroom_store::fault;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Between two attempts to give a run to its runner.
const DISPATCH_AGAIN: Duration = Duration::from_millis(20);

impl RunTask {
    /// Waits for the runner, freezes the grant, sends `run_agent`. If the process ends before it has read the
    /// run, its successor gets it.
    pub(super) async fn dispatch(&mut self) -> Result<(Arc<Grant>, RunHandle), Stop> {
        let runner_id = RunnerId::parse(&self.run.runner_id)
            .map_err(|error| unavailable(error.to_string(), false))?;
        let mut until = Instant::now() + self.shared.settings.load().limits.runner_start;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let descriptor = tokio::select! {
                ready = self.shared.runtime.ready(&runner_id, left) => {
                    ready.map_err(|error| unavailable(error.to_string(), true))?
                }
                stop = self.stopped() => return Err(stop),
            };
            let grant = match self.run.grant_hash.clone() {
                Some(hash) => self.frozen(&hash).await?,
                None => self.freeze(&descriptor.manifest).await?,
            };
            let offered_at = Instant::now();
            let handed_over = self.hand_over(&descriptor.manifest, &grant).await?;
            // The time that a ready runner had no room for the run does not count.
            until += offered_at.elapsed();
            match handed_over {
                Ok(handle) => return Ok((grant, handle)),
                Err(error) if Instant::now() + DISPATCH_AGAIN > until => {
                    return Err(unavailable(error.to_string(), true));
                }
                Err(_) => tokio::time::sleep(DISPATCH_AGAIN).await,
            }
        }
    }

    async fn hand_over(
        &self,
        manifest: &AgentRunnerManifest,
        grant: &Arc<Grant>,
    ) -> Result<Result<RunHandle, Unavailable>, Stop> {
        // The run of a limited sender reaches no conversation but its own.
        let narrowed = self.envelope.limited_to.as_ref().map(|_| grant.within_conversation());
        let grant = narrowed.as_ref().unwrap_or(grant);
        let resources = self.shared.resources.load_full();
        let files = self.shared.files_of(grant, &self.run.run_id).await;
        let identity = self.shared.identity(&self.run, &self.envelope).within(grant);
        let mut context = loop {
            match self.context(manifest, grant, &resources, &identity).await {
                Ok(context) => break context,
                Err(error) => self.wait_for_store(&error).await?,
            }
        };
        context.resources.files = files.iter().map(RunFile::resource).collect();
        self.inline_files(manifest, &mut context.input).await;
        let request = AgentRunRequest {
            runner_id: manifest.id.clone(),
            runner_name: manifest.id.runner().to_owned(),
            context,
        };
        fault::point("before_run_agent");
        // The runner may call as soon as it has the run: its rights are set first.
        let attempt = self.run.attempt;
        let subject = Arc::new(Subject {
            workspace_id: self.run.workspace_id.clone(),
            run_id: Some(self.run.run_id.clone()),
            attempt: Some(attempt),
            agent: self.run.agent.clone(),
            runner_id: Some(self.run.runner_id.clone()),
        });
        let grant = Arc::clone(grant);
        self.live.granted(Rights { grant, resources, identity, files, attempt, subject });
        let handle = tokio::select! {
            // Usually there is room, and `stopped` is never polled.
            biased;
            handle = self.shared.runtime.start_run(request) => handle,
            stop = self.stopped() => return Err(stop),
        };
        fault::point("after_run_agent");
        Ok(handle)
    }

    async fn frozen(&self, hash: &str) -> Result<Arc<Grant>, Stop> {
        loop {
            match self.shared.grant(hash).await {
                Ok(grant) => return Ok(grant),
                Err(error) => self.wait_for_store(&error).await?,
            }
        }
    }

    /// Builds and stores the grant of a run that was accepted before its runner or tools were known.
    async fn freeze(
        &mut self,
        manifest: &greenroom_protocol::AgentRunnerManifest,
    ) -> Result<Arc<Grant>, Stop> {
        let settings = self.shared.settings.load();
        let agent = settings.agents.iter().find(|agent| agent.name == self.run.agent);
        let agent = agent.ok_or_else(|| {
            unavailable(format!("agent `{}` is no longer configured", self.run.agent), false)
        })?;
        let resources = self.shared.resources.load_full();
        let patience = settings.limits.runner_start;
        tokio::select! {
            () = resources.tools.settled(&agent.grant.tools, patience) => {}
            stop = self.stopped() => return Err(stop),
        }
        let grant = Arc::new(Grant::build(agent, manifest, &resources.names()));
        let doc = grant.to_doc();
        self.run.grant_hash = Some(doc.hash.clone());
        let command = FreezeGrant { fence: self.run.fence(), grant: doc, steers: grant.steering };
        loop {
            match self.shared.store.commit(command.clone()).await {
                Ok(true) => return Ok(grant),
                Ok(false) => return Err(Stop::Leave),
                Err(error) => self.wait_for_store(&error).await?,
            }
        }
    }

    async fn context(
        &self,
        manifest: &AgentRunnerManifest,
        grant: &Arc<Grant>,
        resources: &Arc<Resources>,
        identity: &Identity,
    ) -> Result<greenroom_protocol::AgentRunContext, StoreError> {
        let (state, has_history_before) = self.shared.snapshot(identity, grant).await?;
        let tool_lists = resources.tools.lists();
        let mut granted = granted_resources(grant, resources);
        // Actions that the surface of the run would refuse are not offered.
        let can = identity.capabilities.as_ref();
        let is_able = |action: &str| can.is_some_and(|can| can.actions.contains(action));
        granted.platform_capabilities.retain(|action, _| is_able(action));
        let wanted = manifest.context.wants_static_context_refs;
        let sources = Sources { grant, resources, tool_lists, granted: &granted, wanted };
        let static_refs = self.shared.reference_cache.of(&self.run.agent, sources);
        if statics::by_reference(manifest, grant) {
            granted.tools.iter_mut().for_each(statics::without_schemas);
        }
        let parts = ContextParts {
            run: &self.run,
            envelope: &self.envelope,
            grant,
            identity,
            state,
            has_history_before,
            cursors: &self.shared.cursors,
            run_token: self.shared.live.issue_token(&self.run.run_id, self.run.attempt),
            host_url: self.shared.settings.load().host_url.clone(),
            traceparent: self.shared.traceparent(identity),
            resources: granted,
            static_refs,
            remaining: self.live.deadline.left(),
            now_ms: now_ms(),
            timezone: self.shared.settings.load().timezone.clone(),
        };
        Ok(parts.build())
    }
}
