//! The one place that takes secrets out of texts, before they are logged, kept or shown.
//!
//! Invariant: the value of a live secret does not pass, neither plain nor escaped, in base64 or percent-encoded;
//! texts without one pass as they are. What only looks like a secret (run tokens, keys of well-known shape)
//! keeps its public beginning and loses the rest.

mod automaton;
mod forms;
mod json;
mod patterns;
mod scan;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use patterns::RUN_TOKEN;
pub use stream::Stream;

use arc_swap::ArcSwap;
use scan::Rules;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// What stands where a secret stood.
pub const MARK: &str = "[redacted]";
/// Shorter values are words rather than secrets, and are left alone.
pub const SECRET_BYTES_MIN: usize = 8;

/// Knows the secrets that are live. Clones share what they know.
#[derive(Clone)]
pub struct Redactor {
    rules: Arc<ArcSwap<Rules>>,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

/// Tells nothing about what it knows.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor(…)")
    }
}

impl Redactor {
    /// Knows no secret yet, only what secrets look like.
    pub fn new() -> Self {
        Self { rules: Arc::new(ArcSwap::from_pointee(Rules::new(&[]))) }
    }

    /// These are the secrets from now on, also for streams that are under way.
    pub fn set_secrets(&self, secrets: &[String]) {
        self.rules.store(Arc::new(Rules::new(secrets)));
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.rules.load().text(text)
    }

    /// For a text that may have been cut: the beginning of a secret at its end is taken out as well.
    pub fn quote(&self, text: &str) -> String {
        let mut stream = self.stream();
        stream.push(text).into_owned() + &stream.flush()
    }

    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.rules.load().bytes(bytes)
    }

    /// The same JSON without secrets; nothing when it holds none.
    pub fn json(&self, json: &RawValue) -> Option<Box<RawValue>> {
        json::clean(&self.rules.load(), json)
    }

    /// Takes secrets out of the strings, names and numbers of a value.
    pub fn value(&self, value: &mut Value) {
        json::clean_value(&self.rules.load(), value);
    }

    /// Knows this host's own secrets, as they are now, and run tokens, but not what keys of others look like:
    /// for texts of people and for files, which may be about them.
    pub fn exact(&self) -> Self {
        let rules = self.rules.load().own();
        Self { rules: Arc::new(ArcSwap::from_pointee(rules)) }
    }

    /// For a text that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream::new(self.clone())
    }

    fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    fn has_changed_from(&self, rules: &Arc<Rules>) -> bool {
        !Arc::ptr_eq(&self.rules.load(), rules)
    }
}
