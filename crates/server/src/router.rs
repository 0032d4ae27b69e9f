//! The routing table and the state shared by all handlers.
//!
//! Invariant: every route is in the OpenAPI document (a test compares the two).

use crate::access::Access;
use crate::mcp_gateway::McpCalls;
use crate::request_policy::RequestPolicy;
use crate::response::Problem;
use crate::session::Sessions;
use crate::{
    access, agents, agui, approvals, artifacts, audit, connect, deliveries, events, facts, guard,
    interactions, mcp_gateway, metrics, model_gateway, openapi, overview, resources, runs, session,
    system, tool_runtime, ui,
};
use arc_swap::ArcSwap;
use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post};
use bytes::Bytes;
use greenroom_config::{BasePath, Limits};
use greenroom_host::Host;
use greenroom_protocol::ErrorCode;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub limits: Limits,
    /// The prefix of all paths.
    pub base_path: BasePath,
    /// Name of the session cookie, different for every host of a machine.
    pub cookie: String,
}

/// State shared by all handlers.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) host: Host,
    pub(crate) access: Arc<ArcSwap<Access>>,
    pub(crate) request_policy: Arc<ArcSwap<RequestPolicy>>,
    pub(crate) options: Arc<ServerOptions>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) stop: CancellationToken,
    pub(crate) streams: Streams,
    /// Calls of MCP clients.
    pub(crate) mcp_calls: Arc<McpCalls>,
    /// The OpenAPI document, built on first use.
    pub(crate) openapi: Arc<OnceLock<Bytes>>,
}

/// Live streams, which are closed after everything else.
#[derive(Clone, Default)]
pub(crate) struct Streams {
    /// One token per open stream.
    pub(crate) open: TaskTracker,
    /// Cancelled at shutdown when only streams are left.
    pub(crate) only_streams_left: CancellationToken,
    pub(crate) close: CancellationToken,
}

#[derive(Clone)]
pub struct Server {
    app: App,
}

impl Server {
    pub fn new(
        host: Host,
        access: Access,
        request_policy: RequestPolicy,
        options: ServerOptions,
        stop: CancellationToken,
    ) -> Self {
        let access = Arc::new(ArcSwap::from_pointee(access));
        let request_policy = Arc::new(ArcSwap::from_pointee(request_policy));
        let sessions = Arc::new(Sessions::new(options.limits.clone()));
        let (options, streams, openapi) = (Arc::new(options), Streams::default(), Arc::default());
        let mcp_calls = Arc::default();
        Self {
            app: App {
                host,
                access,
                request_policy,
                options,
                sessions,
                stop,
                streams,
                mcp_calls,
                openapi,
            },
        }
    }

    /// Replaces all tokens at once; sessions of removed tokens end.
    pub fn set_access(&self, access: Access) {
        let access = Arc::new(access);
        self.app.access.store(Arc::clone(&access));
        self.app.sessions.retain_tokens(|token| access.caller(token).is_some());
    }

    /// Replaces allowed hosts, allowed origins and trusted proxies at once.
    pub fn set_request_policy(&self, request_policy: RequestPolicy) {
        self.app.request_policy.store(Arc::new(request_policy));
    }

    /// A code that opens one session for the token with this hash.
    pub fn sign_in_code(&self, token: [u8; 32]) -> Result<String, getrandom::Error> {
        self.app.sessions.new_code(token)
    }

    /// At shutdown: waits until all requests other than streams have finished.
    pub async fn drained(&self) {
        self.app.streams.only_streams_left.cancelled().await;
    }

    /// Closes the live streams, which stay open during shutdown until this is called.
    pub fn close_streams(&self) {
        self.app.streams.close.cancel();
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.app.streams
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.app.options
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.app.stop
    }

    pub(crate) fn router(&self) -> Router {
        let router = Router::new().fallback(ui::serve);
        self.with_state(routes().into_iter().fold(router, Route::add_to))
    }

    /// Routes for the host's own child processes.
    pub(crate) fn router_for_children(&self) -> Router {
        let is_for_children = |route: &Route| {
            let gateways = [mcp_gateway::PATH, model_gateway::PREFIX];
            route.path == tool_runtime::RECORDS
                || gateways.iter().any(|prefix| route.path.starts_with(prefix))
        };
        let routes = routes().into_iter().filter(is_for_children);
        let router = Router::new().fallback(|| async { Problem::not_found("path") });
        self.with_state(routes.fold(router, Route::add_to))
    }

    fn with_state(&self, router: Router<App>) -> Router {
        router
            .method_not_allowed_fallback(|| async {
                let message = "method not allowed";
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::InvalidArgument, message)
            })
            .layer(from_fn_with_state(self.app.clone(), guard::guard))
            .with_state(self.app.clone())
    }
}

pub(crate) struct Route {
    #[cfg_attr(not(test), expect(dead_code, reason = "read when compared with the document"))]
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    handler: MethodRouter<App>,
}

impl Route {
    fn add_to(router: Router<App>, route: Self) -> Router<App> {
        router.route(route.path, route.handler)
    }

    fn get<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self { method: "get", path, handler: get(handler) }
    }

    fn post<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self { method: "post", path, handler: post(handler) }
    }

    fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self { method: "delete", path, handler: delete(handler) }
    }
}

