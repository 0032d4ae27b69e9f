//! Health, readiness, checks and runners.

use crate::access::Caller;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::State;
use greenroom_host::ids::{rfc3339, unix_ms};
use serde_json::{Value, json};

/// Liveness.
pub(crate) async fn healthz() -> ApiResult {
    ok(json!({"status": "ok"}))
}

/// Readiness: the host accepts events, and its store responds and has space.
pub(crate) async fn readyz(State(app): State<App>) -> ApiResult {
    if app.stop.is_cancelled() {
        return Err(Problem::unavailable("the host is stopping").detail("not_ready", "host"));
    }
    let database = app.host.store().check().await;
    database.map_err(|error| Problem::from(error).detail("not_ready", "database"))?;
    ok(json!({"status": "ready"}))
}

/// Checks database, models and surfaces now; for admins, because it makes outbound requests.
pub(crate) async fn checks(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_admin()?;
    params.only(&[])?;
    let items = app.host.checks().await;
    ok(json!({"items": items, "next_cursor": null, "has_more": false}))
}

pub(crate) async fn runners(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    let items: Vec<Value> = app.host.runtime().runners().iter().map(runner_view).collect();
    let mut page = json!({"items": items, "next_cursor": null, "has_more": false});
    // Names, descriptions and errors come from the processes.
    app.host.redactor().value(&mut page);
    ok(page)
}

fn runner_view(state: &greenroom_runtime::RunnerState) -> Value {
    let runners: Vec<Value> = state
        .descriptors
        .iter()
        .map(|descriptor| {
            let mut manifest = serde_json::to_value(&descriptor.manifest).unwrap_or_default();
            manifest["name"] = descriptor.manifest.name.as_str().into();
            manifest
        })
        .collect();
    let mut view = serde_json::to_value(state).unwrap_or_default();
    if let Some(object) = view.as_object_mut() {
        object.remove("descriptors");
        object.insert("runners".to_owned(), runners.into());
        let failure = state.last_failure.as_ref();
        let failure =
            failure.map(|(at, message)| json!({"at": rfc3339(unix_ms(*at)), "message": message}));
        object.insert("last_failure".to_owned(), failure.into());
    }
    view
}
