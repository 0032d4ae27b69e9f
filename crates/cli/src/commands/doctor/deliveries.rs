//! Counts of undelivered deliveries.

use super::finding;
use crate::client::{Client, Error};
use serde_json::Value;

/// The largest number that the host counts to.
const COUNTED_MAX: i64 = 10_000;

pub(super) async fn look(client: &Client) -> Value {
    let overview: Result<Value, Error> = client.get(&["v1", "overview"], &[]).await;
    match overview {
        Ok(overview) => counted(&overview["queue"]),
        Err(error) => finding("deliveries", false, &error.to_string()),
    }
}

fn counted(queue: &Value) -> Value {
    let count = |key: &str| queue[key].as_i64().unwrap_or(0);
    let (failed, unknown) = (count("deliveries_failed"), count("deliveries_unknown"));
    let mut parts = Vec::new();
    if failed > 0 {
        parts.push(format!(
            "{} given up or refused: `greenroom deliveries retry --failed` sends them again",
            shown(failed)
        ));
    }
    if unknown > 0 {
        parts.push(format!(
            "{} with an unknown outcome: see `greenroom deliveries list --status unknown`",
            shown(unknown)
        ));
    }
    if parts.is_empty() {
        let waiting = shown(count("deliveries_waiting"));
        return finding("deliveries", true, &format!("none given up, {waiting} waiting"));
    }
    finding("deliveries", false, &parts.join("; "))
}

fn shown(count: i64) -> String {
    match count {
        COUNTED_MAX.. => format!("at least {COUNTED_MAX}"),
        count => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn deliveries_that_did_not_arrive_are_a_problem_with_its_command() {
        let queue =
            json!({"deliveries_waiting": 3, "deliveries_failed": 0, "deliveries_unknown": 0});
        let expected =
            json!({"what": "deliveries", "ok": true, "found": "none given up, 3 waiting"});
        assert_eq!(counted(&queue), expected);
        let queue = json!({"deliveries_failed": 10_000, "deliveries_unknown": 2});
        let expected = json!({"what": "deliveries", "ok": false, "found": "at least 10000 given up or \
            refused: `greenroom deliveries retry --failed` sends them again; 2 with an unknown outcome: \
            see `greenroom deliveries list --status unknown`"});
        assert_eq!(counted(&queue), expected);
    }
}
