//! Whether sources have listed their tools: a run that begins while servers start waits for them.
//!
//! Invariant: only a first start is waited for, each server for a limited time; a source that failed, is slow or
//! is disconnected blocks no run.

use super::Toolbox;
use greenroom_runtime::RunnerStatus;
use std::time::Duration;
use tokio::time::Instant;

/// Between two checks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Toolbox {
    /// Whether the tools of these grant patterns are known, or will not be soon. `patience` is how long the start
    /// of a server may take before runs continue without it.
    pub fn is_settled(&self, patterns: &[String], patience: Duration) -> bool {
        if patterns.is_empty() {
            return true;
        }
        let mut servers = self.servers.iter().filter(|server| server.is_awaited(patience));
        if servers.any(|server| reaches(patterns, server.name())) {
            return false;
        }
        // A runner need not offer tools; one that restarts has listed them before.
        let runners = self.runtime.runners();
        !runners.iter().any(|runner| {
            // One that is ready may still be about to list.
            let is_quiet = match runner.status {
                RunnerStatus::Starting => true,
                RunnerStatus::Ready => !runner.tools_listed,
                _ => false,
            };
            runner.restarts == 0 && is_quiet && reaches(patterns, &runner.name)
        })
    }

    /// Waits until the tools of these patterns are known, or the time is up.
    pub async fn settled(&self, patterns: &[String], patience: Duration) {
        let deadline = Instant::now() + patience;
        while !self.is_settled(patterns, patience) && Instant::now() < deadline {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Whether one of the patterns names a tool of this source.
fn reaches(patterns: &[String], source: &str) -> bool {
    patterns.iter().any(|pattern| {
        let rest = pattern.strip_prefix(source);
        pattern == "*" || rest.is_some_and(|rest| rest.starts_with('.'))
    })
}
