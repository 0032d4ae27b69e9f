//! Keeps one server connected: start, list, serve, back off, until it is stopped.
//!
//! Invariant: at most one connection per server; failed attempts back off exponentially with jitter; when this
//! returns, no process of the server is left.

mod handshake;

use super::client::Handler;
use super::http::{self, HttpClient};
use super::listing::{self, Listing};
use super::oauth::{Authorization, SignInStatus};
use super::settings::{McpLimits, McpTransport};
use super::stdio::{Fault, Stdio};
use super::trouble::{self, Failure, Note, short};
use super::{Connection, McpStatus, Shared, State};
use futures_util::FutureExt;
use greenroom_runtime::{Child, ChildEnd, ChildHold};
use handshake::{Handshake, NotConnected};
use rmcp::model::{ServerPeerInfo, SubscriptionFilter};
use rmcp::service::{ClientInitializeError, ClientServiceExt, RunningService, Subscription};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{Peer, RoleClient, ServiceError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a connection and its process may take to end.
const ENDING_MAX: Duration = Duration::from_secs(5);
/// How long an ended connection waits for the exit status of its process.
const LAST_WORDS: Duration = Duration::from_millis(500);

type Service = RunningService<RoleClient, Handler>;

struct Live {
    greeted: Greeted,
    handler: Handler,
    process: Option<Running>,
    /// The failures of a server over HTTP.
    note: Note,
}

/// A connection that has listed its tools.
struct Greeted {
    service: Service,
    listing: Listing,
    subscription: Option<Subscription>,
}

/// The process behind a connection.
struct Running {
    hold: ChildHold,
    fault: Fault,
}

pub(super) async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0_u32;
    let mut handshake = Handshake::Newest;
    while !stop.is_cancelled() {
        shared.update(|state| state.status = McpStatus::Starting);
        let began = Instant::now();
        let reason = match connect(&shared, handshake, &stop).await {
            Err(NotConnected::AtHandshake(reason)) if handshake == Handshake::Newest => {
                // Whatever it says to `server/discover`: every server knows the older handshake.
                tracing::debug!(server = %shared.settings.name, %reason, "retrying with the older handshake");
                handshake = Handshake::Older;
                continue;
            }
            Err(NotConnected::AtHandshake(reason) | NotConnected::Before(reason)) => {
                handshake = Handshake::Newest;
                reason
            }
            Ok(live) => match serve(&shared, live, &stop).await {
                Some(reason) => reason,
                None => break,
            },
        };
        if stop.is_cancelled() {
            break;
        }
        let limits = &shared.settings.limits;
        let waits = shared.authorization().filter(|known| known.status() == SignInStatus::Required);
        failures = if began.elapsed() >= limits.healthy_after { 1 } else { failures + 1 };
        let delay = delay(failures, limits);
        let retry_ms = delay.as_millis() as u64;
        tracing::warn!(server = %shared.settings.name, %reason, retry_ms, "MCP server is not connected, will retry");
        shared.update(|state| {
            state.status = match waits {
                Some(_) => McpStatus::SignInRequired,
                None => McpStatus::BackingOff,
            };
            state.last_error = Some(reason);
            state.restarts += 1;
        });
        let signed_in = async {
            match waits {
                Some(authorization) => authorization.signed_in().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep(delay) => {}
            () = signed_in => failures = 0,
            () = stop.cancelled() => {}
        }
    }
    shared.update(|state| state.status = McpStatus::Stopped);
}

async fn connect(
    shared: &Shared,
    handshake: Handshake,
    stop: &CancellationToken,
) -> Result<Live, NotConnected> {
    shared.settings.check()?;
    let handler = Handler::default();
    match &shared.settings.transport {
        McpTransport::Stdio(spec) => {
            let child = shared.children.start(spec).await.map_err(|error| error.to_string())?;
            let Child { stdin, stdout, hold } = child;
            shared.update(|state| {
                state.pid = Some(hold.pid);
                state.isolation = Some(hold.isolation.clone());
                state.start_warnings = hold.warnings.clone();
            });
            let fault = Fault::default();
            let stdio = Stdio::new(stdin, stdout, shared.settings.limits.clone(), fault.clone());
            let mut process = Running { hold, fault };
            let started = handler.clone().serve_with_lifecycle(stdio, handshake.lifecycle());
            match open_session(shared, started, stop).await {
                Ok(greeted) => {
                    let (process, note) = (Some(process), Note::default());
                    Ok(Live { greeted, handler, process, note })
                }
                Err(reason) => {
                    // A start that is no longer wanted needs no reason.
                    let exit_reason =
                        if stop.is_cancelled() { None } else { process.exit_reason().await };
                    process.end().await;
                    Err(match (exit_reason, reason) {
                        (Some(exit), NotConnected::AtHandshake(_)) => {
                            NotConnected::AtHandshake(exit)
                        }
                        (Some(exit), NotConnected::Before(_)) => NotConnected::Before(exit),
                        (None, reason) => reason,
                    })
                }
            }
        }
        McpTransport::Http { url, headers, allow_private, .. } => {
            let limits = shared.settings.limits.clone();
            let headers = http::check(url, headers, *allow_private)?;
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .custom_headers(headers)
                .max_sse_event_size(limits.message_bytes_max);
            let note = Note::default();
            let authorization = shared.authorization.clone().transpose()?;
            let name = &shared.settings.name;
            let client = HttpClient::new(name, *allow_private, limits, &note, authorization)?;
            let transport = StreamableHttpClientTransport::with_client(client, config);
            let started = handler.clone().serve_with_lifecycle(transport, handshake.lifecycle());
            let started = async {
                match handshake {
                    // A server that does not answer `server/discover` may block what follows.
                    Handshake::Newest => {
                        let started = timeout(shared.settings.limits.discover_timeout, started);
                        started.await.unwrap_or(Err(ClientInitializeError::Cancelled))
                    }
                    Handshake::Older => started.await,
                }
            };
            let greeted = open_session(shared, started, stop).await;
            // The library's error, if the transport has none.
            let greeted = greeted.map_err(|error| match (error, note.take()) {
                (NotConnected::AtHandshake(_), Some(Failure { reason, answered: true })) => {
                    NotConnected::AtHandshake(reason)
                }
                (_, Some(Failure { reason, .. })) => NotConnected::Before(reason),
                (error, None) => error,
            })?;
            Ok(Live { greeted, handler, process: None, note })
        }
    }
}

/// From the first message to the list of tools, within the start timeout.
async fn open_session(
    shared: &Shared,
    started: impl Future<Output = Result<Service, ClientInitializeError>>,
    stop: &CancellationToken,
) -> Result<Greeted, NotConnected> {
    let within = shared.settings.limits.start_timeout;
    tokio::select! {
        greeted = timeout(within, introduce(shared, started)) => greeted.unwrap_or_else(|_| {
            let seconds = within.as_secs_f64();
            Err(format!("did not answer within {seconds} s; is it an MCP server?").into())
        }),
        () = stop.cancelled() => Err("is stopping".to_owned().into()),
    }
}

async fn introduce(
    shared: &Shared,
    started: impl Future<Output = Result<Service, ClientInitializeError>>,
) -> Result<Greeted, NotConnected> {
    let name = &shared.settings.name;
    let started = started.await;
    let service = started.map_err(|error| {
        let reason = trouble::at_handshake(&error, name);
        match error {
            // Both handshakes were tried.
            ClientInitializeError::LegacyFallbackFailed { .. } => NotConnected::Before(reason),
            _ => NotConnected::AtHandshake(reason),
        }
    })?;
    let info = service.peer().peer_info();
    // Newer servers report changes only to subscribers.
    let subscription = match &info {
        Some(info) if reports_changes(info) && !info.protocol_version.has_initialize() => {
            let wanted = SubscriptionFilter::builder().tools_list_changed().build();
            service.peer().listen(wanted).await.ok()
        }
        _ => None,
    };
    let listing = list(service.peer(), shared).await;
    let listing = listing.map_err(|error| trouble::at_listing(&error, name))?;
    shared.update(|state| {
        let own = info.as_ref().and_then(|info| info.server_info.as_ref());
        state.server = own.map(|own| short(&format!("{} {}", own.name, own.version)));
        state.protocol_version = info.as_ref().map(|info| info.protocol_version.to_string());
    });
    Ok(Greeted { service, listing, subscription })
}

async fn list(peer: &Peer<RoleClient>, shared: &Shared) -> Result<Listing, ServiceError> {
    // A server without tools may not support the request.
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Listing::default());
    }
    listing::fetch(peer, &shared.settings).await
}

