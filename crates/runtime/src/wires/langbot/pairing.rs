//! Calls of tools that a runner tells of, and the same calls as the host carries them out.
//!
//! The SDK gives every call an id of its own and tells it beside the call, before or after it. Invariant: both
//! have one id here, so that the conversation shows one call.

use greenroom_protocol::wire::TOOL_NAME_BYTES_MAX;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};

/// Calls of one run that wait for their counterpart; further ones stay alone.
const WAITING_MAX: usize = 64;
/// Longest id of a call that is kept; a longer one stays alone.
const ID_BYTES_MAX: usize = 256;

/// The calls of one run.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// Told and not called yet: tool and id.
    told: VecDeque<(String, String)>,
    /// Called and not told yet.
    called: VecDeque<(String, String)>,
    /// Under which id the host knows a call that the runner tells of under another.
    ids: HashMap<String, String>,
}

impl Pairing {
    /// A call of a tool: the id that the runner told of it, or `fresh`.
    pub(crate) fn call(&mut self, tool: &str, fresh: impl FnOnce() -> String) -> String {
        match take(&mut self.told, tool) {
            Some(id) => id,
            None => {
                let fresh = fresh();
                keep(&mut self.called, tool, &fresh);
                fresh
            }
        }
    }

    /// What the runner tells of a call, with the id that the host has for it.
    pub(crate) fn tell(&mut self, is_start: bool, data: &RawValue) -> Option<Box<RawValue>> {
        let mut data: Map<String, Value> = serde_json::from_str(data.get()).ok()?;
        let id = data.get("tool_call_id")?.as_str()?.to_owned();
        let tool = data.get("tool_name")?.as_str()?;
        if is_start {
            match take(&mut self.called, tool) {
                Some(known) if self.ids.len() < WAITING_MAX && id.len() <= ID_BYTES_MAX => {
                    self.ids.insert(id.clone(), known);
                }
                _ => keep(&mut self.told, tool, &id),
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

    fn told(pairing: &mut Pairing, is_start: bool, id: &str) -> Option<String> {
        let data = to_raw_value(&json!({"tool_call_id": id, "tool_name": "add"})).unwrap();
        let data: Value = serde_json::from_str(pairing.tell(is_start, &data)?.get()).unwrap();
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
        assert_eq!(told(&mut pairing, true, &"u".repeat(ID_BYTES_MAX + 1)), None);
        assert!(pairing.told.is_empty());
        for _ in 0..2 * WAITING_MAX {
            call(&mut pairing, "add", "h2");
        }
        assert_eq!(pairing.called.len(), WAITING_MAX);
        assert_eq!(told(&mut pairing, true, &"u".repeat(ID_BYTES_MAX + 1)), None);
        assert!(pairing.ids.is_empty());
        for number in 0..2 * WAITING_MAX {
            call(&mut pairing, "add", "h3");
            told(&mut pairing, true, &format!("u{number}"));
        }
        assert_eq!(pairing.ids.len(), WAITING_MAX);
        for number in 0..2 * WAITING_MAX {
            told(&mut pairing, true, &format!("v{number}"));
        }
        assert_eq!(pairing.told.len(), WAITING_MAX);
    }

    #[test]
    fn a_call_that_was_told_before_keeps_its_id() {
        let mut pairing = Pairing::default();
        assert_eq!(told(&mut pairing, true, "u1"), None);
        assert_eq!(call(&mut pairing, "add", "fresh"), "u1");
        assert_eq!(told(&mut pairing, false, "u1"), None);
    }

    #[test]
    fn a_call_that_is_told_after_is_told_under_the_hosts_id() {
        let mut pairing = Pairing::default();
        assert_eq!(call(&mut pairing, "add", "h1"), "h1");
        assert_eq!(call(&mut pairing, "add", "h2"), "h2");
        assert_eq!(told(&mut pairing, true, "u1").as_deref(), Some("h1"));
        assert_eq!(told(&mut pairing, true, "u2").as_deref(), Some("h2"));
        assert_eq!(told(&mut pairing, false, "u2").as_deref(), Some("h2"));
        assert_eq!(told(&mut pairing, false, "u1").as_deref(), Some("h1"));
        assert_eq!(call(&mut pairing, "other", "h3"), "h3");
    }
}
