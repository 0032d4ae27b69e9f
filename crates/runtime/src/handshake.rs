//! The handshake with a runner: who it is, which runners and which tools it offers.
//!
//! Invariant: a descriptor that comes out of here has an id under the plugin that the process declared, and
//! that plugin is the pinned one where there is a pin.

use crate::connection::{Connection, NoResult};
use crate::runtime::Shared;
use crate::state::Descriptor;
use futures_util::future::BoxFuture;
use greenroom_protocol::wire::{InitializeResult, PluginIdentity};
use greenroom_protocol::{AgentRunnerManifest, PROTOCOL_VERSION, RunnerId};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;

mod tools;

pub(crate) use tools::{Listed, read as read_tools};

/// Context fields of manifests from before version 1, which have no meaning any more.
const OLDER_FIELDS: [&str; 2] = ["ownership", "bootstrap"];
const OLDER_PREFIX: &str = "max_inline_";

/// What a process offers, checked.
pub(crate) struct Offer {
    pub(crate) plugin: PluginIdentity,
    pub(crate) descriptors: Vec<Arc<Descriptor>>,
    pub(crate) warnings: Vec<String>,
    /// Absent while it is not known: what it offered before is offered still.
    pub(crate) tools: Option<Listed>,
}

pub(crate) type LateTools = BoxFuture<'static, Result<Box<RawValue>, NoResult>>;

/// Makes the handshake, and publishes the connection if it succeeds.
pub(crate) async fn admit(
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
    generation: u64,
    pin: Option<&str>,
) -> Result<(), String> {
    let terms = Terms { pin, host_version: &shared.settings.host_version };
    let mut introduction = introduce(connection, &terms).await?;
    let late = introduction.late.take();
    let offer = Offer::new(connection, introduction);
    shared.registry.publish(generation, connection, offer)?;
    if let Some(late) = late {
        let (shared, connection) = (shared.clone(), connection.clone());
        let tasks = shared.tasks.clone();
        tasks.spawn(async move {
            let listed =
                match tokio::time::timeout(connection.limits.configured.runner_start, late).await {
                    Ok(answer) => tools::read(answer),
                    Err(_) => tools::none("did not answer `list_tools`"),
                };
            shared.registry.take_late_tools(generation, &connection, listed);
        });
    }
    Ok(())
}

/// Within the time that a start may take.
async fn introduce(
    connection: &Arc<Connection>,
    terms: &Terms<'_>,
) -> Result<Introduction, String> {
    let timeout = connection.limits.configured.runner_start;
    let introduction = tokio::time::timeout(timeout, connection.codec.introduce(connection, terms));
    tokio::select! {
        introduction = introduction => introduction
            .unwrap_or_else(|_| Err(format!("was not ready after {} s", timeout.as_secs_f32()))),
        () = connection.not_serving() => Err(connection.reason().unwrap_or_default()),
    }
}

/// What a handshake is checked against.
pub(crate) struct Terms<'a> {
    /// What the process must declare itself to be.
    pub(crate) pin: Option<&'a str>,
    pub(crate) host_version: &'a str,
}

impl Terms<'_> {
    /// Checks who a process declares to be, and makes that the plugin of its connection.
    pub(crate) fn identify(
        &self,
        connection: &Connection,
        declared: &InitializeResult,
    ) -> Result<(), String> {
        check_identity(declared, self.pin)?;
        // Set once per connection, by its handshake.
        let _ = connection.plugin.set(declared.plugin.path().into());
        Ok(())
    }
}

/// What a process has declared, not yet checked beyond its identity.
pub(crate) struct Introduction {
    pub(crate) plugin: PluginIdentity,
    pub(crate) manifests: Vec<Box<RawValue>>,
    pub(crate) warnings: Vec<String>,
    /// Absent while it is not known: what it offered before is offered still.
    pub(crate) tools: Option<Listed>,
    /// The answer about tools, where it takes longer than runs should wait.
    pub(crate) late: Option<LateTools>,
}

impl Offer {
    /// Accepts what is valid of an introduction.
    fn new(connection: &Connection, introduction: Introduction) -> Self {
        let Introduction { plugin, manifests, mut warnings, tools, .. } = introduction;
        let mut descriptors = Vec::new();
        let mut seen = BTreeSet::new();
        let path: Arc<str> = plugin.path().into();
        for manifest in &manifests {
            match accept(manifest, &plugin, &mut warnings) {
                Ok(manifest) if seen.insert(manifest.id.clone()) => {
                    descriptors.push(Arc::new(Descriptor {
                        manifest,
                        runner: connection.runner.clone(),
                        plugin: path.clone(),
                        plugin_version: plugin.version.clone(),
                        isolation: connection.isolation.clone(),
                    }));
                }
                Ok(manifest) => warnings.push(format!("`{}` is declared twice", manifest.id)),
                Err(warning) => warnings.push(warning),
            }
        }
        Self { plugin, descriptors, warnings, tools }
    }
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
    // `state` is asked for by wires where it is no matter of storage.
    let unknown = manifest.permissions.extra.keys().map(String::as_str);
    let unknown: Vec<&str> = unknown.filter(|key| *key != "state").collect();
    if !unknown.is_empty() {
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
