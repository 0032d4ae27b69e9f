//! Pairs tool calls that a runner reports with the calls that it makes.
//!
//! The SDK gives every call an id of its own and reports it apart from the call, before or after it.
//! Invariant: both get one id, so that the conversation shows one call.

use greenroom_protocol::wire::TOOL_NAME_BYTES_MAX;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};

/// Calls of one run that wait for their counterpart; further ones are not paired.
const WAITING_MAX: usize = 64;
/// Longest id that is kept; a longer one is not paired.
const ID_BYTES_MAX: usize = 256;

/// The calls of one run.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// Reported and not called yet: tool and id.
    reported: VecDeque<(String, String)>,
    /// Called and not reported yet.
    called: VecDeque<(String, String)>,
    /// The host's id by the id that the runner reports.
    ids: HashMap<String, String>,
}

impl Pairing {
    /// A tool call: returns the id that the runner has reported for it, or `fresh`.
    pub(crate) fn call(&mut self, tool: &str, fresh: impl FnOnce() -> String) -> String {
        match take(&mut self.reported, tool) {
            Some(id) => id,
            None => {
                let fresh = fresh();
                keep(&mut self.called, tool, &fresh);
                fresh
            }
        }
    }

    /// A report of a call: returns it with the host's id, if that differs.
    pub(crate) fn report(&mut self, is_start: bool, data: &RawValue) -> Option<Box<RawValue>> {
        let mut data: Map<String, Value> = serde_json::from_str(data.get()).ok()?;
        let id = data.get("tool_call_id")?.as_str()?.to_owned();
        let tool = data.get("tool_name")?.as_str()?;
        if is_start {
            match take(&mut self.called, tool) {
                Some(known) if self.ids.len() < WAITING_MAX && id.len() <= ID_BYTES_MAX => {
                    self.ids.insert(id.clone(), known);
                }
                _ => keep(&mut self.reported, tool, &id),
            }
        }
        let known = match is_start {
            true => self.ids.get(&id).cloned(),
            false => self.ids.remove(&id),
        };
        data.insert("tool_call_id".to_owned(), known?.into());
        to_raw_value(&data).ok()
    }
}

fn take(waiting: &mut VecDeque<(String, String)>, tool: &str) -> Option<String> {
    let at = waiting.iter().position(|(name, _)| name == tool)?;
    waiting.remove(at).map(|(_, id)| id)
}

fn keep(waiting: &mut VecDeque<(String, String)>, tool: &str, id: &str) {
    let fits = tool.len() <= TOOL_NAME_BYTES_MAX && id.len() <= ID_BYTES_MAX;
    if fits && waiting.len() < WAITING_MAX {
        waiting.push_back((tool.to_owned(), id.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(pairing: &mut Pairing, is_start: bool, id: &str) -> Option<String> {
        let data = to_raw_value(&json!({"tool_call_id": id, "tool_name": "add"})).unwrap();
        let data: Value = serde_json::from_str(pairing.report(is_start, &data)?.get()).unwrap();
        Some(data["tool_call_id"].as_str().unwrap().to_owned())
    }

    fn call(pairing: &mut Pairing, tool: &str, fresh: &str) -> String {
        pairing.call(tool, || fresh.to_owned())
    }

    #[test]
    fn names_and_ids_of_any_length_and_number_are_not_kept() {
        let mut pairing = Pairing::default();
        let long = "n".repeat(TOOL_NAME_BYTES_MAX + 1);
        assert_eq!(call(&mut pairing, &long, "h1"), "h1");
        assert!(pairing.called.is_empty());
        assert_eq!(report(&mut pairing, true, &"u".repeat(ID_BYTES_MAX + 1)), None);
        assert!(pairing.reported.is_empty());
        for _ in 0..2 * WAITING_MAX {
            call(&mut pairing, "add", "h2");
        }
        assert_eq!(pairing.called.len(), WAITING_MAX);
        assert_eq!(report(&mut pairing, true, &"u".repeat(ID_BYTES_MAX + 1)), None);
        assert!(pairing.ids.is_empty());
        for number in 0..2 * WAITING_MAX {
            call(&mut pairing, "add", "h3");
            report(&mut pairing, true, &format!("u{number}"));
        }
        assert_eq!(pairing.ids.len(), WAITING_MAX);
        for number in 0..2 * WAITING_MAX {
            report(&mut pairing, true, &format!("v{number}"));
        }
        assert_eq!(pairing.reported.len(), WAITING_MAX);
    }

    #[test]
    fn a_call_that_was_told_before_keeps_its_id() {
        let mut pairing = Pairing::default();
        assert_eq!(report(&mut pairing, true, "u1"), None);
        assert_eq!(call(&mut pairing, "add", "fresh"), "u1");
        assert_eq!(report(&mut pairing, false, "u1"), None);
    }

    #[test]
    fn a_call_that_is_told_after_is_told_under_the_hosts_id() {
        let mut pairing = Pairing::default();
        assert_eq!(call(&mut pairing, "add", "h1"), "h1");
        assert_eq!(call(&mut pairing, "add", "h2"), "h2");
        assert_eq!(report(&mut pairing, true, "u1").as_deref(), Some("h1"));
        assert_eq!(report(&mut pairing, true, "u2").as_deref(), Some("h2"));
        assert_eq!(report(&mut pairing, false, "u2").as_deref(), Some("h2"));
        assert_eq!(report(&mut pairing, false, "u1").as_deref(), Some("h1"));
        assert_eq!(call(&mut pairing, "other", "h3"), "h3");
    }
}
