//! Health, readiness, checks, runners and metrics.

use crate::access::Caller;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use greenroom_host::ids::{rfc3339, unix_ms};
use greenroom_host::metrics::Metrics;
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Prometheus text format.
pub(crate) async fn metrics(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    let text = render(app.host.metrics());
    let mut response: Response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

fn render(metrics: &Metrics) -> String {
    let mut out = String::new();
    let counters: [(&str, &str, &AtomicU64); 11] = [
        ("events_accepted_total", "Events accepted.", &metrics.events_accepted),
        ("events_repeated_total", "Duplicate events.", &metrics.events_repeated),
        (
            "events_refused_total",
            "Events rejected because their lane was full.",
            &metrics.events_refused,
        ),
        ("results_total", "Results received.", &metrics.results),
        ("proxy_calls_total", "Runner calls.", &metrics.proxy_calls),
        ("proxy_refusals_total", "Runner calls that were rejected.", &metrics.proxy_refusals),
        ("deliveries_done_total", "Deliveries done.", &metrics.deliveries_done),
        ("deliveries_failed_total", "Deliveries rejected or given up.", &metrics.deliveries_failed),
        (
            "deliveries_unknown_total",
            "Deliveries with an unknown outcome.",
            &metrics.deliveries_unknown,
        ),
        (
            "deliveries_retried_total",
            "Failed delivery attempts that are retried.",
            &metrics.deliveries_retried,
        ),
        ("run_milliseconds_total", "Total duration of ended runs.", &metrics.run_ms),
    ];
    for (name, help, counter) in counters {
        let value = counter.load(Ordering::Relaxed);
        let _ = writeln!(
            out,
            "# HELP greenroom_{name} {help}\n# TYPE greenroom_{name} counter\ngreenroom_{name} {value}"
        );
    }
    out.push_str("# HELP greenroom_runs_ended_total Runs ended.\n# TYPE greenroom_runs_ended_total counter\n");
    for status in RunStatus::ended() {
        let (name, value) = (status.as_str(), metrics.runs_ended(status));
        let _ = writeln!(out, "greenroom_runs_ended_total{{status=\"{name}\"}} {value}");
    }
    let open = metrics.runs_open();
    let _ = writeln!(
        out,
        "# HELP greenroom_runs_open Runs queued or running.\n# TYPE greenroom_runs_open gauge\ngreenroom_runs_open {open}"
    );
    out
}
