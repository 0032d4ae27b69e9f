//! Row 8: a turn of the reference agent, one at a time and 200 at once, beside the bare call of its model.
//!
//! Invariant: the model is a process of its own behind a real wire, and the bare call is the very request that
//! the host made for the agent.

use super::client::{Client, event};
use super::host::{BenchHost, Place, Setup};
use super::report::{Baseline, Budget, Measure, Unit};
use super::sample::Sample;
use super::{Plan, process};
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::task::JoinSet;

const AT_ONCE: usize = 200;
/// How often what begins in the same moment does so.
const TIMES: usize = 5;
const WARM_TURNS: usize = 20;
/// What the slow answer waits for before its first word.
const LATENCY_MS: u64 = 500;

const SCRIPT: &str = r#"
[[rule]]
when.text = "slowly"
answer = [{ wait_ms = 500 }, { text = "Here it is." }]
[[rule]]
answer = "Here it is."
"#;

pub(super) async fn measure(plan: &Plan) -> anyhow::Result<Vec<Measure>> {
    plan.note("row 8: turns of the reference agent");
    let model = ModelServer::start(&plan.dir)?;
    let setup = Setup::LocalAgent { model_url: &model.url };
    let host = BenchHost::start(&plan.dir, setup).await?;
    let turns = plan.size(1_000, 100);
    one_by_one(&host, "warm", WARM_TURNS).await?;
    let own = one_by_one(&host, "one", turns).await?;
    let request = model.last_request()?;
    let bare = bare(&model, &request, turns).await?;
    let alone = again_and_again(&host, "alone", 1).await?;
    let bare_burst = bare_at_once(&model, &model.last_request()?).await?;
    let latency = Duration::from_millis(LATENCY_MS);
    // The first time memory grows for all of them; one conversation is measured after a thousand turns.
    let first = all_at_once(&host, "first", AT_ONCE, Duration::ZERO).await?;
    let burst = again_and_again(&host, "burst", AT_ONCE).await?;
    let spread = all_at_once(&host, "spread", AT_ONCE, latency / AT_ONCE as u32).await?;
    host.stop().await?;
    let one = alone.percentile_ms(50);
    let more = format!(
        "; {TIMES} times, once more before that {:.1} ms, with {:.0} kB of host and runner memory per run; the same {AT_ONCE} requests by themselves {:.1} ms",
        first.times.percentile_ms(50),
        first.memory_per_run / 1e3,
        bare_burst.percentile_ms(50)
    );
    let crowd = |how: &str, times: &Sample, limit: f64, more: &str| Measure {
        row: 8,
        what: format!(
            "{AT_ONCE} conversations at once, {how}, model {LATENCY_MS} ms, p50 of a turn"
        ),
        unit: Unit::Milliseconds,
        budget: Budget::AtMost(limit * one),
        measured: times.percentile_ms(50),
        baseline: Some(Baseline { what: "one conversation", value: one }),
        detail: format!("slowest {:.1} ms{more}", times.percentile_ms(100)),
    };
    let added = own.percentile_ms(50) - bare.percentile_ms(50);
    Ok(vec![
        Measure {
            row: 8,
            what: "time that runner and host add to a turn, one at a time, p50".to_owned(),
            unit: Unit::Milliseconds,
            budget: Budget::AtMost(5.0),
            measured: added,
            baseline: Some(Baseline {
                what: "the same request by itself",
                value: bare.percentile_ms(50),
            }),
            detail: format!(
                "turn p50 {:.3} ms, p99 {:.3} ms; request alone p99 {:.3} ms; {turns} turns",
                own.percentile_ms(50),
                own.percentile_ms(99),
                bare.percentile_ms(99)
            ),
        },
        crowd("each from its own moment on", &spread.times, 1.1, ""),
        crowd("all in the same moment", &burst, 1.5, &more),
    ])
}

/// Turns one after another, each in a conversation of its own, so that every request is the same.
async fn one_by_one(host: &BenchHost, name: &str, turns: usize) -> anyhow::Result<Sample> {
    let mut client = Client::connect(&host.place).await?;
    let mut times = Vec::with_capacity(turns);
    for number in 0..turns {
        let followed = client.follow(&event(&format!("{name}-{number}"), "Say it.")).await?;
        times.push(followed.took);
    }
    Ok(times.into_iter().collect())
}

