//! The overview of the host: pending work, rates over time, and the health of models.
//!
//! Invariant: read from counted slots, never from the facts themselves; an unknown value is null, never 0.

use crate::host::Host;
use crate::ids::{now_ms, rfc3339};
use greenroom_protocol::RunStatus;
use greenroom_store::rates::percentile;
use greenroom_store::reads::deliveries::{Unsuccessful, unsuccessful};
use greenroom_store::reads::rates::{
    ModelRate, RunRate, Steps, Waiting, database_bytes, error_at, models, runs, waiting,
};
use greenroom_store::sql::Tx;
use greenroom_store::{StoreError, Sync};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The time to look back, and the length of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub minutes: i64,
    pub step_s: i64,
}

impl Window {
    pub const ALL: [Window; 3] = [
        Window { minutes: 60, step_s: 60 },
        Window { minutes: 1_440, step_s: 1_200 },
        Window { minutes: 10_080, step_s: 7_200 },
    ];

    fn count(self) -> i64 {
        self.minutes * 60 / self.step_s
    }

    /// Including the current step.
    fn steps(self, now_ms: i64) -> Steps {
        let step_ms = self.step_s * 1_000;
        let current = now_ms - now_ms.rem_euclid(step_ms);
        Steps { from_ms: current - (self.count() - 1) * step_ms, step_ms }
    }
}

/// The numbers read from the store.
struct Seen {
    waiting: Waiting,
    unsuccessful: Unsuccessful,
    bytes: i64,
    runs: Vec<RunRate>,
    models: Vec<ModelRate>,
    /// The last error of a model, with its time.
    errors: BTreeMap<String, (String, i64)>,
}

impl Host {
    /// Never fails: it says so when the store does not answer.
    pub async fn overview(&self, workspace: &str, window: Window) -> Value {
        let now_ms = now_ms();
        let steps = window.steps(now_ms);
        let workspace = workspace.to_owned();
        let seen = self.store().read(move |tx| look(tx, &workspace, steps)).await;
        if let Err(error) = &seen {
            tracing::warn!(%error, "cannot read the overview from the store");
        }
        let seen = seen.ok();
        let waits = seen.as_ref().map(|seen| seen.waiting);
        let sync = self.store().sync();
        let rates = Rates { seen: seen.as_ref(), steps, count: window.count() };
        json!({
            "now_at": rfc3339(now_ms), "minutes": window.minutes, "step_s": window.step_s,
            "host": {"version": env!("CARGO_PKG_VERSION"),
                "started_at": rfc3339(self.shared.started_at), "memory_bytes": memory_bytes(),
                "epoch": self.store().epoch()},
            "store": {"kind": if sync.is_some() { "sqlite" } else { "postgres" },
                "ok": seen.is_some(), "size_bytes": seen.as_ref().map(|seen| seen.bytes),
                "sync": sync.map(|sync| match sync {
                    Sync::Full => "full",
                    Sync::Normal => "normal",
                })},
            "queue": {"queued": waits.map(|waits| waits.queued),
                "running": waits.map(|waits| waits.running),
                "waiting_approvals": waits.map(|waits| waits.approvals),
                "deliveries_waiting": waits.map(|waits| waits.deliveries),
                "deliveries_failed": seen.as_ref().map(|seen| seen.unsuccessful.failed),
                "deliveries_unknown": seen.as_ref().map(|seen| seen.unsuccessful.unknown)},
            "series": rates.series(), "totals": rates.totals(), "models": self.models(&rates),
        })
    }

    /// Configured models, then others that were called.
    fn models(&self, rates: &Rates<'_>) -> Vec<Value> {
        let resources = self.resources();
        let mut providers: Vec<(String, Option<String>)> = Vec::new();
        for name in resources.models.names() {
            let model = resources.models.get(name);
            let provider = model.map(|model| model.settings().provider_name.clone());
            providers.push((name.to_owned(), Some(provider.unwrap_or_default())));
        }
        let called = rates.seen.map(|seen| seen.models.as_slice()).unwrap_or_default();
        for rate in called {
            if !providers.iter().any(|(name, _)| *name == rate.model) {
                providers.push((rate.model.clone(), None));
            }
        }
        let view = |(name, provider): (String, Option<String>)| {
            let calls = called.iter().filter(|rate| rate.model == name);
            let last_ok = calls.clone().filter_map(|rate| rate.last_ok_at).max();
            let error = rates.seen.and_then(|seen| seen.errors.get(&name));
            let error = error.map(|(code, at)| json!({"code": code, "at": rfc3339(*at)}));
            let mut sums = rates.seen.map_or_else(Map::new, |_| Sums::of(calls).view());
            if let Some(calls) = sums.remove("model_calls") {
                sums.insert("calls".to_owned(), calls);
            }
            let mut view = json!({"name": name, "provider": provider,
                "configured": provider.is_some(), "calls": null, "failed": null,
                "input_tokens": null, "output_tokens": null, "cost_usd": null,
                "last_ok_at": last_ok.map(rfc3339), "last_error": error});
            if let Some(view) = view.as_object_mut() {
                view.extend(sums);
            }
            view
        };
        providers.into_iter().map(view).collect()
    }
}

