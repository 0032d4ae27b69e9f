//! The table of routes, and what all of them share.

use crate::access::Access;
use crate::answer::Problem;
use crate::{connect, events, facts, guard, openapi, runs, system};
use arc_swap::ArcSwap;
use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use greenroom_host::Host;
use greenroom_protocol::ErrorCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub event_bytes_max: usize,
    pub request_timeout: Duration,
    pub connections_max: usize,
    /// Values of `Host` that are accepted beside loopback names and addresses.
    pub allowed_hosts: Vec<String>,
    /// Values of `Origin` that are accepted beside the host's own.
    pub allowed_origins: Vec<String>,
}

/// What every handler sees.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) host: Host,
    pub(crate) access: Arc<ArcSwap<Access>>,
    pub(crate) options: Arc<ServerOptions>,
    pub(crate) stop: CancellationToken,
}

/// The server, ready to listen.
#[derive(Clone)]
pub struct Server {
    app: App,
}

impl Server {
    pub fn new(
        host: Host,
        access: Access,
        options: ServerOptions,
        stop: CancellationToken,
    ) -> Self {
        let access = Arc::new(ArcSwap::from_pointee(access));
        Self { app: App { host, access, options: Arc::new(options), stop } }
    }

    /// Puts other tokens in force at once.
    pub fn set_access(&self, access: Access) {
        self.app.access.store(Arc::new(access));
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.app.options
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.app.stop
    }

    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route("/healthz", get(system::healthz))
            .route("/readyz", get(system::readyz))
            .route("/metrics", get(system::metrics))
            .route("/openapi.json", get(openapi::document))
            .route("/v1/events", post(events::accept).get(facts::events))
            .route("/v1/events/{id}", get(facts::event))
            .route("/v1/runs", get(runs::list))
            .route("/v1/runs/{id}", get(runs::show))
            .route("/v1/runs/{id}/cancel", post(runs::cancel))
            .route("/v1/runs/{id}/results", get(runs::results))
            .route("/v1/conversations", get(facts::conversations))
            .route("/v1/conversations/{id}/history", get(facts::history))
            .route("/v1/runners", get(system::runners))
            .route("/v1/runners/connect", get(connect::connect))
            .route("/v1/agents", get(system::agents))
            .fallback(|| async { Problem::not_found("address") })
            .method_not_allowed_fallback(|| async {
                let message = "this address does not take that method";
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::InvalidArgument, message)
            })
            .layer(from_fn_with_state(self.app.clone(), guard::guard))
            .with_state(self.app.clone())
    }
}