async fn bare(model: &ModelServer, request: &str, turns: usize) -> anyhow::Result<Sample> {
    let mut client = Client::connect(&model.place()?).await?;
    let mut times = Vec::with_capacity(turns);
    for _ in 0..turns {
        times.push(client.streamed("/v1/chat/completions", request).await?);
    }
    Ok(times.into_iter().collect())
}

/// What the machine takes for that many requests in the same moment with nobody in between.
async fn bare_at_once(model: &ModelServer, request: &str) -> anyhow::Result<Sample> {
    let mut senders = JoinSet::new();
    for _ in 0..AT_ONCE {
        let mut client = Client::connect(&model.place()?).await?;
        let request = request.to_owned();
        senders.spawn(async move { client.streamed("/v1/chat/completions", &request).await });
    }
    let times = senders.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    Ok(times.into_iter().collect())
}

/// Conversations that begin in the same moment, several times one after another.
async fn again_and_again(
    host: &BenchHost,
    name: &str,
    conversations: usize,
) -> anyhow::Result<Sample> {
    let mut all = Sample::default();
    for number in 0..TIMES {
        let name = format!("{name}-{number}");
        all.extend(all_at_once(host, &name, conversations, Duration::ZERO).await?.times);
    }
    Ok(all)
}

struct Crowd {
    times: Sample,
    /// Bytes that host and runner grew by while all were open, for each.
    memory_per_run: f64,
}

/// Every conversation begins `apart` after the one before it.
async fn all_at_once(
    host: &BenchHost,
    name: &str,
    conversations: usize,
    apart: Duration,
) -> anyhow::Result<Crowd> {
    let before = memory(host);
    let mut senders = JoinSet::new();
    for number in 0..conversations {
        let mut client = Client::connect(&host.place).await?;
        let event = event(&format!("{name}-{number}"), "Say it slowly.");
        let wait = apart * u32::try_from(number)?;
        senders.spawn(async move {
            tokio::time::sleep(wait).await;
            anyhow::Ok(client.follow(&event).await?.took)
        });
    }
    // With all in the same moment, all wait for the model now.
    tokio::time::sleep(Duration::from_millis(LATENCY_MS * 3 / 5)).await;
    let grown = memory(host).saturating_sub(before);
    let mut times = Vec::with_capacity(conversations);
    while let Some(took) = senders.join_next().await {
        times.push(took??);
    }
    ensure!(times.len() == conversations, "{} of {conversations} turns ended", times.len());
    Ok(Crowd {
        times: times.into_iter().collect(),
        memory_per_run: grown as f64 / conversations as f64,
    })
}

/// Resident memory of the host and its runners.
fn memory(host: &BenchHost) -> u64 {
    process::family(host.pid()).iter().filter_map(|pid| process::resident(*pid).ok()).sum()
}

/// `greenroom dev model-server`; process and folder are gone with the value.
struct ModelServer {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl ModelServer {
    #[expect(clippy::disallowed_methods, reason = "the model is a process of its own")]
    fn start(dir: &Path) -> anyhow::Result<Self> {
        let folder = dir.join(format!("greenroom-bench-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("script.toml"), SCRIPT)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["dev", "model-server", "--script", "script.toml", "--log", "log"]);
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a model server")?;
        let mut url = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut url)?;
        }
        Ok(Self { child, folder, url: url.trim().to_owned() })
    }

    fn place(&self) -> anyhow::Result<Place> {
        let address = self.url.strip_prefix("http://").context("the model's address")?.parse()?;
        Ok(Place { address, token: "any".to_owned() })
    }

    /// The body of the last request so far.
    fn last_request(&self) -> anyhow::Result<String> {
        let log = std::fs::read_to_string(self.folder.join("log"))?;
        let last = log.lines().last().context("the model was not asked")?;
        let line: serde_json::Value = serde_json::from_str(last)?;
        Ok(line["body"].to_string())
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // Fails only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
