//! A set of methods, as written in grants, credentials and the environment of a child.
//!
//! Invariant: a name or `module.*`; an invalid pattern allows nothing.

use super::table::specs;
use std::collections::BTreeSet;

/// Methods by `module.method` or `module.*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MethodSet {
    patterns: BTreeSet<String>,
}

impl MethodSet {
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { patterns: patterns.into_iter().map(Into::into).collect() }
    }

    /// Every built-in method.
    pub fn all() -> Self {
        Self::new(specs().iter().map(|spec| spec.name()))
    }

    /// From `GREENROOM_METHODS`: names separated by commas.
    pub fn from_list(text: &str) -> Self {
        Self::new(text.split(',').map(str::trim).filter(|name| !name.is_empty()))
    }

    pub fn contains(&self, name: &str) -> bool {
        let Some((module, method)) = name.split_once('.') else { return false };
        !module.is_empty()
            && !method.is_empty()
            && (self.patterns.contains(name) || self.patterns.contains(&format!("{module}.*")))
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }
}

impl std::fmt::Display for MethodSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let patterns: Vec<&str> = self.patterns.iter().map(String::as_str).collect();
        f.write_str(&patterns.join(","))
    }
}
