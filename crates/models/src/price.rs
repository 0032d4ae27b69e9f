//! The cost of a call, from its usage and the configured prices.
//!
//! Invariant: unknown usage means unknown cost, never 0; a cost is never rounded down.

use crate::Price;
use greenroom_protocol::Object;
use serde_json::Value;

/// Largest floating-point error, in micro-dollars.
const NOISE: f64 = 1e-6;

/// Millionths of a US dollar. `None` unless input and output are both known.
///
/// A price per million tokens in dollars is the price of one token in micro-dollars. Cached input without a price
/// of its own costs as much as input.
pub fn cost_micro(price: &Price, usage: &Object) -> Option<i64> {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let (input, output) = (count("input_tokens")?, count("output_tokens")?);
    let cached = count("cached_input_tokens").unwrap_or(0).min(input);
    let written = count("cache_write_input_tokens").unwrap_or(0).min(input - cached);
    let plain = input - cached - written;
    let cost = plain as f64 * price.input
        + cached as f64 * price.cached_input.unwrap_or(price.input)
        + written as f64 * price.cache_write.unwrap_or(price.input)
        + output as f64 * price.output;
    // NaN and overflows saturate.
    Some((cost - NOISE).ceil().max(0.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cost(price: Price, usage: Value) -> Option<i64> {
        cost_micro(&price, usage.as_object().unwrap())
    }

    const PRICE: Price =
        Price { input: 3.0, output: 15.0, cached_input: Some(0.3), cache_write: Some(3.75) };

    #[test]
    fn every_kind_of_token_has_its_price() {
        let usage = json!({
            "input_tokens": 1000, "output_tokens": 100,
            "cached_input_tokens": 600, "cache_write_input_tokens": 200,
        });
        // 200 × 3 + 600 × 0.3 + 200 × 3.75 + 100 × 15
        assert_eq!(cost(PRICE, usage.clone()), Some(600 + 180 + 750 + 1500));
        let plain = Price { cached_input: None, cache_write: None, ..PRICE };
        assert_eq!(cost(plain, usage), Some(3000 + 1500));
        assert_eq!(
            cost(PRICE, json!({"input_tokens": 1_000_000, "output_tokens": 0})),
            Some(3_000_000)
        );
    }

    #[test]
    fn unknown_usage_has_no_cost_and_fractions_round_up() {
        assert_eq!(cost(PRICE, json!({})), None);
        assert_eq!(cost(PRICE, json!({"total_tokens": 9})), None);
        assert_eq!(cost(PRICE, json!({"input_tokens": 9})), None);
        let cheap = Price { input: 0.1, output: 0.1, ..Price::default() };
        assert_eq!(cost(cheap, json!({"input_tokens": 1, "output_tokens": 0})), Some(1));
        assert_eq!(cost(cheap, json!({"input_tokens": 1000, "output_tokens": 0})), Some(100));
        assert_eq!(cost(Price::default(), json!({"input_tokens": 5, "output_tokens": 5})), Some(0));
    }

    #[test]
    fn contradictory_counts_are_safe() {
        let usage = json!({
            "input_tokens": 10, "output_tokens": u64::MAX,
            "cached_input_tokens": 50, "cache_write_input_tokens": 50,
        });
        assert_eq!(cost(PRICE, usage), Some(i64::MAX));
    }
}
