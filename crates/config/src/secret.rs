//! A secret value.
//!
//! Invariant: never empty, and never printed by `Debug` or `Display`.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone)]
pub struct Secret {
    text: String,
    /// The file it was read from, which is hidden from runners.
    file: Option<PathBuf>,
}

impl Secret {
    /// `None` when the text is empty: an empty secret protects nothing.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self { text, file: None })
    }

    /// The same secret, read from this file.
    pub fn read_from(self, file: PathBuf) -> Self {
        Self { file: Some(file), ..self }
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// Ignores the source of the secret.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
