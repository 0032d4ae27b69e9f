//! MCP servers as sources of tools: kept connected in the background, called on demand.
//!
//! Invariant: a failure of a server is confined to its connection; its tools carry its name, so that it cannot
//! impersonate another; every call has exactly one output before its deadline.

mod call;
mod client;
mod http;
mod keep;
mod listing;
mod oauth;
mod output;
mod pace;
mod questions;
mod settings;
mod stdio;
mod trouble;

pub(crate) use call::CALL_MAX;
pub use client::{OnProgress, Progress};
pub use oauth::{
    LOOPBACK_PATH, OAuthError, OAuthGrant, OAuthSettings, OnSecrets, Redirected, SignInRequest,
    SignInStatus, is_loopback,
};
pub use questions::{Answer, Ask, Asks, OnQuestion, Question};
pub use settings::{McpLimits, McpSettings, McpTransport};

use crate::{Risk, Source, Tool, ToolOutput};
use client::Handler;
use greenroom_protocol::Object;
use greenroom_runtime::Children;
use oauth::Authorization;
use rmcp::{Peer, RoleClient};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// One configured server. Dropping the last reference closes its connection.
pub struct McpServer {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

/// The limits of one call.
pub struct McpCall {
    /// Absolute, whatever the server reports. Within it, progress restarts the silence timeout.
    pub deadline: Instant,
    pub cancel: CancellationToken,
    /// Receives progress in order.
    pub progress: Option<OnProgress>,
    /// Answers questions of the server; without it they are refused.
    pub ask: Option<Ask>,
}

/// The state of a server, for operators.
#[derive(Debug, Clone, PartialEq)]
pub struct McpHealth {
    pub status: McpStatus,
    /// The name it reports, e.g. `everything 2.0.0`.
    pub server: Option<String>,
    pub protocol_version: Option<String>,
    /// The process of a server on stdio, and its sandbox.
    pub pid: Option<u32>,
    pub isolation: Option<String>,
    pub tools: usize,
    /// Refused tools, and what the sandbox could not do.
    pub warnings: Vec<String>,
    /// Why the last connection or attempt ended.
    pub last_error: Option<String>,
    pub restarts: u64,
    /// Whether a user is signed in.
    pub sign_in: SignInStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpStatus {
    Starting,
    Ready,
    BackingOff,
    /// It refuses us until a user signs in.
    SignInRequired,
    Stopped,
}

pub(crate) struct Shared {
    settings: McpSettings,
    children: Children,
    tasks: TaskTracker,
    /// For servers over HTTP without a token of the configuration; an error if the settings are wrong.
    authorization: Option<Result<Arc<Authorization>, String>>,
    /// When it was first started.
    began: Instant,
    state: watch::Sender<State>,
}

/// What is known of a server.
#[derive(Clone)]
struct State {
    status: McpStatus,
    /// Kept while it is disconnected: its names stay reserved.
    tools: Arc<Vec<Tool>>,
    /// Incremented when the list of tools changes.
    list: u64,
    connection: Option<Arc<Connection>>,
    server: Option<String>,
    protocol_version: Option<String>,
    pid: Option<u32>,
    isolation: Option<String>,
    start_warnings: Vec<String>,
    list_warnings: Vec<String>,
    last_error: Option<String>,
    restarts: u64,
}

/// A working connection.
struct Connection {
    peer: Peer<RoleClient>,
    handler: Handler,
}

impl McpServer {
    /// Starts to keep a connection to the server.
    pub fn start(
        settings: McpSettings,
        children: Children,
        on_secrets: Option<OnSecrets>,
    ) -> Arc<Self> {
        let state = State {
            status: McpStatus::Starting,
            tools: Arc::default(),
            list: 0,
            connection: None,
            server: None,
            protocol_version: None,
            pid: None,
            isolation: None,
            start_warnings: Vec::new(),
            list_warnings: Vec::new(),
            last_error: None,
            restarts: 0,
        };
        let stop = CancellationToken::new();
        let authorization = settings.authorization(on_secrets);
        let shared = Arc::new(Shared {
            settings,
            children,
            tasks: TaskTracker::new(),
            authorization,
            began: Instant::now(),
            state: watch::Sender::new(state),
        });
        shared.tasks.spawn(keep::keep(shared.clone(), stop.clone()));
        Arc::new(Self { shared, stop })
    }