pub(crate) fn routes() -> Vec<Route> {
    let mut routes = own_routes();
    routes.extend(gateway_routes());
    routes
}

fn own_routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", system::healthz),
        Route::get("/readyz", system::readyz),
        Route::get("/metrics", metrics::metrics),
        Route::get("/openapi.json", openapi::document),
        Route::post("/v1/session", session::sign_in),
        Route::get("/v1/session", session::show),
        Route::delete("/v1/session", session::sign_out),
        Route::post("/v1/session/code", session::new_code),
        Route::post("/v1/tokens/actor", access::actor::mint),
        Route::post("/v1/events", events::accept),
        Route::get("/v1/events", facts::events),
        Route::get("/v1/events/{id}", facts::event),
        Route::post("/v1/artifacts", artifacts::upload),
        Route::get("/v1/artifacts", artifacts::list),
        Route::get("/v1/artifacts/{id}", artifacts::download),
        Route::get("/v1/artifacts/{id}/metadata", artifacts::metadata),
        Route::get("/v1/files/{id}", artifacts::linked),
        Route::get("/v1/runs", runs::list),
        Route::get("/v1/runs/{id}", runs::show),
        Route::get("/v1/runs/{id}/story", runs::story),
        Route::post("/v1/runs/{id}/cancel", runs::cancel),
        Route::post("/v1/runs/{id}/replay", runs::replay),
        Route::get("/v1/runs/{id}/results", runs::results),
        Route::get("/v1/runs/{id}/interactions", interactions::list),
        Route::post("/v1/runs/{id}/interactions", interactions::answer),
        Route::get("/v1/conversations", facts::conversations),
        Route::get("/v1/conversations/{id}/history", facts::history),
        Route::get("/v1/conversations/{id}/search", facts::search),
        Route::get("/v1/search", facts::search_all),
        Route::get("/v1/state", facts::state),
        Route::get("/v1/audit", audit::list),
        Route::get("/v1/approvals", approvals::list),
        Route::get("/v1/approvals/{id}", approvals::show),
        Route::post("/v1/approvals/{id}", approvals::answer),
        Route::get("/v1/deliveries", deliveries::list),
        Route::get("/v1/deliveries/{id}", deliveries::show),
        Route::post("/v1/deliveries/{id}/retry", deliveries::retry),
        Route::post("/v1/deliveries/{id}/discard", deliveries::discard),
        Route::post("/v1/agui/{id}", agui::run),
        Route::get("/v1/agui/info", agui::copilot::info),
        Route::post("/v1/agui/agent/{id}/run", agui::run),
        Route::post("/v1/agui/agent/{id}/connect", agui::copilot::connect),
        Route::post("/v1/agui/agent/{id}/stop/{thread}", agui::copilot::stop),
        Route::post(tool_runtime::RECORDS, tool_runtime::records),
        Route::get("/v1/runners", system::runners),
        Route::get("/v1/runners/connect", connect::connect),
        Route::get("/v1/agents", agents::list),
        Route::get("/v1/agents/{id}", agents::show),
        Route::post("/v1/bindings/try", agents::try_event),
        Route::get("/v1/overview", overview::show),
        Route::get("/v1/models", resources::models),
        Route::get("/v1/tools", resources::tools),
        Route::get("/v1/tool-servers", resources::tool_servers),
        Route::get("/v1/checks", system::checks),
    ]
}

/// For programs with the token of a run.
fn gateway_routes() -> Vec<Route> {
    vec![
        Route::post(mcp_gateway::PATH, mcp_gateway::post),
        Route::get(mcp_gateway::PATH, mcp_gateway::get),
        Route::delete(mcp_gateway::PATH, mcp_gateway::delete),
        Route::post("/models/runs/{id}/openai/v1/chat/completions", model_gateway::chat),
        Route::post("/models/runs/{id}/openai/v1/responses", model_gateway::responses),
        Route::get("/models/runs/{id}/openai/v1/models", model_gateway::openai_models),
        Route::get("/models/runs/{id}/openai/v1/models/{name}", model_gateway::openai_model),
        Route::post("/models/runs/{id}/anthropic/v1/messages", model_gateway::messages),
        Route::post(
            "/models/runs/{id}/anthropic/v1/messages/count_tokens",
            model_gateway::count_messages,
        ),
        Route::get("/models/runs/{id}/anthropic/v1/models", model_gateway::anthropic_models),
        Route::get("/models/runs/{id}/anthropic/v1/models/{name}", model_gateway::anthropic_model),
        Route::post("/models/runs/{id}/gemini/v1beta/models/{name}", model_gateway::gemini),
        Route::get("/models/runs/{id}/gemini/v1beta/models", model_gateway::gemini_models),
        Route::get("/models/runs/{id}/gemini/v1beta/models/{name}", model_gateway::gemini_model),
        // The newest clients of Google use this version.
        Route::post("/models/runs/{id}/gemini/v1/models/{name}", model_gateway::gemini),
        Route::get("/models/runs/{id}/gemini/v1/models", model_gateway::gemini_models),
        Route::get("/models/runs/{id}/gemini/v1/models/{name}", model_gateway::gemini_model),
    ]
}
