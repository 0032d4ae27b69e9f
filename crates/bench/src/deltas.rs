//! Row 5: how many small deltas reach one subscriber in a second.

use super::Plan;
use super::client::{Client, event};
use super::host::{BenchHost, Setup};
use super::pipe::Pipe;
use super::report::{Baseline, Budget, Measure, Unit};
use anyhow::ensure;

pub(super) async fn measure(plan: &Plan) -> anyhow::Result<Vec<Measure>> {
    plan.note("row 5: deltas to a subscriber");
    let deltas = plan.size(1_000_000, 200_000);
    let text = format!("/count n={deltas}");
    let bare = Pipe::start()?.run(&text)?;
    ensure!(bare.deltas == deltas, "{} of {deltas} deltas came through the pipe", bare.deltas);
    let host = BenchHost::start(&plan.dir, Setup::Agent { sync: "full" }).await?;
    host.warm(20).await?;
    let mut client = Client::connect(&host.place).await?;
    let seen = client.follow(&event("deltas", &text)).await?;
    ensure!(seen.deltas == deltas, "{} of {deltas} deltas came to the subscriber", seen.deltas);
    host.stop().await?;
    Ok(vec![Measure {
        row: 5,
        what: "deltas through the host to a subscriber".to_owned(),
        unit: Unit::PerSecond,
        budget: Budget::AtLeast(200_000.0),
        measured: deltas as f64 / seen.took.as_secs_f64(),
        baseline: Some(Baseline {
            what: "bare pipe",
            value: deltas as f64 / bare.took.as_secs_f64(),
        }),
        detail: format!("{deltas} deltas, sync full, all stored"),
    }])
}