    pub fn name(&self) -> &str {
        &self.shared.settings.name
    }

    /// Its known tools, by name.
    pub fn tools(&self) -> Vec<Tool> {
        self.shared.state.borrow().tools.to_vec()
    }

    /// The version number of its list of tools.
    pub fn list_number(&self) -> u64 {
        self.shared.state.borrow().list
    }

    /// Whether it starts for the first time, and has done so for less than `patience`.
    pub fn is_awaited(&self, patience: Duration) -> bool {
        let state = self.shared.state.borrow();
        let is_first = state.status == McpStatus::Starting && state.restarts == 0;
        is_first && self.shared.began.elapsed() < patience
    }

    /// Waits until it answers or has failed; returns whether it answers.
    pub async fn ready(&self, deadline: Instant) -> bool {
        let mut state = self.shared.state.subscribe();
        let settled = state.wait_for(|state| state.status != McpStatus::Starting);
        let settled = tokio::time::timeout_at(deadline, settled).await;
        settled.is_ok_and(|state| state.is_ok_and(|state| state.status == McpStatus::Ready))
    }

    /// Waits until its list of tools differs from version `known`.
    pub async fn changed(&self, known: u64) -> u64 {
        let mut state = self.shared.state.subscribe();
        let changed = state.wait_for(|state| state.list != known).await;
        changed.map_or(known, |state| state.list)
    }

    pub fn health(&self) -> McpHealth {
        let state = self.shared.state.borrow();
        McpHealth {
            status: state.status,
            server: state.server.clone(),
            protocol_version: state.protocol_version.clone(),
            pid: state.pid,
            isolation: state.isolation.clone(),
            tools: state.tools.len(),
            warnings: [&state.start_warnings[..], &state.list_warnings].concat(),
            last_error: state.last_error.clone(),
            restarts: state.restarts,
            sign_in: self.authorization().map_or(SignInStatus::NotAsked, |known| known.status()),
        }
    }

    fn authorization(&self) -> Option<&Arc<Authorization>> {
        self.shared.authorization.as_ref()?.as_ref().ok()
    }

    /// Begins a sign-in that ends with a redirect to this address.
    pub async fn begin_sign_in(&self, redirect_uri: &str) -> Result<SignInRequest, OAuthError> {
        match self.authorization() {
            Some(authorization) => authorization.begin(redirect_uri).await,
            None => Err(OAuthError::Refused(
                "this server needs no sign-in: it is a program, or has its own `Authorization` header"
                    .to_owned(),
            )),
        }
    }

    /// Completes a sign-in; `is_at` says whether the redirect arrived where it belongs.
    pub async fn finish_sign_in(
        &self,
        redirected: &Redirected,
        is_at: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<(), OAuthError> {
        match self.authorization() {
            Some(authorization) => authorization.finish(redirected, is_at).await,
            None => Err(OAuthError::UnknownState),
        }
    }

    /// Forgets the sign-in.
    pub async fn sign_out(&self) {
        if let Some(authorization) = self.authorization() {
            authorization.sign_out().await;
        }
    }

    /// Calls a tool by its full name, e.g. `files.read_file`.
    pub async fn call(&self, tool: &str, args: Object, call: McpCall) -> ToolOutput {
        call::call(&self.shared, tool, args, call).await
    }

    /// Closes the connection and, on stdio, stops the server; returns when no process is left.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl McpSettings {
    /// `None` where OAuth has no place: on stdio, and with a token of the configuration.
    fn authorization(
        &self,
        on_secrets: Option<OnSecrets>,
    ) -> Option<Result<Arc<Authorization>, String>> {
        let McpTransport::Http { url, headers, allow_private, oauth } = &self.transport else {
            return None;
        };
        if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
            return None;
        }
        let new = Authorization::new((**oauth).clone(), url, *allow_private, on_secrets);
        Some(new.map(Arc::new))
    }

    /// The name of a tool of this server for others.
    fn full_name(&self, tool: &str) -> String {
        format!("{}.{tool}", self.name)
    }

    fn source(&self) -> Source {
        Source::Mcp(self.name.clone())
    }

    fn risk_of(&self, tool: &str) -> Option<Risk> {
        self.risk.get(tool).or_else(|| self.risk.get("*")).copied()
    }
}
