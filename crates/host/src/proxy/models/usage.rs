//! Usage of a model call, in tokens and in money: as reported, or estimated.

use crate::budget::Micro;
use greenroom_models::{Model, price};
use greenroom_protocol::Object;
use serde_json::Value;

/// Bytes per token where none are reported; low, so that estimates are high.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens that one call may report at most.
const TOKENS_MAX: u64 = 1_000_000_000;
/// Cost that one call may report at most: a million dollars.
const COST_MAX: Micro = 1_000_000_000_000;

pub(super) fn cost(model: &Model, usage: &Object) -> Option<Micro> {
    let cost = model.settings().price.and_then(|price| price::cost_micro(&price, usage));
    cost.map(|cost| cost.clamp(0, COST_MAX))
}

pub(super) fn guessed(input_bytes: usize, output_bytes: usize, most_out: u64) -> Object {
    let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
    let output = tokens(output_bytes).max(most_out);
    Object::from_iter([
        ("input_tokens".to_owned(), tokens(input_bytes).into()),
        ("output_tokens".to_owned(), output.into()),
        ("estimated".to_owned(), true.into()),
    ])
}

/// An answer has used tokens: a count of zero is not a count.
pub(super) fn is_credible(usage: &Object, output_bytes: usize) -> bool {
    output_bytes == 0 || usage.get("output_tokens").and_then(Value::as_u64) != Some(0)
}

/// Plausible counts: one nonsensical row must not spoil the sums of a day.
pub(super) fn bounded(mut usage: Object) -> Object {
    for count in usage.values_mut() {
        if count.as_u64().is_some_and(|count| count > TOKENS_MAX) {
            *count = TOKENS_MAX.into();
        }
    }
    usage
}

/// Input and output together, unless both are unknown.
pub(super) fn tokens(usage: &Object) -> Option<i64> {
    let count = |key: &str| usage.get(key).and_then(Value::as_i64);
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    let parts = input.or(output).map(|_| input.unwrap_or(0).saturating_add(output.unwrap_or(0)));
    count("total_tokens").or(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_tokens_for_an_answer_that_is_there_are_no_count() {
        let said = |usage: Value, output_bytes| {
            is_credible(&usage.as_object().cloned().unwrap_or_default(), output_bytes)
        };
        assert!(!said(json!({"input_tokens": 0, "output_tokens": 0}), 5));
        assert!(!said(json!({"input_tokens": 9, "output_tokens": 0}), 5));
        assert!(said(json!({"input_tokens": 9, "output_tokens": 0}), 0));
        assert!(said(json!({"input_tokens": 9, "output_tokens": 2}), 5));
        assert!(said(json!({"input_tokens": 9}), 5));
    }
}
