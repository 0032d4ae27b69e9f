//! Listening: connections within a bound, and an end in order.
//!
//! Invariant: a connection that neither sends a request nor takes its answer is closed after the time a
//! request may take, so that idle ones cannot keep others out; descriptors are left for the host's own work.

use crate::at_once::at_once;
use crate::front::{Peer, Scheme};
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

/// How long open requests may take to end when the host stops.
const DRAIN: Duration = Duration::from_secs(3);
/// How often the end looks whether nothing but streams is left.
const DRAIN_LOOK: Duration = Duration::from_millis(10);
/// Descriptors that connections may not take: for the store, runners and deliveries.
const DESCRIPTORS_KEPT: u64 = 256;
/// Longest head of a request, request line and headers together.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Connections that the system keeps until they are accepted: a burst beyond it is slowed down by seconds.
const BACKLOG: u32 = 4096;

/// Who comes in by a socket, and how.
#[derive(Clone)]
pub enum Door {
    Plain,
    Tls(Certificate),
    /// The host's own child processes, on an address that nobody else reaches.
    Children,
}

/// Opens a socket to serve on.
pub fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of an earlier host that linger must not keep this one from starting.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until the server is told to stop, and then streams alone until they are closed. The caller owns the
/// socket.
pub async fn serve(listener: TcpListener, server: Server, door: Door) {
    let connections = Connections::new(&server, &door);
    let slots = Arc::new(Semaphore::new(connections_max(server.options().limits.connections_open)));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = server.stop().cancelled() => break,
        };
        let Some((stream, address, slot)) = accepted else { continue };
        let (connections, door) = (connections.clone(), door.clone());
        tune(&stream, connections.timeout);
        tasks.spawn(async move {
            match door {
                Door::Plain | Door::Children => {
                    let peer = Peer { address, scheme: Scheme::Http };
                    connections.carry(stream, peer).await;
                }
                // Whoever is slow here holds nobody up but himself.
                Door::Tls(certificate) => {
                    let peer = Peer { address, scheme: Scheme::Https };
                    if let Some(stream) = connections.encrypted(stream, &certificate).await {
                        connections.carry(stream, peer).await;
                    }
                }
            }
            drop(slot);
        });
    }
    drop(listener);
    tasks.close();
    if matches!(door, Door::Children) {
        let _ = tokio::time::timeout(DRAIN, tasks.wait()).await;
        return;
    }
    let streams = server.streams();
    let drained = async {
        while tasks.len() > streams.open.len() {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::debug!("some requests did not end in time");
    }
    streams.alone.cancel();
    streams.close.cancelled().await;
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::debug!("some readers did not take the end of their stream");
    }
}

/// What all connections of a door share.
#[derive(Clone)]
struct Connections {
    builder: http1::Builder,
    service: TowerToHyperService<Router>,
    base_path: BasePath,
    stop: CancellationToken,
    timeout: Duration,
}

impl Connections {
    fn new(server: &Server, door: &Door) -> Self {
        let options = server.options();
        let timeout = options.limits.request_timeout;
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(timeout).max_buf_size(HEAD_BYTES_MAX);
        let router = match door {
            Door::Plain | Door::Tls(_) => server.router(),
            Door::Children => server.router_for_children(),
        };
        let service = TowerToHyperService::new(router);
        let (base_path, stop) = (options.base_path.clone(), server.stop().clone());
        Self { builder, service, base_path, stop, timeout }
    }

    /// Greets whoever speaks TLS, within the time of a request.
    async fn encrypted(
        &self,
        stream: TcpStream,
        certificate: &Certificate,
    ) -> Option<TlsStream<TcpStream>> {
        let greeting = certificate.acceptor().accept(stream);
        let greeted = tokio::select! {
            greeted = tokio::time::timeout(self.timeout, greeting) => greeted,
            () = self.stop.cancelled() => return None,
        };
        match greeted {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a connection could not be encrypted");
                None
            }
            Err(_) => {
                tracing::debug!("a connection was not encrypted in time");
                None
            }
        }
    }

    /// Answers the requests of a connection until its end.
    async fn carry<S>(self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { builder, service, base_path, stop, .. } = self;
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            if let Some(inside) = crate::base::strip(&base_path, request.uri()) {
                *request.uri_mut() = inside;
            }
            service.call(request)
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection.with_upgrades());
        let ended = tokio::select! {
            ended = at_once(connection.as_mut()) => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended badly");
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
            // Out of descriptors, most likely: others have to end first.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// As many as are configured, and as the process has descriptors for.
fn connections_max(configured: usize) -> usize {
    let Some(descriptors) = getrlimit(Resource::Nofile).current else { return configured };
    let left = descriptors.saturating_sub(DESCRIPTORS_KEPT).max(descriptors / 2);
    configured.min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Small answers go out at once, and a peer that takes nothing is given up after a while. A system that
/// does not know the options serves all the same.
fn tune(stream: &TcpStream, timeout: Duration) {
    let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps small answers back");
    }
    if let Err(error) = set_tcp_user_timeout(stream, timeout_ms) {
        tracing::debug!(%error, "a connection has no time limit");
    }
}
