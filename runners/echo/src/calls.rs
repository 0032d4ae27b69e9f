//! The mode that measures a host from inside a run: sequential calls, then concurrent ones.
//!
//! Invariant: every call is awaited; times are measured on this side of the wire.

use crate::options::Options;
use greenroom_sdk::{AgentAPIError, RunCtx, RunFailure};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Calls `state.get` `n` times sequentially and `n` times with `at_once` open calls, and reports the times.
pub(crate) async fn calls(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    let mut took = Vec::new();
    for _ in 0..options.n {
        let begin = Instant::now();
        get(ctx, options).await?;
        took.push(begin.elapsed());
    }
    let begin = Instant::now();
    let done = at_once(ctx, options).await?;
    let seconds = begin.elapsed().as_secs_f64();
    took.sort_unstable();
    let report = json!({
        "calls": options.n,
        "p50_us": micros(&took, 50),
        "p99_us": micros(&took, 99),
        "at_once": options.at_once,
        "per_s": if seconds > 0.0 { done as f64 / seconds } else { 0.0 },
    });
    ctx.message(report.to_string()).await
}

/// Each caller has one open call at a time; returns the number of calls.
async fn at_once(ctx: &RunCtx, options: &Options) -> Result<u64, RunFailure> {
    let callers = options.at_once.max(1);
    let each = options.n / callers;
    let mut open = JoinSet::new();
    for _ in 0..callers {
        let (ctx, scope, key) = (ctx.clone(), options.scope, options.key.clone());
        open.spawn(async move {
            for _ in 0..each {
                ctx.state().get(scope, &key).await?;
            }
            Ok::<_, AgentAPIError>(())
        });
    }
    while let Some(ended) = open.join_next().await {
        ended??;
    }
    Ok(each * callers)
}

async fn get(ctx: &RunCtx, options: &Options) -> Result<(), AgentAPIError> {
    ctx.state().get(options.scope, &options.key).await.map(drop)
}

fn micros(sorted: &[Duration], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e6)
}
