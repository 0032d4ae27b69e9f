//! The secrets that were in force since the host started.
//!
//! Invariant: a secret that was replaced stays one, as runs that are under way may still hold it.

use greenroom_host::Redactor;

/// Secrets that are remembered; the oldest go first.
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

    /// From now on these are kept out of all output as well.
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
