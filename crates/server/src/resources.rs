//! Configured models, tools and tool servers.
//!
//! Invariant: no key, header or price is shown.

use crate::access::Caller;
use crate::query::Params;
use crate::response::{ApiResult, ok};
use crate::router::App;
use axum::extract::State;
use greenroom_models::Kind;
use greenroom_tools::{McpHealth, McpStatus, ModuleHealth, SignInStatus};
use serde_json::{Value, json};

pub(crate) async fn models(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    let resources = app.host.resources();
    let models = resources.models.names().filter_map(|name| resources.models.get(name));
    let items: Vec<Value> = models
        .map(|model| {
            let settings = model.settings();
            let kind = match settings.kind {
                Kind::Chat => "chat",
                Kind::Embedding => "embedding",
                Kind::Rerank => "rerank",
            };
            json!({"name": settings.name, "provider": settings.provider_name,
                "model": settings.model, "kind": kind,
                "context_window": settings.window(),
                "max_output_tokens": settings.max_output_tokens,
                "has_price": settings.price.is_some()})
        })
        .collect();
    ok(json!({"items": items, "next_cursor": null, "has_more": false}))
}

pub(crate) async fn tools(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    let toolbox = &app.host.resources().tools;
    let entries = toolbox.names().into_iter().filter_map(|name| toolbox.entry(&name));
    let items: Vec<Value> = entries
        .map(|entry| {
            let tool = &entry.tool;
            json!({"tool_name": tool.name, "description": tool.description,
                "source": tool.source.to_string(), "risk": tool.risk.as_str(),
                "timeout_s": tool.timeout.as_secs(), "parameters": tool.input_schema})
        })
        .collect();
    ok(json!({"items": items, "next_cursor": null, "has_more": false}))
}

pub(crate) async fn tool_servers(
    State(app): State<App>,
    caller: Caller,
    params: Params,
) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    let resources = app.host.resources();
    let servers: Vec<Value> = resources
        .tools
        .servers()
        .iter()
        .map(|server| {
            let McpHealth {
                status,
                server: server_name,
                protocol_version,
                pid,
                isolation,
                tools,
                warnings,
                last_error,
                restarts,
                sign_in,
            } = server.health();
            let status = match status {
                McpStatus::Starting => "starting",
                McpStatus::Ready => "ready",
                McpStatus::BackingOff => "backing_off",
                McpStatus::SignInRequired => "sign_in_required",
                McpStatus::Stopped => "stopped",
            };
            let sign_in = match sign_in {
                SignInStatus::NotAsked => None,
                SignInStatus::Required => Some("required"),
                SignInStatus::Done => Some("done"),
            };
            json!({"name": server.name(), "kind": "mcp", "status": status, "server": server_name,
                "protocol_version": protocol_version, "pid": pid, "isolation": isolation,
                "tools": tools, "warnings": warnings, "last_error": last_error,
                "restarts": restarts, "sign_in": sign_in})
        })
        .collect();
    let modules = resources.tools.modules().await.iter().map(module);
    let items: Vec<Value> = modules.chain(servers).collect();
    ok(json!({"items": items, "next_cursor": null, "has_more": false}))
}

/// A module has no long-lived process: its status says whether its methods could be started now.
fn module(health: &ModuleHealth) -> Value {
    let ModuleHealth { module, methods, isolation, warnings, last_error } = health;
    let status = if last_error.is_none() { "ready" } else { "failed" };
    let isolation = (!isolation.is_empty()).then(|| isolation.join(", "));
    json!({"name": module, "kind": "module", "status": status, "server": null,
        "protocol_version": null, "pid": null, "isolation": isolation, "tools": methods,
        "warnings": warnings, "last_error": last_error, "restarts": 0, "sign_in": null})
}
