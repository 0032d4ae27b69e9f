//! All secrets in use since the host started.
//!
//! Invariant: a replaced secret is still redacted, because active runs may hold it.

use greenroom_host::Redactor;

/// Remembered secrets; the oldest are dropped first.
const SECRETS_MAX: usize = 1000;

pub(crate) struct Secrets {
    redactor: Redactor,
    /// The newest are the last.
    known: Vec<String>,
}

impl Secrets {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, known: Vec::new() }
    }

    /// Adds secrets to redact from all output.
    pub(crate) fn add(&mut self, secrets: Vec<String>) {
        self.known.retain(|known| !secrets.contains(known));
        self.known.extend(secrets);
        let surplus = self.known.len().saturating_sub(SECRETS_MAX);
        self.known.drain(..surplus);
        self.redactor.set_secrets(&self.known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_secrets_stay_secret() {
        let redactor = Redactor::new();
        let mut secrets = Secrets::new(redactor.clone());
        secrets.add(vec!["the-first-one".to_owned()]);
        secrets.add(vec!["the-second-one".to_owned()]);
        assert_eq!(redactor.text("the-first-one the-second-one"), "[redacted] [redacted]");
    }
}
