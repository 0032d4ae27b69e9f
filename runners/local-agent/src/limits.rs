//! Limits of a run: tokens, cost, time, and failing calls.
//!
//! Invariant: limits apply to this run only; each has its own code and a message for the user. Whether to stop is
//! checked before whether to warn. Failures are counted by rounds, so the model sees every error before they stop it.

use crate::config::Config;
use crate::texts::Texts;
use crate::tools::method;
use greenroom_sdk::{ModelToolCall, Object, RunFailure, Value};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The same call may fail in this many rounds before the model is warned.
const SAME_FAILURES: u32 = 3;
/// The number of recent rounds for the error rate, and how many of them may fail. The same share of its calls makes a
/// round fail.
const WINDOW: usize = 10;
const FAILURES_IN_WINDOW: usize = 8;
/// Failing calls in a row that stop the run, unless all of them are in its first failing round.
const FAILURES_IN_A_ROW: usize = 40;

pub(crate) struct Limits {
    started: Instant,
    max_time: Option<Duration>,
    max_tokens: Option<u64>,
    max_cost_usd: Option<f64>,
    usage: Object,
    failures: HashMap<String, u32>,
    recent: VecDeque<bool>,
    /// Calls that failed since the last one that did not, and the rounds they were in.
    calls_failed: usize,
    rounds_failed: usize,
    texts: Texts,
}

impl Limits {
    pub(crate) fn new(config: &Config, texts: Texts) -> Self {
        Self {
            started: Instant::now(),
            max_time: (config.max_seconds > 0).then(|| Duration::from_secs(config.max_seconds)),
            max_tokens: (config.max_tokens_per_run > 0).then_some(config.max_tokens_per_run),
            max_cost_usd: (config.max_cost_usd > 0.0).then_some(config.max_cost_usd),
            usage: Object::new(),
            failures: HashMap::new(),
            recent: VecDeque::new(),
            calls_failed: 0,
            rounds_failed: 0,
            texts,
        }
    }

    /// Adds the usage of a turn.
    pub(crate) fn count(&mut self, usage: &Object) {
        for (key, value) in usage {
            let sum = match (self.usage.get(key), value.as_u64()) {
                (sum, Some(more)) => {
                    (sum.and_then(Value::as_u64).unwrap_or(0).saturating_add(more)).into()
                }
                (sum, None) => match value.as_f64() {
                    Some(more) => (sum.and_then(Value::as_f64).unwrap_or(0.0) + more).into(),
                    None => continue,
                },
            };
            self.usage.insert(key.clone(), sum);
        }
    }

    pub(crate) fn usage(&self) -> &Object {
        &self.usage
    }

    /// Whether another request may be sent.
    pub(crate) fn check(&self) -> Result<(), RunFailure> {
        let texts = &self.texts;
        if self.time_left().is_some_and(|left| left.is_zero()) {
            return Err(RunFailure::new("limit.time", texts.time_limit_reached()));
        }
        let number = |key: &str| self.usage.get(key).and_then(Value::as_u64);
        let tokens = number("total_tokens").or_else(|| {
            Some(number("input_tokens")?.saturating_add(number("output_tokens").unwrap_or(0)))
        });
        if self.max_tokens.zip(tokens).is_some_and(|(max, used)| used >= max) {
            return Err(RunFailure::new("limit.tokens", texts.token_limit_reached()));
        }
        let cost = self.usage.get("cost_usd").and_then(Value::as_f64);
        match self.max_cost_usd.zip(cost).is_some_and(|(max, spent)| spent >= max) {
            true => Err(RunFailure::new("limit.cost", texts.cost_limit_reached())),
            false => Ok(()),
        }
    }