fn reports_changes(info: &ServerPeerInfo) -> bool {
    info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
}

/// Serves until the connection ends; returns the reason, or nothing if we stop.
async fn serve(shared: &Shared, live: Live, stop: &CancellationToken) -> Option<String> {
    let Live { greeted, handler, mut process, note } = live;
    // Failures before it answered are resolved.
    note.take();
    let Greeted { service, listing, mut subscription } = greeted;
    let peer = service.peer().clone();
    let connection = Connection { peer: peer.clone(), handler: handler.clone() };
    shared.publish(listing, Some(Arc::new(connection)));
    let cancel = service.cancellation_token();
    let over = service.waiting().map(|_| ()).boxed().shared();
    let mut last_list = Instant::now();
    let reason = loop {
        tokio::select! {
            () = stop.cancelled() => break None,
            () = over.clone() => break Some("ended the connection".to_owned()),
            () = handler.changed.notified() => {}
            next_message = next_message(&mut subscription) => if !next_message { subscription = None; continue },
        }
        // Listed at a limited rate, however often it reports changes.
        let next = last_list + shared.settings.limits.refresh_min;
        let refreshed = async {
            tokio::time::sleep_until(next).await;
            note.take();
            list(&peer, shared).await
        };
        tokio::select! {
            () = stop.cancelled() => break None,
            () = over.clone() => break Some("ended the connection".to_owned()),
            listed = timeout(shared.settings.limits.start_timeout, refreshed) => match listed {
                Ok(Ok(listing)) => shared.publish(listing, None),
                Ok(Err(error)) => {
                    let reason = trouble::at_listing(&error, &shared.settings.name);
                    break Some(note.take().map_or(reason, |failure| failure.reason));
                }
                Err(_) => break Some("does not list its tools any more".to_owned()),
            },
        }
        last_list = Instant::now();
    };
    shared.update(|state| {
        state.connection = None;
        state.pid = None;
    });
    cancel.cancel();
    let _ = timeout(ENDING_MAX, over).await;
    let reason = match (&mut process, reason) {
        (Some(process), Some(reason)) => Some(process.exit_reason().await.unwrap_or(reason)),
        (_, reason) => reason,
    };
    if let Some(process) = process {
        process.end().await;
    }
    reason
}

