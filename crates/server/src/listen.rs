//! Listening: connections within a bound, and an end in order.

use crate::router::Server;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How long open requests may take to end when the host stops.
const DRAIN: Duration = Duration::from_secs(3);

/// Serves until the server is told to stop. The caller owns the socket.
pub async fn serve(listener: TcpListener, server: Server) {
    let service = TowerToHyperService::new(server.router());
    let slots = Arc::new(Semaphore::new(server.options().connections_max));
    let graceful = GracefulShutdown::new();
    let tasks = tokio_util::task::TaskTracker::new();
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(server.options().request_timeout)
        .max_buf_size(64 * 1024);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = server.stop().cancelled() => break,
        };
        let Some((stream, slot)) = accepted else { continue };
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
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            let _ = stream.set_nodelay(true);
            Some((stream, slot))
        }
        Err(error) => {
            // Out of descriptors, most likely: others have to end first.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}
