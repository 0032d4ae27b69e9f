//! Tool names in the form that every API accepts (`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`), and back.
//!
//! Invariant: two tools never share a name on the wire, and the name of a tool does not depend on the order of
//! the others, so that prompt caches stay valid.

use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Names {
    to_wire: BTreeMap<String, String>,
    originals: BTreeMap<String, String>,
}

impl Names {
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let mut candidates: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            *candidates.entry(mangled(name)).or_default() += 1;
        }
        let mut this = Self::default();
        for name in &names {
            let candidate = mangled(name);
            let is_unique = candidates.get(&candidate) == Some(&1);
            let wire = match *name == candidate || is_unique {
                true => candidate,
                // Another tool may be named like this hash on purpose: then the next hash is tried.
                false => (0u32..)
                    .map(|salt| with_hash(&candidate, &format!("{name}{salt}")))
                    .find(|wire| {
                        !candidates.contains_key(wire) && !this.originals.contains_key(wire)
                    })
                    .unwrap_or(candidate),
            };
            this.originals.insert(wire.clone(), (*name).to_owned());
            this.to_wire.insert((*name).to_owned(), wire);
        }
        this
    }

    pub(crate) fn to_wire(&self, name: &str) -> String {
        self.to_wire.get(name).cloned().unwrap_or_else(|| mangled(name))
    }

    /// An unknown name is returned as the model wrote it.
    pub(crate) fn original(&self, wire: &str) -> String {
        self.originals.get(wire).cloned().unwrap_or_else(|| wire.to_owned())
    }
}

fn mangled(name: &str) -> String {
    let replaced = |c: char| match c.is_ascii_alphanumeric() || c == '_' || c == '-' {
        true => c,
        false => '_',
    };
    let mut wire: String = name.chars().map(replaced).collect();
    if !wire.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        wire.insert(0, '_');
    }
    match wire.len() > NAME_BYTES_MAX {
        true => with_hash(&wire, name),
        false => wire,
    }
}

fn with_hash(wire: &str, name: &str) -> String {
    let hash: String =
        Sha256::digest(name.as_bytes())[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let room = NAME_BYTES_MAX - hash.len() - 1;
    format!("{}_{hash}", &wire[..wire.len().min(room)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_characters_are_replaced_and_restored() {
        let names = Names::new(["fs.read", "server/tool", "plain-name_1", "9lives", "日历"]);
        for (name, wire) in [
            ("fs.read", "fs_read"),
            ("server/tool", "server_tool"),
            ("plain-name_1", "plain-name_1"),
            ("9lives", "_9lives"),
            ("日历", "__"),
        ] {
            assert_eq!(names.to_wire(name), wire);
            assert_eq!(names.original(wire), name);
        }
        assert_eq!(names.original("never_offered"), "never_offered");
    }

    #[test]
    fn colliding_names_get_a_hash_and_a_valid_name_is_kept() {
        let names = Names::new(["fs.read", "fs/read", "fs_read"]);
        assert_eq!(names.to_wire("fs_read"), "fs_read");
        let (dot, slash) = (names.to_wire("fs.read"), names.to_wire("fs/read"));
        assert!(dot.starts_with("fs_read_") && slash.starts_with("fs_read_") && dot != slash);
        assert_eq!(names.original(&dot), "fs.read");
        assert_eq!(names.original(&slash), "fs/read");
        assert_eq!(names, Names::new(["fs_read", "fs/read", "fs.read"]));
    }

    #[test]
    fn a_tool_named_like_the_hash_of_another_gets_only_its_own_calls() {
        let hashed = Names::new(["fs.read", "fs/read"]).to_wire("fs.read");
        let names = Names::new(["fs.read", "fs/read", hashed.as_str()]);
        assert_eq!(names.original(&names.to_wire("fs.read")), "fs.read");
        assert_eq!(names.original(&hashed), hashed);
    }

    #[test]
    fn long_names_that_differ_at_the_end_stay_distinct() {
        let (a, b) = (format!("{}a", "x".repeat(80)), format!("{}b", "x".repeat(80)));
        let names = Names::new([a.as_str(), b.as_str()]);
        assert_ne!(names.to_wire(&a), names.to_wire(&b));
        assert_eq!(names.to_wire(&a).len(), 64);
    }

    proptest! {
        #[test]
        fn every_set_of_names_is_reversible_and_valid(
            list in proptest::collection::btree_set("[a-b./é_-]{0,6}|[a.]{60,70}", 0..12)
        ) {
            let names = Names::new(list.iter().map(String::as_str));
            for name in &list {
                let wire = names.to_wire(name);
                prop_assert_eq!(&names.original(&wire), name);
                prop_assert!(!wire.is_empty() && wire.len() <= 64);
                prop_assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            }
        }
    }
}
