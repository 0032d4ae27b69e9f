//! The grant: what one run may do, frozen.
//!
//! Invariant: manifest ∩ binding policy, nothing else widens it; the same inputs give the same hash, so most
//! runs of a binding share one stored document. The third layer, the event's scope, is applied where ids are
//! used: state owners, cursors and conversations are made from the run's own event.

mod cache;

pub(crate) use cache::{GrantCache, Sources, is_same};

use crate::context::Identity;
use crate::resources::ResourceNames;
use crate::settings::{Agent, Approval, GrantPolicy, Reach, Threads};
use greenroom_protocol::api::harness::HarnessToolKind;
use greenroom_protocol::manifest::{
    ArtifactPermission, EventPermission, FilePermission, HistoryPermission, KnowledgePermission,
    ModelPermission, StorageArea, ToolPermission,
};
use greenroom_protocol::payload::StateScope;
use greenroom_protocol::{
    AgentRunnerManifest, ContextAPICapabilities, Object, RunnerId, StorageResource, form,
};
use greenroom_store::types::GrantDoc;
use greenroom_tools::{Risk, project_cli, skills};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// A document stored by an earlier version may lack fields: a missing field grants nothing (decision 015).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    pub agent: String,
    pub runner_id: RunnerId,
    /// The runner's config as it was when the run was accepted.
    #[serde(default)]
    pub config: Object,
    #[serde(default)]
    pub history: Pull<HistoryPermission>,
    #[serde(default)]
    pub events: Pull<EventPermission>,
    #[serde(default)]
    pub artifacts: Pull<ArtifactPermission>,
    /// How much of its conversation the run reaches.
    #[serde(default)]
    pub threads: Threads,
    #[serde(default)]
    pub state: BTreeSet<StateScope>,
    #[serde(default)]
    pub storage: BTreeSet<StorageArea>,
    #[serde(default)]
    pub actions: BTreeMap<String, Approval>,
    /// In the order of the binding: the first is the runner's default.
    #[serde(default)]
    pub models: Offer<ModelPermission, Vec<String>>,
    #[serde(default)]
    pub tools: Offer<ToolPermission>,
    #[serde(default)]
    pub knowledge: Offer<KnowledgePermission>,
    /// Methods of the project CLI, `module.method` each.
    #[serde(default)]
    pub methods: BTreeSet<String>,
    #[serde(default)]
    pub skills: BTreeSet<String>,
    /// Files of this machine that the run may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<GrantFile>,
    /// How a call is approved, by its risk; a risk that is not listed requires an approval.
    #[serde(default)]
    pub risks: BTreeMap<Risk, Approval>,
    /// What its external harness may do with its own tools; a kind that is not listed is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub harness: BTreeMap<HarnessToolKind, Approval>,
    /// Whether the run may pull messages that arrive while it runs.
    #[serde(default)]
    pub steering: bool,
}

/// A file of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantFile {
    /// What runners call it.
    pub file_id: String,
    /// As written in the configuration.
    pub name: String,
    pub path: PathBuf,
}

/// Operations on facts, and how far they reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Pull<T: Ord> {
    #[serde(default)]
    pub reach: Reach,
    #[serde(default)]
    pub operations: BTreeSet<T>,
}

impl<T: Ord> Default for Pull<T> {
    fn default() -> Self {
        Self { reach: Reach::None, operations: BTreeSet::new() }
    }
}

/// Operations on named resources, and which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>, N: Deserialize<'de> + Default"))]
pub struct Offer<T: Ord, N = BTreeSet<String>> {
    #[serde(default)]
    pub names: N,
    #[serde(default)]
    pub operations: BTreeSet<T>,
}

impl<T: Ord, N: Default> Default for Offer<T, N> {
    fn default() -> Self {
        Self { names: N::default(), operations: BTreeSet::new() }
    }
}

impl Grant {
    /// Intersects what the runner asks for with what its binding allows.
    pub fn build(agent: &Agent, manifest: &AgentRunnerManifest, known: &ResourceNames) -> Self {
        let asked = &manifest.permissions;
        let policy = &agent.grant;
        // Wires where state is no matter of storage ask for it by itself.
        let asks_for_state = asked.extra.get("state").and_then(|scopes| scopes.as_array());
        let may_keep_state =
            !asked.storage.is_empty() || asks_for_state.is_some_and(|scopes| !scopes.is_empty());
        let storage: BTreeSet<StorageArea> = asked.storage.iter().copied().collect();
        let actions = policy
            .actions
            .iter()
            .filter(|(action, approval)| {
                **approval != Approval::Never && asked.platform_api.contains(action)
            })
            .map(|(action, approval)| (action.clone(), *approval))
            .collect();
        let models: Offer<ModelPermission, Vec<String>> =
            offer(&asked.models, &policy.models, &known.models);
        Self {
            agent: agent.name.clone(),
            runner_id: agent.runner.clone(),
            config: configured(agent, manifest, &models.names),
            history: pull(&asked.history, policy.history),
            events: pull(&asked.events, policy.event_log),
            artifacts: pull(&asked.artifacts, policy.artifacts),
            threads: policy.threads,
            state: if may_keep_state { policy.state.clone() } else { BTreeSet::new() },
            storage: storage.intersection(&policy.storage).copied().collect(),
            actions,
            models,
            tools: with_own(offer(&asked.tools, &policy.tools, &known.tools), policy),
            knowledge: offer(&asked.knowledge_bases, &policy.knowledge, &known.knowledge),
            methods: named(&policy.modules, &known.methods),
            skills: named(&policy.skills, &known.skills),
            files: files(manifest, policy),
            risks: policy.risks.clone(),
            harness: match asked.harness.is_empty() {
                true => BTreeMap::new(),
                false => policy.harness.clone(),
            },
            steering: manifest.capabilities.steering && agent.queue.as_str() == "steer",
        }
    }

