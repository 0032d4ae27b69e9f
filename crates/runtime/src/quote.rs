//! Texts of runners, redacted and cut for messages.
//!
//! Invariant: secrets are redacted before the cut, since a part of one would not be recognised.

use std::fmt;
use std::sync::Arc;

/// Redacts secrets in a text, and the beginning of one at its end.
#[derive(Clone)]
pub struct Cleaner(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl Cleaner {
    pub fn new(clean: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(clean))
    }

    /// The beginning of a text.
    pub(crate) fn quote(&self, text: &str, chars_max: usize) -> String {
        (self.0)(text).chars().take(chars_max).collect()
    }
}

/// Redacts nothing.
impl Default for Cleaner {
    fn default() -> Self {
        Self::new(str::to_owned)
    }
}

impl fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cleaner(…)")
    }
}
