//! Row 4: a running runner asks the host for a value, one call after another and many at once.

use super::Plan;
use super::client::{Client, event};
use super::host::{BenchHost, Setup};
use super::pipe::Pipe;
use super::report::{Baseline, Budget, Measure, Unit};
use anyhow::Context;
use serde::Deserialize;

/// What echo tells in its answer.
#[derive(Deserialize)]
struct Calls {
    calls: u64,
    p50_us: f64,
    p99_us: f64,
    at_once: u64,
    per_s: f64,
}

pub(super) async fn measure(plan: &Plan) -> anyhow::Result<Vec<Measure>> {
    plan.note("row 4: calls from a run");
    let text = format!("/calls n={} at_once=64", plan.size(50_000, 5_000));
    let bare = Calls::read(&Pipe::start()?.run(&text)?.message, "/params/data/message/content")?;
    let host = BenchHost::start(&plan.dir, Setup::Agent { sync: "full" }).await?;
    host.warm(20).await?;
    let mut client = Client::connect(&host.place).await?;
    let seen = client.follow(&event("calls", &text)).await?.message;
    let data = seen.rsplit_once("\ndata: ").context("a frame has no data")?.1;
    let found = Calls::read(data, "/data/message/content")?;
    host.stop().await?;
    let baseline = |value| Some(Baseline { what: "bare pipe", value });
    Ok(vec![
        Measure {
            row: 4,
            what: "`state.get` from a run, one after another, p50".to_owned(),
            unit: Unit::Microseconds,
            budget: Budget::AtMost(80.0),
            measured: found.p50_us,
            baseline: baseline(bare.p50_us),
            detail: format!("p99 {:.1} µs, {} calls", found.p99_us, found.calls),
        },
        Measure {
            row: 4,
            what: format!("`state.get` from a run, {} at once", found.at_once),
            unit: Unit::PerSecond,
            budget: Budget::AtLeast(20_000.0),
            measured: found.per_s,
            baseline: baseline(bare.per_s),
            detail: format!("{} calls", found.calls),
        },
    ])
}

impl Calls {
    /// Reads the text of a message that is JSON itself.
    fn read(message: &str, pointer: &str) -> anyhow::Result<Self> {
        let message: serde_json::Value = serde_json::from_str(message)?;
        let text = message.pointer(pointer).and_then(|text| text.as_str());
        Ok(serde_json::from_str(text.context("the runner gave no numbers")?)?)
    }
}
