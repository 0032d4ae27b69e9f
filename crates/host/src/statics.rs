//! Static parts of a run's context, by references to their content (seed 003 §6).
//!
//! Invariant: the same content has the same bytes, and so the same reference, in every run. A run resolves the
//! references of its own grant only.

mod cache;

pub(crate) use cache::{ReferenceCache, Sources};

use crate::grant::Grant;
use crate::ids::hex;
use crate::resources::{Resources, granted_resources};
use bytes::Bytes;
use greenroom_protocol::content::StaticContextRef;
use greenroom_protocol::manifest::{ArtifactPermission, StaticRefs, ToolPermission};
use greenroom_protocol::{AgentResources, AgentRunnerManifest, Object, ToolResource};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What the id of a static part begins with.
pub(crate) const PREFIX: &str = "sha256:";
/// Keys of a config that hold the instructions of an agent.
const INSTRUCTIONS: [&str; 3] = ["prompt", "instructions", "system_prompt"];

/// The references of a run, by the kind of their content.
fn references(
    grant: &Grant,
    resources: &AgentResources,
    wanted: StaticRefs,
) -> BTreeMap<String, StaticContextRef> {
    if matches!(wanted, StaticRefs::Unwanted) {
        return BTreeMap::new();
    }
    let is_readable = grant.artifacts.operations.contains(&ArtifactPermission::Read);
    let reference = |(kind, content): (&'static str, Value)| {
        let mut reference = reference(kind, &bytes_of(&content));
        reference.artifact_id = is_readable.then(|| reference.hash.clone());
        (kind.to_owned(), reference)
    };
    parts(grant, resources).map(reference).collect()
}

/// The bytes behind a reference of a run; none if the run has no such part, or it has changed since.
pub(crate) fn resolve(
    grant: &Grant,
    resources: &Resources,
    id: &str,
) -> Option<(&'static str, Bytes)> {
    let granted = granted_resources(grant, resources);
    parts(grant, &granted).find_map(|(kind, content)| {
        let bytes = bytes_of(&content);
        (hash(&bytes) == id).then(|| (kind, Bytes::from(bytes)))
    })
}

/// Whether a runner gets its tools by reference: it says so itself, and it may look them up.
pub(crate) fn by_reference(manifest: &AgentRunnerManifest, grant: &Grant) -> bool {
    // A plugin of LangBot gets what LangBot would give it.
    let is_langbot = manifest.metadata.get("wire").is_some_and(|wire| wire == "langbot");
    matches!(manifest.context.wants_static_context_refs, StaticRefs::Wanted)
        && grant.tools.operations.contains(&ToolPermission::Detail)
        && !is_langbot
}

/// Leaves out the schemas of a tool; `metadata.ref` changes with them.
pub(crate) fn without_schemas(tool: &mut ToolResource) {
    let content = json!([
        tool.tool_name,
        tool.description,
        tool.parameters,
        tool.metadata.get("output_schema"),
        tool.metadata.get("methods")
    ]);
    let reference = reference("tool", &bytes_of(&content));
    tool.parameters = Object::new();
    tool.metadata.remove("output_schema");
    tool.metadata.insert("ref".to_owned(), json!(reference));
}

fn parts<'a>(
    grant: &'a Grant,
    resources: &'a AgentResources,
) -> impl Iterator<Item = (&'static str, Value)> + 'a {
    let instructions = INSTRUCTIONS.iter().find_map(|key| grant.config.get(*key));
    let instructions = instructions.filter(|it| !it.is_null() && *it != "").cloned();
    let tools: Vec<Value> = resources
        .tools
        .iter()
        .map(|tool| json!([tool.tool_name, tool.description, tool.parameters]))
        .collect();
    let skills = resources.extra.get("skills").cloned();
    let knowledge = &resources.knowledge_bases;
    let all = [
        ("instructions", instructions),
        ("tools", (!tools.is_empty()).then_some(Value::Array(tools))),
        ("skills", skills),
        ("knowledge", (!knowledge.is_empty()).then(|| json!(knowledge))),
        ("grant", Some(allowed(grant))),
    ];
    all.into_iter().filter_map(|(kind, content)| Some((kind, content?)))
}

/// What a run may do: its grant without the config, which is the agent's, and without where files are.
fn allowed(grant: &Grant) -> Value {
    let mut allowed = json!(grant);
    if let Some(fields) = allowed.as_object_mut() {
        fields.remove("config");
        fields.remove("files");
        if !grant.files.is_empty() {
            let ids: Vec<&str> = grant.files.iter().map(|file| file.file_id.as_str()).collect();
            fields.insert("files".to_owned(), json!(ids));
        }
    }
    allowed
}

/// A text as it is, anything else as JSON.
fn bytes_of(content: &Value) -> Vec<u8> {
    match content {
        Value::String(text) => text.clone().into_bytes(),
        content => content.to_string().into_bytes(),
    }
}

fn hash(bytes: &[u8]) -> String {
    format!("{PREFIX}{}", hex(&Sha256::digest(bytes)))
}

fn reference(kind: &str, bytes: &[u8]) -> StaticContextRef {
    StaticContextRef { kind: kind.to_owned(), hash: hash(bytes), ..StaticContextRef::default() }
}
