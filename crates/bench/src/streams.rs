//! Row 9: five hundred open streams, slow readers among them, and what they cost everybody else.
//!
//! Invariant: every stream that is read gets every delta, and the terminal of its run.

use super::client::{Client, event};
use super::host::{AGENT, BenchHost, Setup};
use super::report::{Baseline, Budget, Measure, Unit};
use super::sample::Sample;
use super::{Plan, process};
use anyhow::{Context, ensure};
use tokio::task::JoinSet;

/// Readers of one run's results, those that never read, and AG-UI clients with a run of their own.
const READERS: usize = 300;
const SLOW: usize = 50;
const AGUI: usize = 150;
const DELTAS: usize = 2_000;
const DELAY_MS: usize = 5;
const MEGABYTE: f64 = 1e6;

pub(super) async fn measure(plan: &Plan) -> anyhow::Result<Vec<Measure>> {
    plan.note("row 9: five hundred open streams");
    let host = BenchHost::start(&plan.dir, Setup::Agent { sync: "normal" }).await?;
    host.warm(200).await?;
    let runs = plan.size(1_000, 200);
    let alone = one_by_one(&host, runs).await?;
    let before = process::resident(host.pid())? as f64 / MEGABYTE;
    let open = Open::begin(&host).await?;
    let among = one_by_one(&host, runs).await?;
    let resident = process::resident(host.pid())? as f64 / MEGABYTE;
    open.end().await?;
    host.stop().await?;
    let clients = READERS + SLOW + AGUI;
    let p50 = |times: &Sample| times.percentile_ms(50);
    Ok(vec![
        Measure {
            row: 9,
            what: format!("event to answer, one at a time, p50, beside {clients} open streams"),
            unit: Unit::Milliseconds,
            budget: Budget::AtMost(2.0),
            measured: p50(&among),
            baseline: Some(Baseline { what: "no open streams", value: p50(&alone) }),
            detail: format!(
                "p99 {:.3} ms, without streams {:.3} ms; {READERS} read {} deltas a second each, \
                 {SLOW} never read, {AGUI} wait in AG-UI; sync normal, {runs} runs",
                among.percentile_ms(99),
                alone.percentile_ms(99),
                1_000 / DELAY_MS
            ),
        },
        Measure {
            row: 9,
            what: format!("resident memory with {clients} open streams"),
            unit: Unit::Megabytes,
            budget: Budget::AtMost(60.0),
            measured: resident,
            baseline: Some(Baseline { what: "no open streams", value: before }),
            detail: "every stream that was read got everything".to_owned(),
        },
    ])
}

async fn one_by_one(host: &BenchHost, runs: usize) -> anyhow::Result<Sample> {
    let mut client = Client::connect(&host.place).await?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        times.push(client.follow(&event("one", "hi")).await?.took);
    }
    Ok(times.into_iter().collect())
}

/// Streams that are open until `end`.
struct Open {
    readers: JoinSet<anyhow::Result<usize>>,
    /// Kept and never read again.
    _idle: Vec<Client>,
    host: Client,
    run_id: String,
}

impl Open {
    async fn begin(host: &BenchHost) -> anyhow::Result<Self> {
        let mut client = Client::connect(&host.place).await?;
        let text = format!("/count n={DELTAS} delay_ms={DELAY_MS}");
        let (_, answer) = client.call("POST", "/v1/events", &event("streams", &text)).await?;
        let run_id = answer["run_id"].as_str().context("no run id")?.to_owned();
        let path = format!("/v1/runs/{run_id}/results");
        let mut readers = JoinSet::new();
        let mut idle = Vec::new();
        for number in 0..READERS + SLOW {
            let mut reader = Client::connect(&host.place).await?;
            reader.open("GET", &path, "").await?;
            if number < READERS {
                readers.spawn(async move { Ok(reader.rest().await?.deltas) });
            } else {
                idle.push(reader);
            }
        }
        for number in 0..AGUI {
            let mut reader = Client::connect(&host.place).await?;
            let input = serde_json::json!({
                "threadId": format!("agui-{number}"), "runId": format!("agui-{number}"),
                "protocolVersion": "1.0", "state": {}, "tools": [], "context": [],
                "forwardedProps": {},
                "messages": [{ "id": "m", "role": "user", "content": "/hang" }],
            });
            reader.open("POST", &format!("/v1/agui/{AGENT}"), &input.to_string()).await?;
            idle.push(reader);
        }
        Ok(Self { readers, _idle: idle, host: client, run_id })
    }

    /// Waits until the run is over; every reader has seen all of it.
    async fn end(mut self) -> anyhow::Result<()> {
        while let Some(seen) = self.readers.join_next().await {
            let seen = seen??;
            ensure!(seen == DELTAS, "a reader saw {seen} of {DELTAS} deltas");
        }
        let (_, run) = self.host.call("GET", &format!("/v1/runs/{}", self.run_id), "").await?;
        ensure!(run["status"] == "completed", "the run did not complete: {run}");
        Ok(())
    }
}
