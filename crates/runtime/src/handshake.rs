//! The first words with a runner: who it is and which runners it offers.
//!
//! Invariant: a descriptor that comes out of here has an id under the plugin that the process declared, and
//! that plugin is the pinned one where there is a pin.

use crate::connection::{Connection, Fate};
use crate::state::Descriptor;
use greenroom_protocol::wire::{
    HostIdentity, InitializeParams, InitializeResult, PluginIdentity, method,
};
use greenroom_protocol::{AgentRunnerManifest, PROTOCOL_VERSION, RunnerId};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Context fields of manifests from before version 1, which have no meaning any more.
const OLDER_FIELDS: [&str; 2] = ["ownership", "bootstrap"];
const OLDER_PREFIX: &str = "max_inline_";

pub(crate) struct Offer {
    pub(crate) plugin: PluginIdentity,
    pub(crate) descriptors: Vec<Arc<Descriptor>>,
    pub(crate) warnings: Vec<String>,
}

/// Asks, within the time a start may take.
pub(crate) async fn introduce(
    connection: &Connection,
    pin: Option<&str>,
    host_version: &str,
) -> Result<Offer, String> {
    let mut fate = connection.fate();
    let timeout = connection.limits.start_timeout;
    tokio::select! {
        offer = tokio::time::timeout(timeout, ask(connection, pin, host_version)) => offer
            .unwrap_or_else(|_| Err(format!("was not ready after {} s", timeout.as_secs_f32()))),
        _ = fate.wait_for(|fate| *fate != Fate::Serving) => Err(connection.reason().unwrap_or_default()),
    }
}

async fn ask(
    connection: &Connection,
    pin: Option<&str>,
    host_version: &str,
) -> Result<Offer, String> {
    let host = HostIdentity { name: "greenroom".to_owned(), version: host_version.to_owned() };
    let params = InitializeParams { protocol_version: PROTOCOL_VERSION.to_owned(), host };
    let answer = connection.request(method::INITIALIZE, &params).await?;
    let answer: InitializeResult = serde_json::from_str(answer.get())
        .map_err(|error| format!("answered `initialize` with something malformed: {error}"))?;
    check_identity(&answer, pin)?;
    let plugin: Arc<str> = answer.plugin.path().into();
    // Set once per connection, here.
    let _ = connection.plugin.set(plugin.clone());
    let list = connection.request(method::LIST_AGENT_RUNNERS, &serde_json::json!({})).await?;
    let mut offer = Offer { plugin: answer.plugin, descriptors: Vec::new(), warnings: Vec::new() };
    let mut seen = BTreeSet::new();
    for manifest in manifests(&list)? {
        match accept(manifest, &offer.plugin, &mut offer.warnings) {
            Ok(manifest) if seen.insert(manifest.id.clone()) => {
                offer.descriptors.push(Arc::new(Descriptor {
                    manifest,
                    runner: connection.runner.clone(),
                    plugin: plugin.clone(),
                    plugin_version: offer.plugin.version.clone(),
                    isolation: connection.isolation.clone(),
                }));
            }
            Ok(manifest) => offer.warnings.push(format!("`{}` is declared twice", manifest.id)),
            Err(warning) => offer.warnings.push(warning),
        }
    }
    Ok(offer)
}

fn check_identity(answer: &InitializeResult, pin: Option<&str>) -> Result<(), String> {
    if !is_spoken(&answer.protocol_version) {
        return Err(format!(
            "speaks protocol version `{}`, the host speaks `{PROTOCOL_VERSION}`",
            answer.protocol_version
        ));
    }
    let declared = answer.plugin.path();
    if RunnerId::new(&answer.plugin.author, &answer.plugin.name, "x").is_err() {
        return Err(format!(
            "declares itself `{declared}`, which is not of the form `author/name`"
        ));
    }
    match pin {
        Some(pin) if pin != declared => {
            Err(format!("declares itself `{declared}`, the configuration says `{pin}`"))
        }
        _ => Ok(()),
    }
}

fn manifests(list: &RawValue) -> Result<Vec<&RawValue>, String> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        runners: Vec<&'a RawValue>,
    }
    serde_json::from_str::<List<'_>>(list.get())
        .map(|list| list.runners)
        .map_err(|error| format!("answered `list_agent_runners` with something malformed: {error}"))
}

/// One manifest on its own: a bad one hides itself and nothing else.
fn accept(
    manifest: &RawValue,
    plugin: &PluginIdentity,
    warnings: &mut Vec<String>,
) -> Result<AgentRunnerManifest, String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        id: serde_json::Value,
    }
    let id =
        serde_json::from_str::<Named>(manifest.get()).map(|named| named.id).unwrap_or_default();
    let manifest: AgentRunnerManifest = serde_json::from_str(manifest.get())
        .map_err(|error| format!("the manifest of {id} is not valid and was left out: {error}"))?;
    if !is_spoken(&manifest.protocol_version) {
        return Err(format!(
            "{id} speaks protocol version `{}` and was left out",
            manifest.protocol_version
        ));
    }
    let expected = RunnerId::new(&plugin.author, &plugin.name, &manifest.name);
    if expected.as_ref().ok() != Some(&manifest.id) {
        return Err(format!(
            "{id} was left out: the id must be `plugin:{}/{}`",
            plugin.path(),
            manifest.name
        ));
    }
    let older: Vec<&str> =
        manifest.context.extra.keys().map(String::as_str).filter(|key| is_older(key)).collect();
    if !older.is_empty() {
        warnings.push(format!(
            "{id} has fields of an older protocol, which are ignored: {}",
            older.join(", ")
        ));
    }
    if !manifest.permissions.extra.is_empty() {
        let unknown: Vec<&str> = manifest.permissions.extra.keys().map(String::as_str).collect();
        warnings
            .push(format!("{id} asks for permissions that do not exist: {}", unknown.join(", ")));
    }
    Ok(manifest)
}

/// Another major version is another protocol.
fn is_spoken(version: &str) -> bool {
    version.split('.').next() == Some(PROTOCOL_VERSION)
}

fn is_older(key: &str) -> bool {
    OLDER_FIELDS.contains(&key) || key.starts_with(OLDER_PREFIX)
}