    /// The remaining time; `None` without a limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        Some(self.max_time?.saturating_sub(self.started.elapsed()))
    }

    pub(crate) fn time_is_up(&self) -> RunFailure {
        RunFailure::new("limit.time", self.texts.time_limit_reached())
    }

    /// Records the outcomes of the calls of one answer. `Some` is a warning for the model, in the result of that call.
    pub(crate) fn note_round(
        &mut self,
        calls: &[ModelToolCall],
        failed: &[bool],
    ) -> Result<Vec<Option<String>>, RunFailure> {
        let failures = failed.iter().filter(|failed| **failed).count();
        self.recent.push_back(failures * WINDOW >= failed.len() * FAILURES_IN_WINDOW);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        match failures == failed.len() {
            true => {
                (self.calls_failed, self.rounds_failed) =
                    (self.calls_failed + failures, self.rounds_failed + 1)
            }
            false => (self.calls_failed, self.rounds_failed) = (0, 0),
        }
        let mut noted: HashMap<String, Option<String>> = HashMap::new();
        for (call, failed) in calls.iter().zip(failed) {
            let same = same_call(call);
            if !failed {
                self.failures.remove(&same);
            } else if let Entry::Vacant(first) = noted.entry(same) {
                let warning = self.note_failure(call, first.key())?;
                first.insert(warning);
            }
        }
        let failures = self.recent.iter().filter(|failed| **failed).count();
        let is_steady = self.recent.len() == WINDOW && failures >= FAILURES_IN_WINDOW;
        if is_steady || (self.rounds_failed > 1 && self.calls_failed >= FAILURES_IN_A_ROW) {
            return Err(RunFailure::new("loop.error_cascade", self.texts.error_cascade()));
        }
        // Each warning is given once.
        Ok(calls.iter().map(|call| noted.remove(&same_call(call)).flatten()).collect())
    }

    /// One more round in which a call failed.
    fn note_failure(
        &mut self,
        call: &ModelToolCall,
        same: &str,
    ) -> Result<Option<String>, RunFailure> {
        let rounds = self.failures.entry(same.to_owned()).or_default();
        *rounds += 1;
        if *rounds > SAME_FAILURES {
            let message = self.texts.repeated_failure(&called(call));
            return Err(RunFailure::new("loop.repeated_failure", message));
        }
        Ok((*rounds == SAME_FAILURES).then(|| {
            format!(
                "this exact call has failed {SAME_FAILURES} times: change it or do without; \
                 repeating it ends the run"
            )
        }))
    }
}

fn same_call(call: &ModelToolCall) -> String {
    let written = call.args_text.clone().unwrap_or_else(|| call.args.to_string());
    format!("{} {written}", call.name)
}

/// The name of the called tool, or method of the project CLI.
fn called(call: &ModelToolCall) -> String {
    method(call).unwrap_or_else(|| call.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn call(args: Value) -> ModelToolCall {
        let name = "shop.buy".to_owned();
        ModelToolCall { id: "1".to_owned(), name, args, args_text: None, args_error: None }
    }

    fn limits(config: &Config) -> Limits {
        Limits::new(config, Texts::for_text("hello"))
    }

    /// One call per round.
    fn note(limits: &mut Limits, args: Value, failed: bool) -> String {
        match limits.note_round(&[call(args)], &[failed]) {
            Ok(warnings) if warnings == [None] => "fine".to_owned(),
            Ok(_) => "warned".to_owned(),
            Err(failure) => failure.code,
        }
    }

    #[test]
    fn a_repeatedly_failing_call_causes_a_warning_and_then_stops_the_run() {
        let mut limits = limits(&Config::default());
        let mut note = || note(&mut limits, json!({"n": 1}), true);
        let verdicts = [note(), note(), note(), note()];
        assert_eq!(verdicts, ["fine", "fine", "warned", "loop.repeated_failure"]);
    }

    #[test]
    fn a_success_resets_the_failures_of_that_call() {
        let mut limits = limits(&Config::default());
        for failed in [true, true, false, true, true] {
            assert_eq!(note(&mut limits, json!({}), failed), "fine");
        }
        assert_eq!(note(&mut limits, json!({}), true), "warned");
    }

    #[test]
    fn many_different_failing_rounds_stop_the_run() {
        let mut limits = limits(&Config::default());
        let verdicts: Vec<String> =
            (0..10).map(|n| note(&mut limits, json!({"n": n}), true)).collect();
        assert_eq!(verdicts[8..], ["fine", "loop.error_cascade"]);
    }

    #[test]
    fn the_calls_of_one_answer_are_one_failure() {
        let mut limits = limits(&Config::default());
        let same = vec![call(json!({})); 10];
        let other: Vec<ModelToolCall> = (0..10).map(|n| call(json!({"n": n}))).collect();
        assert_eq!(limits.note_round(&same, &[true; 10]).unwrap(), vec![None; 10]);
        assert_eq!(limits.note_round(&other, &[true; 10]).unwrap(), vec![None; 10]);
        let warned = limits.note_round(&same, &[true; 10]).unwrap();
        assert_eq!(warned, vec![None; 10]);
        // The fortieth failing call in a row.
        let halted = limits.note_round(&other, &[true; 10]).unwrap_err();
        assert_eq!(halted.code, "loop.error_cascade");
    }

    #[test]
    fn tokens_are_summed_and_unknown_usage_stays_unknown() {
        let config = Config { max_tokens_per_run: 100, ..Config::default() };
        let mut limits = limits(&config);
        assert!(limits.usage().is_empty());
        let usage = json!({"input_tokens": 40, "output_tokens": 10, "cost_usd": 0.5});
        let usage = usage.as_object().cloned().unwrap_or_default();
        limits.count(&usage);
        assert!(limits.check().is_ok());
        limits.count(&usage);
        assert_eq!(limits.usage()["input_tokens"], 80);
        assert_eq!(limits.usage()["cost_usd"], 1.0);
        assert_eq!(limits.check().map_err(|failure| failure.code), Err("limit.tokens".to_owned()));
    }
}