    /// The same grant, without the facts of other conversations.
    pub(crate) fn within_conversation(self: &Arc<Self>) -> Arc<Self> {
        let reaches = [self.history.reach, self.events.reach, self.artifacts.reach];
        if !reaches.contains(&Reach::Workspace) {
            return Arc::clone(self);
        }
        let mut narrowed = Self::clone(self);
        for reach in
            [&mut narrowed.history.reach, &mut narrowed.events.reach, &mut narrowed.artifacts.reach]
        {
            if *reach == Reach::Workspace {
                *reach = Reach::Conversation;
            }
        }
        Arc::new(narrowed)
    }

    /// The document as it is stored, under its hash.
    pub fn to_doc(&self) -> GrantDoc {
        let body = serde_json::to_string(self).unwrap_or_default();
        GrantDoc { hash: crate::ids::hex(&Sha256::digest(body.as_bytes())), body }
    }

    /// The APIs that the runner may call besides its resources.
    pub(crate) fn available_apis(&self, identity: &Identity) -> ContextAPICapabilities {
        crate::proxy::table::available_apis(self, identity)
    }

    /// The storage areas of the run, as the runner sees them.
    pub fn storage_resource(&self) -> StorageResource {
        let has = |area| self.storage.contains(&area);
        StorageResource {
            plugin: has(StorageArea::Plugin),
            workspace: has(StorageArea::Workspace),
            binding: has(StorageArea::Binding),
        }
    }
}

/// The runner's config. Plugins of LangBot rely on the defaults of their form, and on a model where it has a
/// field for one.
fn configured(agent: &Agent, manifest: &AgentRunnerManifest, models: &[String]) -> Object {
    if !is_langbot(manifest) {
        return agent.config.clone();
    }
    let only_model = match models {
        [model] => Some(model.as_str()),
        _ => None,
    };
    form::fill(&manifest.config_schema, &agent.config, only_model)
}

/// The files of the binding, if the runner asks for them. Every plugin of LangBot may read those of its configuration.
fn files(manifest: &AgentRunnerManifest, policy: &GrantPolicy) -> Vec<GrantFile> {
    let asks = manifest.permissions.files.contains(&FilePermission::Config) || is_langbot(manifest);
    let files = policy.files.iter().filter(|_| asks);
    files.map(|file| GrantFile::new(&file.name, &file.path)).collect()
}

fn is_langbot(manifest: &AgentRunnerManifest) -> bool {
    manifest.metadata.get("wire").is_some_and(|wire| wire == "langbot")
}

fn pull<T: Ord + Copy>(asked: &[T], reach: Reach) -> Pull<T> {
    let operations = if reach == Reach::None { &[] } else { asked };
    Pull { reach, operations: operations.iter().copied().collect() }
}

fn offer<T: Ord + Copy, N: FromIterator<String>>(
    asked: &[T],
    patterns: &[String],
    known: &[String],
) -> Offer<T, N> {
    Offer { names: named(patterns, known), operations: asked.iter().copied().collect() }
}

/// The existing resources that the binding names, each once and in the binding's order; `prefix.*` names all
/// with that prefix.
fn named<N: FromIterator<String>>(patterns: &[String], known: &[String]) -> N {
    let names = |pattern: &String, name: &String| match pattern.strip_suffix('*') {
        Some(prefix) if prefix.is_empty() || prefix.ends_with('.') => name.starts_with(prefix),
        _ => name == pattern,
    };
    let mut seen = BTreeSet::new();
    let all =
        patterns.iter().flat_map(|pattern| known.iter().filter(move |name| names(pattern, name)));
    all.filter(|name| seen.insert(*name)).cloned().collect()
}

/// The tools for modules and skills are granted exactly with modules and skills.
fn with_own(mut offer: Offer<ToolPermission>, policy: &GrantPolicy) -> Offer<ToolPermission> {
    let own = [(project_cli::TOOL_NAME, &policy.modules), (skills::TOOL_NAME, &policy.skills)];
    for (name, granted) in own {
        match granted.is_empty() {
            true => drop(offer.names.remove(name)),
            false => drop(offer.names.insert(name.to_owned())),
        }
    }
    offer
}

#[cfg(test)]
mod tests;
