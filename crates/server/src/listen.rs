//! Listening: connections within a bound, and an end in order.
//!
//! Invariant: a connection that neither sends a request nor takes its answer is closed after the time a
//! request may take, so that idle ones cannot keep others out; descriptors are left for the host's own work.

use crate::router::Server;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long open requests may take to end when the host stops.
const DRAIN: Duration = Duration::from_secs(3);
/// Descriptors that connections may not take: for the store, runners and deliveries.
const DESCRIPTORS_KEPT: u64 = 256;
/// Longest head of a request, request line and headers together.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves until the server is told to stop. The caller owns the socket.
pub async fn serve(listener: TcpListener, server: Server) {
    let service = TowerToHyperService::new(server.router());
    let timeout = server.options().request_timeout;
    let slots = Arc::new(Semaphore::new(connections_max(server.options().connections_max)));
    let graceful = GracefulShutdown::new();
    let tasks = tokio_util::task::TaskTracker::new();
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = server.stop().cancelled() => break,
        };
        let Some((stream, slot)) = accepted else { continue };
        tune(&stream, timeout);
        let connection =
            builder.serve_connection_with_upgrades(TokioIo::new(stream), service.clone());
        let connection = graceful.watch(connection.into_owned());
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
            drop(slot);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::debug!("some requests did not end in time");
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, slot)),
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
