//! The results of all checks.

use serde::Serialize;
use std::fmt;

#[derive(Debug, Serialize)]
pub struct Report {
    pub command: Vec<String>,
    pub ok: bool,
    pub checks: Vec<Check>,
    /// The end of what the process wrote to its log.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

#[derive(Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub verdict: Verdict,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Ok,
    /// Works, but could be better.
    Warn,
    Fail,
    /// Not checked, because something before it failed.
    Skip,
}

impl Report {
    pub(super) fn new(command: &[String]) -> Self {
        Self { command: command.to_vec(), ok: true, checks: Vec::new(), stderr: String::new() }
    }

    pub(super) fn add(&mut self, name: &'static str, verdict: Verdict, detail: impl Into<String>) {
        self.ok &= verdict != Verdict::Fail;
        self.checks.push(Check { name, verdict, detail: detail.into() });
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let mark = match check.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Fail => "FAIL",
                Verdict::Skip => "skip",
            };
            let line = format!("{mark:<4}  {:<20}  {}", check.name, check.detail);
            writeln!(f, "{}", line.trim_end())?;
        }
        if !self.ok && !self.stderr.is_empty() {
            writeln!(f, "\nIts log ends with:\n{}", self.stderr.trim_end())?;
        }
        let (failed, warned) = (self.count(Verdict::Fail), self.count(Verdict::Warn));
        let checks = self.checks.len();
        writeln!(f, "\nchecks: {checks}, failed: {failed}, with a warning: {warned}")
    }
}
