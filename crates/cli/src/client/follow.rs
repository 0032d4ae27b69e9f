//! Follows the results of a run to its end, with reconnects.
//!
//! Invariant: every result once and in order; a new connection resumes after the last sequence number.

use super::sse::Parser;
use super::{Client, Error, Stream, waits};
use crate::failure::Failure;
use crate::output;
use crate::reading::Reading;
use greenroom_protocol::result::kind;
use greenroom_protocol::{AgentRunResult, RunError, RunStatus, RunView};
use std::pin::pin;
use std::time::{Duration, Instant};

/// How long the host may be unreachable before the command fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Silence after which the command looks up what the run waits for.
const QUIET: Duration = Duration::from_millis(1_000);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How a run ended.
#[derive(Debug)]
pub struct End {
    pub run_id: String,
    pub status: RunStatus,
    pub error: Option<RunError>,
}

impl From<RunView> for End {
    fn from(run: RunView) -> Self {
        Self { run_id: run.run_id, status: run.status, error: run.error }
    }
}

impl End {
    /// From the terminal result.
    fn by(terminal: AgentRunResult) -> Self {
        let status = match terminal.kind.as_str() {
            kind::RUN_COMPLETED => RunStatus::Completed,
            _ => RunStatus::Failed,
        };
        let error = serde_json::from_value(terminal.data.into()).ok();
        Self { run_id: terminal.run_id, status, error }
    }
}

/// Passes every result above `after` to the reader and returns how the run ended.
pub async fn follow(
    client: &Client,
    run_id: &str,
    after: i64,
    reading: &mut Reading,
) -> Result<End, Failure> {
    let mut last = after;
    let (mut pause, mut quiet_since, mut is_reported) = (PAUSE_MIN, Instant::now(), false);
    loop {
        let before = last;
        let end = match connection(client, run_id, &mut last, reading).await {
            Ok(Some(terminal)) => {
                // A stopping host waits for its runs and their readers, and no longer.
                let run = client.run(run_id).await.ok().filter(|run| !run.status.is_open());
                return Ok(run.map_or_else(|| End::by(terminal), End::from));
            }
            Ok(None) => client.run(run_id).await.map_err(Broken::from),
            Err(broken) => Err(broken),
        };
        if last > before {
            (pause, quiet_since, is_reported) = (PAUSE_MIN, Instant::now(), false);
        }
        let has_patience = quiet_since.elapsed() < PATIENCE;
        match end {
            Ok(run) if run.status.is_open() => {}
            Ok(run) if run.last_sequence <= last || !has_patience => return Ok(run.into()),
            Ok(_) => {}
            Err(Broken::Lost(_)) if has_patience => {
                if !std::mem::replace(&mut is_reported, true) {
                    output::note("warning: lost the connection to the host, reconnecting");
                }
            }
            Err(Broken::Lost(error)) => return Err(error.into()),
            Err(Broken::Final(failure)) => return Err(failure),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Why a connection broke, and whether to reconnect.
enum Broken {
    Lost(Error),
    Final(Failure),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        match error.is_passing() {
            true => Broken::Lost(error),
            false => Broken::Final(error.into()),
        }
    }
}

/// Reads one connection to its end, or to the terminal result.
async fn connection(
    client: &Client,
    run_id: &str,
    last: &mut i64,
    reading: &mut Reading,
) -> Result<Option<AgentRunResult>, Broken> {
    let mut stream = client.stream(&["v1", "runs", run_id, "results"], *last).await?;
    let mut parser = Parser::default();
    while let Some(bytes) = next(client, run_id, *last > 0, &mut stream, reading).await? {
        for frame in parser
            .push(bytes.as_ref())
            .map_err(|error| Broken::Final(anyhow::Error::new(error).into()))?
        {
            let Ok(result) = serde_json::from_str::<AgentRunResult>(&frame.data) else { continue };
            let number = frame.id.as_deref().and_then(|id| id.parse().ok()).or(result.sequence);
            if number.is_some_and(|number| number <= *last) {
                continue;
            }
            reading.take(&result).map_err(Broken::Final)?;
            *last = number.unwrap_or(*last);
            if matches!(result.kind.as_str(), kind::RUN_COMPLETED | kind::RUN_FAILED) {
                return Ok(Some(result));
            }
        }
    }
    Ok(None)
}

/// The next bytes; during silence, reports what the run waits for.
async fn next(
    client: &Client,
    run_id: &str,
    has_results: bool,
    stream: &mut Stream,
    reading: &mut Reading,
) -> Result<Option<impl AsRef<[u8]> + use<>>, Broken> {
    let mut next = pin!(stream.chunk());
    let mut is_looked_at = reading.is_watched();
    loop {
        if !is_looked_at {
            return Ok(next.await?);
        }
        if let Ok(chunk) = tokio::time::timeout(QUIET, &mut next).await {
            return Ok(chunk?);
        }
        // A token that may not read this only follows the answer.
        match waits::look(client, run_id, has_results).await {
            Ok(waits) => reading.waits(&waits, &client.option()).map_err(Broken::Final)?,
            Err(error) => is_looked_at = error.is_passing(),
        }
    }
}
