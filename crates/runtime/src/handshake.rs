//! The first words with a runner: who it is, which runners and which tools it offers.
//!
//! Invariant: a descriptor that comes out of here has an id under the plugin that the process declared, and
//! that plugin is the pinned one where there is a pin.

use crate::connection::{Connection, NoResult};
use crate::runtime::Shared;
use crate::state::Descriptor;
use crate::wires::Codec;
use crate::wires::langbot::{self, Session};
use futures_util::future::BoxFuture;
use greenroom_protocol::wire::{
    HostIdentity, InitializeParams, InitializeResult, METHOD_NOT_FOUND, PluginIdentity, method,
};
use greenroom_protocol::{AgentRunnerManifest, PROTOCOL_VERSION, RunnerId};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

mod tools;

pub(crate) use tools::Listed;

/// Context fields of manifests from before version 1, which have no meaning any more.
const OLDER_FIELDS: [&str; 2] = ["ownership", "bootstrap"];
const OLDER_PREFIX: &str = "max_inline_";

pub(crate) struct Offer {
    pub(crate) plugin: PluginIdentity,
    pub(crate) descriptors: Vec<Arc<Descriptor>>,
    pub(crate) warnings: Vec<String>,
    /// Absent while it is not known: what it offered before is offered still.
    pub(crate) tools: Option<Listed>,
    /// The answer about tools, where it takes longer than runs should wait.
    late: Option<LateTools>,
}

type LateTools = BoxFuture<'static, Result<Box<RawValue>, NoResult>>;

/// Asks, and gives the connection runs and calls if all is well.
pub(crate) async fn admit(
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
    generation: u64,
    pin: Option<&str>,
) -> Result<(), String> {
    let mut offer = introduce(connection, pin, &shared.settings.host_version).await?;
    let late = offer.late.take();
    shared.registry.publish(generation, connection, offer)?;
    if let Some(late) = late {
        let (shared, connection) = (shared.clone(), connection.clone());
        let tasks = shared.tasks.clone();
        tasks.spawn(async move {
            let listed = match tokio::time::timeout(connection.limits.start_timeout, late).await {
                Ok(answer) => tools::read(answer),
                Err(_) => tools::none("did not answer `list_tools`"),
            };
            shared.registry.take_late_tools(generation, &connection, listed);
        });
    }
    Ok(())
}

/// Asks, within the time a start may take.
async fn introduce(
    connection: &Arc<Connection>,
    pin: Option<&str>,
    host_version: &str,
) -> Result<Offer, String> {
    let timeout = connection.limits.start_timeout;
    tokio::select! {
        offer = tokio::time::timeout(timeout, ask(connection, pin, host_version)) => offer
            .unwrap_or_else(|_| Err(format!("was not ready after {} s", timeout.as_secs_f32()))),
        () = connection.not_serving() => Err(connection.reason().unwrap_or_default()),
    }
}

async fn ask(
    connection: &Arc<Connection>,
    pin: Option<&str>,
    host_version: &str,
) -> Result<Offer, String> {
    if let Codec::Langbot(session) = &connection.codec {
        return ask_plugin(connection, session, pin).await;
    }
    let host = HostIdentity { name: "greenroom".to_owned(), version: host_version.to_owned() };
    let params = InitializeParams { protocol_version: PROTOCOL_VERSION.to_owned(), host };
    let answer = connection.request(method::INITIALIZE, &params).await;
    let answer = answer.map_err(|why| why.about(method::INITIALIZE))?;
    let answer: InitializeResult = serde_json::from_str(answer.get())
        .map_err(|error| format!("answered `initialize` with something malformed: {error}"))?;
    check_identity(&answer, pin)?;
    is_plugin(connection, &answer.plugin);
    let list = connection.request(method::LIST_AGENT_RUNNERS, &serde_json::json!({})).await;
    let list = match list {
        Ok(list) => Ok(list),
        // A plugin for tools alone need not know what a runner is.
        Err(NoResult::Refused(error)) if error.code == METHOD_NOT_FOUND => Err(error.message),
        Err(why) => return Err(why.about(method::LIST_AGENT_RUNNERS)),
    };
    let limits = &connection.limits;
    let wait = if list.is_ok() { limits.tools_wait } else { limits.start_timeout };
    let (tools, late) = list_tools(connection, wait).await;
    let mut offer =
        Offer { plugin: answer.plugin, descriptors: Vec::new(), warnings: Vec::new(), tools, late };
    let has_tools = offer.tools.as_ref().is_some_and(|listed| !listed.tools.is_empty());
    let list = match list {
        Ok(list) => list,
        Err(_) if has_tools => return Ok(offer),
        Err(message) => return Err(format!("offers neither runners nor tools: {message}")),
    };
    offer.take(connection, manifests(&list)?);
    Ok(offer)
}

/// The same of a LangBot plugin, which shows everything at once and offers no tools here.
async fn ask_plugin(
    connection: &Arc<Connection>,
    session: &Session,
    pin: Option<&str>,
) -> Result<Offer, String> {
    let contents = langbot::handshake::ask(connection, session).await?;
    let protocol_version = PROTOCOL_VERSION.to_owned();
    let declared = InitializeResult { protocol_version, plugin: contents.plugin };
    check_identity(&declared, pin)?;
    is_plugin(connection, &declared.plugin);
    let tools = Some(Listed::default());
    let warnings = contents.warnings;
    let descriptors = Vec::new();
    let mut offer = Offer { plugin: declared.plugin, descriptors, warnings, tools, late: None };
    let manifests = contents.manifests.iter().map(to_raw_value).collect::<Result<Vec<_>, _>>();
    let manifests = manifests.map_err(|error| format!("has a malformed manifest: {error}"))?;
    offer.take(connection, manifests.iter().map(|manifest| &**manifest).collect());
    Ok(offer)
}

fn is_plugin(connection: &Connection, plugin: &PluginIdentity) {
    // Set once per connection, by its handshake.
    let _ = connection.plugin.set(plugin.path().into());
}

impl Offer {
    /// Takes in what is acceptable of these manifests.
    fn take(&mut self, connection: &Connection, manifests: Vec<&RawValue>) {
        let plugin: Arc<str> = self.plugin.path().into();
        let mut seen = BTreeSet::new();
        for manifest in manifests {
            match accept(manifest, &self.plugin, &mut self.warnings) {
                Ok(manifest) if seen.insert(manifest.id.clone()) => {
                    self.descriptors.push(Arc::new(Descriptor {
                        manifest,
                        runner: connection.runner.clone(),
                        plugin: plugin.clone(),
                        plugin_version: self.plugin.version.clone(),
                        isolation: connection.isolation.clone(),
                    }));
                }
                Ok(manifest) => self.warnings.push(format!("`{}` is declared twice", manifest.id)),
                Err(warning) => self.warnings.push(warning),
            }
        }
    }
}

/// Asks for tools; a process that takes its time gets its first runs before it has told.
async fn list_tools(
    connection: &Arc<Connection>,
    wait: Duration,
) -> (Option<Listed>, Option<LateTools>) {
    let asked = connection.clone();
    let mut answer: LateTools =
        Box::pin(async move { asked.request(method::LIST_TOOLS, &serde_json::json!({})).await });
    match tokio::time::timeout(wait, &mut answer).await {
        Ok(answer) => (Some(tools::read(answer)), None),
        Err(_) => (None, Some(answer)),
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
