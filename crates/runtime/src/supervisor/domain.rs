//! What confines a process: the parts in force, and the guarantees that fall away with a missing part.
//!
//! Invariant: a part is either in force or its guarantee is named as missing; `Sandbox::Required` starts
//! nothing while one is missing.

use serde::{Deserialize, Serialize};

/// How much of the sandbox a process must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    Off,
    /// Whatever this machine has; what is missing is reported.
    #[default]
    On,
    /// All of it, or the process is not started.
    Required,
}

/// The domain of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// E.g. `landlock:7`, `view`, `seccomp`, `net:off`, `rlimit`, `uid:65534`; or `off` alone.
    pub parts: Vec<String>,
    /// Each names a part and what is possible without it.
    pub missing: Vec<String>,
}

impl Domain {
    /// Without a sandbox.
    pub fn off() -> Self {
        Self { parts: vec!["off".to_owned()], missing: Vec::new() }
    }

    /// The parts in force, e.g. `landlock:7+view+seccomp+net:off+rlimit+uid:65534`.
    pub fn isolation(&self) -> String {
        self.parts.join("+")
    }

    /// Why a process that requires all parts cannot start.
    pub(super) fn refusal(&self, sandbox: Sandbox) -> Option<String> {
        let is_refused = sandbox == Sandbox::Required && !self.missing.is_empty();
        is_refused.then(|| {
            format!("`sandbox = \"required\"`, and a part is missing: {}", self.missing.join("; "))
        })
    }
}

/// Parts of the kernel to do without, for tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Without {
    pub namespaces: bool,
    /// The newest version of Landlock to use; 0 for none.
    pub landlock_above: Option<u8>,
}

impl Without {
    /// From words such as `namespaces` and `landlock:3`, separated by commas.
    pub fn parse(text: &str) -> Self {
        let mut words = text.split(',').map(str::trim);
        let landlock = |word: &str| word.strip_prefix("landlock:").and_then(|n| n.parse().ok());
        Self {
            namespaces: words.clone().any(|word| word == "namespaces"),
            landlock_above: words.find_map(landlock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_refuses_exactly_when_a_part_is_missing() {
        let whole = Domain { parts: vec!["view".into(), "seccomp".into()], missing: Vec::new() };
        let part = Domain { missing: vec!["no Landlock: x".into()], ..whole.clone() };
        assert_eq!(whole.isolation(), "view+seccomp");
        assert_eq!((whole.refusal(Sandbox::Required), part.refusal(Sandbox::On)), (None, None));
        let refusal = part.refusal(Sandbox::Required).unwrap();
        assert_eq!(refusal, "`sandbox = \"required\"`, and a part is missing: no Landlock: x");
    }

    #[test]
    fn tests_can_do_without_parts_of_the_kernel() {
        let parsed = Without::parse("namespaces, landlock:3");
        assert_eq!(parsed, Without { namespaces: true, landlock_above: Some(3) });
        assert_eq!(Without::parse(""), Without::default());
    }
}
