//! Listeners: bounded connections and a graceful shutdown.
//!
//! Invariant: a connection that neither sends a request nor reads its response is closed after the request
//! timeout, so that idle connections cannot exhaust the limit; some file descriptors stay free for the host.

use crate::request_policy::{Peer, Scheme};
use crate::router::Server;
use crate::tls::Certificate;
use axum::Router;
use greenroom_config::BasePath;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::{Resource, getrlimit};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long open requests may take to finish at shutdown.
const DRAIN: Duration = Duration::from_secs(3);
/// Poll interval for whether only streams are left.
const DRAIN_POLL: Duration = Duration::from_millis(10);
/// File descriptors reserved for the store, runners and deliveries.
const DESCRIPTORS_RESERVED: u64 = 256;
/// Longest request head: request line and headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Length of the accept queue; connections beyond it are delayed by seconds.
const BACKLOG: u32 = 4096;

/// Which clients a listener serves, and how.
#[derive(Clone)]
pub enum ListenerKind {
    Http,
    Tls(Certificate),
    /// The host's own child processes, on an address that nothing else can reach.
    ChildProcesses,
}

/// Binds a listening socket.
pub fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Lingering connections of an earlier process must not keep this one from starting.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until the server's stop token is cancelled, then keeps streams open until they are closed.
pub async fn serve(listener: TcpListener, server: Server, kind: ListenerKind) {
    let connections = Connections::new(&server, &kind);
    let slots = Arc::new(Semaphore::new(connections_max(server.options().limits.connections_open)));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = server.stop().cancelled() => break,
        };
        let Some((stream, address, slot)) = accepted else { continue };
        let (connections, kind) = (connections.clone(), kind.clone());
        set_socket_options(&stream, connections.timeout);
        tasks.spawn(async move {
            match kind {
                ListenerKind::Http | ListenerKind::ChildProcesses => {
                    let peer = Peer { address, scheme: Scheme::Http };
                    connections.serve_connection(stream, peer).await;
                }
                // In the connection's own task: a slow handshake delays no other connection.
                ListenerKind::Tls(certificate) => {
                    let peer = Peer { address, scheme: Scheme::Https };
                    if let Some(stream) = connections.tls_handshake(stream, &certificate).await {
                        connections.serve_connection(stream, peer).await;
                    }
                }
            }
            drop(slot);
        });
    }
    drop(listener);
    tasks.close();
    if matches!(kind, ListenerKind::ChildProcesses) {
        let _ = tokio::time::timeout(DRAIN, tasks.wait()).await;
        return;
    }
    let streams = server.streams();
    let drained = async {
        while tasks.len() > streams.open.len() {
            tokio::time::sleep(DRAIN_POLL).await;
        }
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::debug!(open = tasks.len(), "some requests did not finish before shutdown");
    }
    streams.only_streams_left.cancel();
    streams.close.cancelled().await;
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::debug!(open = tasks.len(), "some streams did not close before shutdown");
    }
}

/// Shared by all connections of a listener.
#[derive(Clone)]
struct Connections {
    builder: http1::Builder,
    service: TowerToHyperService<Router>,
    base_path: BasePath,
    stop: CancellationToken,
    timeout: Duration,
}

impl Connections {
    fn new(server: &Server, kind: &ListenerKind) -> Self {
        let options = server.options();
        let timeout = options.limits.request_timeout;
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(timeout).max_buf_size(HEAD_BYTES_MAX);
        let router = match kind {
            ListenerKind::Http | ListenerKind::Tls(_) => server.router(),
            ListenerKind::ChildProcesses => server.router_for_children(),
        };
        let service = TowerToHyperService::new(router);
        let (base_path, stop) = (options.base_path.clone(), server.stop().clone());
        Self { builder, service, base_path, stop, timeout }
    }

    /// TLS handshake, within the request timeout.
    async fn tls_handshake(
        &self,
        stream: TcpStream,
        certificate: &Certificate,
    ) -> Option<TlsStream<TcpStream>> {
        let handshake = certificate.acceptor().accept(stream);
        let result = tokio::select! {
            result = tokio::time::timeout(self.timeout, handshake) => result,
            () = self.stop.cancelled() => return None,
        };
        match result {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("TLS handshake timed out");
                None
            }
        }
    }

    /// Serves the requests of a connection until it closes.
    async fn serve_connection<S>(self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { builder, service, base_path, stop, .. } = self;
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            if let Some(uri) = crate::base::strip(&base_path, request.uri()) {
                *request.uri_mut() = uri;
            }
            service.call(request)
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection.with_upgrades());
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection closed with an error");
        }
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, address)) => Some((stream, address.ip(), slot)),
        Err(error) => {
            // Probably out of file descriptors.
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// The configured maximum, limited by the file descriptors of the process.
fn connections_max(configured: usize) -> usize {
    let Some(descriptors) = getrlimit(Resource::Nofile).current else { return configured };
    let left = descriptors.saturating_sub(DESCRIPTORS_RESERVED).max(descriptors / 2);
    configured.min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Sends small responses immediately and drops a peer that acknowledges nothing. Failures are not fatal: some
/// systems lack these options.
fn set_socket_options(stream: &TcpStream, timeout: Duration) {
    let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    if let Err(error) = set_tcp_user_timeout(stream, timeout_ms) {
        tracing::debug!(%error, "cannot set TCP_USER_TIMEOUT");
    }
}
