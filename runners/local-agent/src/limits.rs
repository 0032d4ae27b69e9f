//! Limits of a run: tokens, cost, time, and failing calls.
//!
//! Invariant: limits apply to this run only; each has its own code and a message for the user. Whether to stop is
//! checked before whether to warn.

use crate::config::Config;
use crate::texts::Texts;
use crate::tools::PROJECT_CLI;
use greenroom_sdk::{ModelToolCall, Object, RunFailure, Value};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The same call may fail this often before the model is warned.
const SAME_FAILURES: u32 = 3;
/// The number of recent calls for the error rate, and how many of them may fail.
const WINDOW: usize = 10;
const FAILURES_IN_WINDOW: usize = 8;

pub(crate) struct Limits {
    started: Instant,
    max_time: Option<Duration>,
    max_tokens: Option<u64>,
    max_cost_usd: Option<f64>,
    usage: Object,
    failures: HashMap<String, u32>,
    recent: VecDeque<bool>,
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

    /// Records the outcome of a call. `Some` is a warning for the model.
    pub(crate) fn note(
        &mut self,
        call: &ModelToolCall,
        failed: bool,
    ) -> Result<Option<String>, RunFailure> {
        self.recent.push_back(failed);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        let written = call.args_text.clone().unwrap_or_else(|| call.args.to_string());
        let same = format!("{} {written}", call.name);
        if !failed {
            self.failures.remove(&same);
            return Ok(None);
        }
        let times = self.failures.entry(same).or_default();
        *times += 1;
        if *times > SAME_FAILURES {
            let message = self.texts.repeated_failure(&called(call));
            return Err(RunFailure::new("loop.repeated_failure", message));
        }
        let failures = self.recent.iter().filter(|failed| **failed).count();
        if self.recent.len() == WINDOW && failures >= FAILURES_IN_WINDOW {
            return Err(RunFailure::new("loop.error_cascade", self.texts.error_cascade()));
        }
        Ok((*times == SAME_FAILURES).then(|| {
            format!(
                "this exact call has failed {SAME_FAILURES} times: change it or do without; \
                 repeating it ends the run"
            )
        }))
    }
}

/// The name of the called tool, or method of the project CLI.
fn called(call: &ModelToolCall) -> String {
    let word = |key: &str| call.args.get(key).and_then(Value::as_str);
    match (word("module"), word("method")) {
        (Some(module), Some(method)) if call.name == PROJECT_CLI => format!("{module}.{method}"),
        _ => call.name.clone(),
    }
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

    fn code(noted: Result<Option<String>, RunFailure>) -> String {
        match noted {
            Ok(None) => "fine".to_owned(),
            Ok(Some(_)) => "warned".to_owned(),
            Err(failure) => failure.code,
        }
    }

    #[test]
    fn a_repeatedly_failing_call_causes_a_warning_and_then_stops_the_run() {
        let mut limits = limits(&Config::default());
        let mut note = || code(limits.note(&call(json!({"n": 1})), true));
        let verdicts = [note(), note(), note(), note()];
        assert_eq!(verdicts, ["fine", "fine", "warned", "loop.repeated_failure"]);
    }

    #[test]
    fn a_success_resets_the_failures_of_that_call() {
        let mut limits = limits(&Config::default());
        for failed in [true, true, false, true, true] {
            assert_eq!(code(limits.note(&call(json!({})), failed)), "fine");
        }
        assert_eq!(code(limits.note(&call(json!({})), true)), "warned");
    }

    #[test]
    fn many_different_failing_calls_stop_the_run() {
        let mut limits = limits(&Config::default());
        let mut verdicts = (0..40).map(|n| code(limits.note(&call(json!({"n": n})), true)));
        assert!(verdicts.any(|verdict| verdict == "loop.error_cascade"));
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
