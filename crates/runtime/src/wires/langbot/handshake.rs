//! The handshake with a LangBot plugin: it registers, is initialised, and shows what it holds.
//!
//! Invariant: a plugin is asked nothing before it has shown its secret.

use super::{Dialect, Session, manifest};
use crate::connection::Connection;
use crate::handshake::{Introduction, Terms};
use crate::wires::StopRun;
use greenroom_protocol::PROTOCOL_VERSION;
use greenroom_protocol::wire::InitializeResult;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Everything up to the manifests and tools; a clause about the plugin where it fails.
pub(in crate::wires) async fn introduce(
    connection: &Arc<Connection>,
    session: &Session,
    terms: &Terms<'_>,
) -> Result<Introduction, String> {
    let mut registered = session.registered.subscribe();
    let container = registered.wait_for(Option::is_some).await;
    let container = container.ok().and_then(|container| container.clone());
    // A container without a name is refused before anything of the plugin runs.
    let container = container.unwrap_or_default();
    manifest::identity(&container)?;
    let (plugin_config, warnings) = manifest::settings(&container, &session.plugin_config);
    let section = format!("`[runners.{}.config]`", connection.runner);
    let warnings = warnings.into_iter().map(|warning| format!("{section}: {warning}"));
    let mut warnings: Vec<String> = warnings.collect();
    let settings = json!({"enabled": true, "priority": 0, "plugin_config": plugin_config});
    request(connection, "initialize_plugin", &json!({ "plugin_settings": settings })).await?;
    let container = request(connection, "get_plugin_container", &json!({})).await?;
    let mut contents = manifest::contents(&container, session.sdk_version.as_deref())?;
    session.settle(&contents);
    warnings.append(&mut contents.warnings);
    let protocol_version = PROTOCOL_VERSION.to_owned();
    let declared = InitializeResult { protocol_version, plugin: contents.plugin };
    terms.identify(connection, &declared)?;
    let manifests = contents.manifests.iter().map(to_raw_value).collect::<Result<Vec<_>, _>>();
    let manifests = manifests.map_err(|error| format!("has a malformed manifest: {error}"))?;
    let (plugin, tools) = (declared.plugin, Some(contents.tools));
    Ok(Introduction { plugin, manifests, warnings, tools, late: None })
}

async fn request(
    connection: &Arc<Connection>,
    action: &str,
    data: &Value,
) -> Result<Value, String> {
    let answer = connection.request(action, data).await.map_err(|why| why.about(action))?;
    serde_json::from_str(answer.get())
        .map_err(|error| format!("answered `{action}` with something malformed: {error}"))
}

impl Session {
    /// Tells the plugin to stop a run; returns how long it may take. A run that is stopped ends without a
    /// response. A runner of dialect A cannot be told; it polls its run, and gets longer.
    pub(in crate::wires) fn cancel_run(
        &self,
        connection: &Arc<Connection>,
        stop: &StopRun<'_>,
    ) -> Duration {
        if self.profile(stop.runner).dialect != Dialect::Runner {
            return connection.limits.drain_max;
        }
        let (connection, number) = (connection.clone(), stop.number);
        let (grace, max) = (connection.limits.configured.cancel_grace, connection.limits.drain_max);
        connection.clone().tasks.spawn(async move {
            let data = json!({ "seq_id": number });
            // Longer than the grace: a late answer still makes room for another run.
            let stopped = request(&connection, "__cancel_action", &data);
            let stopped = tokio::time::timeout(max, stopped).await;
            if stopped.is_ok_and(|answer| answer.is_ok_and(|answer| answer["cancelled"] == true)) {
                connection.answered(number, Ok(RawValue::NULL));
            }
        });
        grace
    }
}
