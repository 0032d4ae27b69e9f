//! `/metrics`: counters and histograms in Prometheus' text format.
//!
//! Invariant: names follow its conventions (base units, `_total` for counters), and a metric keeps its name and
//! meaning once it was published.

use crate::access::Caller;
use crate::query::Params;
use crate::response::ApiResult;
use crate::router::App;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use greenroom_host::metrics::{BOUNDS_S, Histogram, Metrics, Snapshot};
use greenroom_protocol::RunStatus;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) async fn metrics(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    params.only(&[])?;
    let mut response: Response = render(app.host.metrics()).into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

fn render(metrics: &Metrics) -> String {
    let mut out = String::new();
    for (name, help, counter) in counters(metrics) {
        let value = counter.load(Ordering::Relaxed);
        head(&mut out, name, help, "counter");
        let _ = writeln!(out, "greenroom_{name} {value}");
    }
    head(&mut out, "runs_ended_total", "Runs ended, by status.", "counter");
    for status in RunStatus::ended() {
        let (name, value) = (status.as_str(), metrics.runs_ended(status));
        let _ = writeln!(out, "greenroom_runs_ended_total{{status=\"{name}\"}} {value}");
    }
    head(&mut out, "runs_open", "Runs queued or running.", "gauge");
    let _ = writeln!(out, "greenroom_runs_open {}", metrics.runs_open());
    for (name, help, histogram) in histograms(metrics) {
        head(&mut out, name, help, "histogram");
        buckets(&mut out, name, &histogram.snapshot());
    }
    head(&mut out, "build_info", "The version that runs, as a label.", "gauge");
    let _ = writeln!(out, "greenroom_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    out
}

fn counters(metrics: &Metrics) -> [(&'static str, &'static str, &AtomicU64); 11] {
    [
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
        ("model_tokens_total", "Tokens that models reported.", &metrics.model_tokens),
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
    ]
}

fn histograms(metrics: &Metrics) -> [(&'static str, &'static str, &Histogram); 6] {
    [
        ("run_wait_seconds", "Time from acceptance to start of a run.", &metrics.run_wait),
        ("run_duration_seconds", "Time from start to end of a run.", &metrics.run_duration),
        ("proxy_call_duration_seconds", "Time of a runner call.", &metrics.proxy_call_duration),
        ("model_call_duration_seconds", "Time of a model call.", &metrics.model_call_duration),
        ("tool_call_duration_seconds", "Time of a tool call.", &metrics.tool_call_duration),
        (
            "delivery_attempt_duration_seconds",
            "Time of an attempt to deliver.",
            &metrics.delivery_attempt_duration,
        ),
    ]
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP greenroom_{name} {help}\n# TYPE greenroom_{name} {kind}");
}

fn buckets(out: &mut String, name: &str, snapshot: &Snapshot) {
    let Snapshot { cumulative, count, sum_s } = snapshot;
    for (bound, upto) in BOUNDS_S.iter().zip(cumulative) {
        let _ = writeln!(out, "greenroom_{name}_bucket{{le=\"{bound}\"}} {upto}");
    }
    let _ = writeln!(out, "greenroom_{name}_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(out, "greenroom_{name}_sum {sum_s}\ngreenroom_{name}_count {count}");
}
