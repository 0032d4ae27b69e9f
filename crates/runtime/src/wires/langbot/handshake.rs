//! The first words with a LangBot plugin: it registers, is initialised, and shows what it holds.
//!
//! Invariant: a plugin is asked nothing before it has shown its secret.

use super::manifest::{self, Contents};
use super::{Dialect, Session};
use crate::connection::Connection;
use serde_json::{Value, json};
use std::sync::Arc;

/// Everything up to the manifests; a clause about the plugin where it fails.
pub(crate) async fn ask(
    connection: &Arc<Connection>,
    session: &Session,
) -> Result<Contents, String> {
    let mut registered = session.registered.subscribe();
    let container = registered.wait_for(Option::is_some).await;
    let container = container.ok().and_then(|container| container.clone());
    // A container without a name is refused before anything of the plugin runs.
    manifest::identity(&container.unwrap_or_default())?;
    let settings = json!({"enabled": true, "priority": 0, "plugin_config": {}});
    request(connection, "initialize_plugin", &json!({ "plugin_settings": settings })).await?;
    let container = request(connection, "get_plugin_container", &json!({})).await?;
    let contents = manifest::contents(&container, session.sdk_version.as_deref())?;
    session.settle(&contents);
    Ok(contents)
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
    /// Tells the plugin to give up a run; whether it has.
    pub(crate) async fn cancel(&self, connection: &Arc<Connection>, number: i64) -> bool {
        let answer = connection.request("__cancel_action", &json!({ "seq_id": number })).await;
        let answer =
            answer.ok().and_then(|answer| serde_json::from_str::<Value>(answer.get()).ok());
        answer.is_some_and(|answer| answer["cancelled"] == true)
    }

    /// Whether a runner can be told to stop.
    pub(crate) fn is_told_to_stop(&self, runner: &str) -> bool {
        self.profile(runner).dialect == Dialect::Runner
    }
}
