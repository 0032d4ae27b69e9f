//! The top-level keys of a JSON object that may break off or be malformed.
//!
//! Invariant: a key inside a nested value is not reported.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The wanted keys of a line up to where it breaks; a value that breaks is absent.
pub(super) fn keys<'a>(
    line: &'a [u8],
    wanted: &[&'static str],
) -> Vec<(&'static str, Option<&'a RawValue>)> {
    let mut head = Head { wanted, found: Vec::new() };
    let mut reader = serde_json::Deserializer::from_slice(line);
    // An error ends the reading; what came before it is kept.
    let _ = (&mut head).deserialize(&mut reader);
    head.found
}

struct Head<'a, 'w> {
    wanted: &'w [&'static str],
    found: Vec<(&'static str, Option<&'a RawValue>)>,
}

impl<'a> DeserializeSeed<'a> for &mut Head<'a, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for &mut Head<'a, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let Some(wanted) = self.wanted.iter().find(|wanted| **wanted == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            self.found.push((wanted, None));
            let value = map.next_value()?;
            self.found.pop();
            self.found.push((wanted, Some(value)));
        }
        Ok(())
    }
}
