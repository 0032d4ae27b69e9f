//! Redaction: the one place that removes secrets from texts before they are logged, stored or shown.
//!
//! Invariant: the value of a live secret does not pass, neither plain nor escaped, in base64 or percent-encoded;
//! texts without secrets are unchanged. What only looks like a secret (run tokens, keys of well-known shape)
//! keeps its public prefix and loses the rest.

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
use std::sync::{Arc, Mutex, PoisonError};

/// Replaces a secret.
pub const MARK: &str = "[redacted]";
/// Shorter values are words rather than secrets, and are not redacted.
pub const SECRET_BYTES_MIN: usize = 8;

/// Secrets learned while running that are remembered; the oldest are dropped first.
const LEARNED_MAX: usize = 200;

/// Knows the secrets in use. Clones share them.
#[derive(Clone)]
pub struct Redactor {
    rules: Arc<ArcSwap<Rules>>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    configured: Vec<String>,
    /// From elsewhere, such as tokens of servers. The newest are the last.
    learned: Vec<String>,
}

impl Known {
    fn rules(&self) -> Rules {
        Rules::new(&[&self.configured[..], &self.learned].concat())
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows no secret.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor(…)")
    }
}

impl Redactor {
    /// Knows no secret yet, only their patterns.
    pub fn new() -> Self {
        Self::with(Rules::new(&[]))
    }

    fn with(rules: Rules) -> Self {
        Self { rules: Arc::new(ArcSwap::from_pointee(rules)), known: Arc::default() }
    }

    /// Replaces the set of configured secrets, also for open streams.
    pub fn set_secrets(&self, secrets: &[String]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.configured = secrets.to_vec();
        self.rules.store(Arc::new(known.rules()));
    }

    /// Adds secrets that were not configured.
    pub fn learn(&self, secrets: Vec<String>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.learned.retain(|learned| !secrets.contains(learned));
        known.learned.extend(secrets);
        let surplus = known.learned.len().saturating_sub(LEARNED_MAX);
        known.learned.drain(..surplus);
        self.rules.store(Arc::new(known.rules()));
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.rules.load().text(text)
    }

    /// For a text that may have been cut: the beginning of a secret at its end is removed as well.
    pub fn quote(&self, text: &str) -> String {
        let mut stream = self.stream();
        stream.push(text).into_owned() + &stream.flush()
    }

    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.rules.load().bytes(bytes)
    }

    /// The same JSON without secrets; none if it holds no secret.
    pub fn json(&self, json: &RawValue) -> Option<Box<RawValue>> {
        json::clean(&self.rules.load(), json)
    }

    /// Removes secrets from the strings, names and numbers of a value.
    pub fn value(&self, value: &mut Value) {
        json::clean_value(&self.rules.load(), value);
    }

    /// Knows the current secrets of this host and run tokens, but not the patterns of other keys: for texts of
    /// people and for files, which may be about such keys.
    pub fn exact(&self) -> Self {
        Self::with(self.rules.load().own())
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