/// Waits for the next message of a subscription; returns whether it continues.
async fn next_message(subscription: &mut Option<Subscription>) -> bool {
    match subscription {
        Some(subscription) => matches!(subscription.next().await, Ok(Some(_))),
        None => std::future::pending().await,
    }
}

impl Running {
    /// The exit status of the process, where it explains more than the end of the connection.
    async fn exit_reason(&mut self) -> Option<String> {
        if let Some(reason) = self.fault.reason() {
            return Some(reason);
        }
        let (message, how) = timeout(LAST_WORDS, self.hold.ended()).await.ok()?;
        if how == ChildEnd::Exited(0) {
            // It may have ended because we stopped it.
            return None;
        }
        match self.hold.last_words() {
            words if words.is_empty() => Some(message),
            words => Some(format!("{message}; its last words: {}", trouble::last_words(&words))),
        }
    }

    async fn end(mut self) {
        self.hold.kill();
        // If it takes longer, its supervisor continues without us.
        let _ = timeout(ENDING_MAX, self.hold.ended()).await;
    }
}

impl Shared {
    fn authorization(&self) -> Option<&Arc<Authorization>> {
        self.authorization.as_ref()?.as_ref().ok()
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
    }

    /// Publishes a list, and with a connection marks the server ready.
    fn publish(&self, listing: Listing, connection: Option<Arc<Connection>>) {
        for warning in &listing.warnings {
            tracing::warn!(server = %self.settings.name, "{warning}");
        }
        self.update(|state| {
            if *state.tools != listing.tools {
                state.tools = Arc::new(listing.tools);
                state.list += 1;
            }
            state.list_warnings = listing.warnings;
            if connection.is_some() {
                state.connection = connection;
                state.status = McpStatus::Ready;
            }
        });
    }
}

/// Doubles with every failure; a random part of its upper half.
fn delay(failures: u32, limits: &McpLimits) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(20));
    let longest = limits.backoff_min.saturating_mul(factor).min(limits.backoff_max);
    let share = getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX));
    longest.mul_f64(0.5 + share / 2.0)
}
