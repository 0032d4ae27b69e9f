//! Token usage in one form for all providers.
//!
//! Invariant: a count that the provider did not report is absent, never 0. `input_tokens` includes cached and newly
//! cached input; `output_tokens` includes reasoning.

use greenroom_protocol::Object;
use serde_json::Value;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) total: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

impl Usage {
    /// `None` if nothing is known.
    pub(crate) fn to_object(self) -> Option<Object> {
        let sum = self.input.zip(self.output).map(|(input, output)| input.saturating_add(output));
        let fields = [
            ("input_tokens", self.input),
            ("output_tokens", self.output),
            ("total_tokens", self.total.or(sum)),
            ("cached_input_tokens", self.cached),
            ("cache_write_input_tokens", self.cache_write),
            ("reasoning_tokens", self.reasoning),
        ];
        let known = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let object: Object =
            known.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        (!object.is_empty()).then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_total_defaults_to_the_sum() {
        let usage = Usage { input: Some(3), output: Some(4), ..Usage::default() };
        assert_eq!(
            usage.to_object().map(Value::Object),
            Some(json!({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}))
        );
        let given = Usage { total: Some(9), ..usage };
        assert_eq!(given.to_object().unwrap()["total_tokens"], 9);
    }

    #[test]
    fn unknown_counts_are_absent_and_zero_is_kept() {
        assert_eq!(Usage::default().to_object(), None);
        let half = Usage { input: Some(3), cached: Some(0), ..Usage::default() };
        assert_eq!(
            half.to_object().map(Value::Object),
            Some(json!({"input_tokens": 3, "cached_input_tokens": 0}))
        );
    }
}
