//! Serves a plugin until its host ends the connection.
//!
//! Invariant: returns only when the wire has ended; remaining runs are dropped with the runtime.

use crate::plugin::CheckedPlugin;
use crate::{InvalidPlugin, Plugin, environment, stdio};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::task::TaskTracker;

#[derive(Clone)]
pub enum Transport {
    /// The host started this process and uses its stdin and stdout.
    Stdio,
    /// A remote host: `ws://HOST[:PORT]` or `wss://…`, with the runner's token. Reconnects after a lost connection.
    WebSocket { url: String, token: String },
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the plugin is not valid")]
    Plugin(#[from] InvalidPlugin),
    #[error("the connection to the host broke")]
    Io(#[from] io::Error),
    #[error("`{0}` is not a host URL")]
    Address(String),
    #[error(
        "the host rejected the runner's token: it must be the `token` of a `[runners.NAME]` there"
    )]
    Token,
    #[error("the host does not allow this host name: see `allowed_hosts` under `[server]` there")]
    Forbidden,
    #[error("`{set}` is set but `{missing}` is not: a remote runner needs both")]
    Half { set: &'static str, missing: &'static str },
    #[error("this runner was built without the feature `{0}` of greenroom-sdk")]
    Feature(&'static str),
}

/// Serves a plugin over WebSocket if `GREENROOM_URL` and `GREENROOM_RUNNER_TOKEN` are set, over stdio if neither is.
/// Errors are printed to stderr.
pub fn serve(plugin: Plugin) -> ExitCode {
    match environment::transport().and_then(|transport| serve_on(plugin, transport)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = crate::RunFailure::from(error);
            eprintln!("error: {}", failure.message);
            ExitCode::FAILURE
        }
    }
}

/// Serves a plugin over the given transport.
pub fn serve_on(plugin: Plugin, transport: Transport) -> Result<(), ServeError> {
    let mut builder = match plugin.threads {
        Some(1) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if let Some(threads) = plugin.threads {
        builder.worker_threads(threads.max(1));
    }
    let runtime = builder.enable_all().build()?;
    let plugin = Arc::new(plugin.checked()?);
    let tasks = TaskTracker::new();
    // As a task the wire shares the workers with the runs, instead of waking its own thread.
    let wire = tasks.spawn_on(serve_checked(plugin, transport), runtime.handle());
    let served = runtime.block_on(wire);
    runtime.shutdown_background();
    served.map_err(io::Error::other)?
}

async fn serve_checked(plugin: Arc<CheckedPlugin>, transport: Transport) -> Result<(), ServeError> {
    match transport {
        Transport::Stdio => Ok(stdio::serve(plugin).await?),
        #[cfg(feature = "websocket")]
        Transport::WebSocket { url, token } => crate::websocket::serve(plugin, &url, &token).await,
        #[cfg(not(feature = "websocket"))]
        Transport::WebSocket { .. } => Err(ServeError::Feature("websocket")),
    }
}