fn look(tx: &mut dyn Tx, workspace: &str, steps: Steps) -> Result<Seen, StoreError> {
    let models = models(tx, workspace, steps)?;
    let mut failed: BTreeMap<&str, i64> = BTreeMap::new();
    for rate in &models {
        if let Some(at) = rate.last_error_at {
            let last = failed.entry(&rate.model).or_insert(at);
            *last = at.max(*last);
        }
    }
    let mut errors = BTreeMap::new();
    for (model, at) in failed {
        if let Some(code) = error_at(tx, workspace, model, at)? {
            errors.insert(model.to_owned(), (code, at));
        }
    }
    Ok(Seen {
        waiting: waiting(tx, workspace)?,
        unsuccessful: unsuccessful(tx, workspace)?,
        bytes: database_bytes(tx)?,
        runs: runs(tx, workspace, steps)?,
        errors,
        models,
    })
}

struct Rates<'a> {
    seen: Option<&'a Seen>,
    steps: Steps,
    count: i64,
}

impl Rates<'_> {
    /// One entry per step, the current one last.
    fn series(&self) -> Vec<Value> {
        let Some(seen) = self.seen else { return Vec::new() };
        let step = |number: i64| {
            let runs = seen.runs.iter().filter(|rate| rate.step == number);
            let calls = seen.models.iter().filter(|rate| rate.step == number);
            let at = self.steps.from_ms + number * self.steps.step_ms;
            let mut entry = summary(runs, calls);
            entry.insert("at".to_owned(), rfc3339(at).into());
            Value::Object(entry)
        };
        (0..self.count).map(step).collect()
    }

    fn totals(&self) -> Option<Map<String, Value>> {
        self.seen.map(|seen| summary(seen.runs.iter(), seen.models.iter()))
    }
}

fn summary<'a>(
    runs: impl Iterator<Item = &'a RunRate>,
    calls: impl Iterator<Item = &'a ModelRate>,
) -> Map<String, Value> {
    let (mut completed, mut failed, mut cancelled) = (0, 0, 0);
    let mut grades: BTreeMap<i64, i64> = BTreeMap::new();
    for rate in runs {
        *grades.entry(rate.grade).or_default() += rate.runs;
        match RunStatus::parse(&rate.status) {
            Some(RunStatus::Completed) => completed += rate.runs,
            Some(RunStatus::Cancelled) => cancelled += rate.runs,
            _ => failed += rate.runs,
        }
    }
    let took = |share| percentile(grades.iter().map(|(grade, runs)| (*grade, *runs)), share);
    let runs = [
        ("runs", json!(completed + failed + cancelled)),
        ("completed", json!(completed)),
        ("failed", json!(failed)),
        ("cancelled", json!(cancelled)),
        ("p50_ms", json!(took(0.5))),
        ("p95_ms", json!(took(0.95))),
    ];
    let mut calls = Sums::of(calls).view();
    calls.remove("failed");
    calls.into_iter().chain(runs.into_iter().map(|(key, value)| (key.to_owned(), value))).collect()
}

/// Sums over model calls.
#[derive(Default)]
struct Sums {
    calls: i64,
    failed: i64,
    with_usage: i64,
    input: i64,
    output: i64,
    priced: i64,
    cost_micro: i64,
}

impl Sums {
    fn of<'a>(rates: impl Iterator<Item = &'a ModelRate>) -> Self {
        rates.fold(Self::default(), |sum, rate| Self {
            calls: sum.calls + rate.calls,
            failed: sum.failed + rate.failed,
            with_usage: sum.with_usage + rate.with_usage,
            input: sum.input + rate.input_tokens,
            output: sum.output + rate.output_tokens,
            priced: sum.priced + rate.priced,
            cost_micro: sum.cost_micro + rate.cost_micro,
        })
    }

    /// Without calls the sums are known: 0.
    fn view(&self) -> Map<String, Value> {
        let known = |is_known: bool, value: Value| {
            if is_known || self.calls == 0 { value } else { Value::Null }
        };
        let cost = self.cost_micro as f64 / 1_000_000.0;
        Map::from_iter([
            ("model_calls".to_owned(), self.calls.into()),
            ("failed".to_owned(), self.failed.into()),
            ("input_tokens".to_owned(), known(self.with_usage > 0, self.input.into())),
            ("output_tokens".to_owned(), known(self.with_usage > 0, self.output.into())),
            ("cost_usd".to_owned(), known(self.priced > 0, cost.into())),
        ])
    }
}

/// Resident memory of this process.
fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_with_the_one_that_is_under_way() {
        for window in Window::ALL {
            let now_ms = 1_700_000_123_456;
            let Steps { from_ms, step_ms } = window.steps(now_ms);
            let last = from_ms + (window.count() - 1) * step_ms;
            assert!(last <= now_ms && now_ms < last + step_ms, "{window:?}");
            assert_eq!(from_ms % step_ms, 0, "{window:?}");
        }
    }

    #[test]
    fn unknown_usage_is_null_not_0() {
        let call = ModelRate {
            step: 0,
            model: "m".to_owned(),
            calls: 2,
            failed: 1,
            with_usage: 0,
            input_tokens: 0,
            output_tokens: 0,
            priced: 0,
            cost_micro: 0,
            last_ok_at: None,
            last_error_at: Some(1),
        };
        let unknown = summary([].iter(), [call].iter());
        assert_eq!(unknown["input_tokens"], Value::Null);
        assert_eq!(unknown["cost_usd"], Value::Null);
        assert_eq!((&unknown["model_calls"], &unknown["p50_ms"]), (&json!(2), &Value::Null));
        let nothing = summary([].iter(), [].iter());
        assert_eq!((&nothing["cost_usd"], &nothing["runs"]), (&json!(0.0), &json!(0)));
    }
}
