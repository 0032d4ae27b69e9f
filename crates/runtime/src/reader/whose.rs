//! Whose answer a line is that cannot be read as a whole.
//!
//! Invariant: an id is believed only where it stands at the top of an answer, not inside of anything.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The id of the answer that begins like this, if it stands before where it breaks.
pub(super) fn answered(line: &[u8]) -> Option<i64> {
    let mut found = Found::default();
    let mut reader = serde_json::Deserializer::from_slice(line);
    // It cannot be read to its end; what was found before is kept.
    let _ = (&mut found).deserialize(&mut reader);
    found.id.filter(|_| !found.is_request)
}

#[derive(Default)]
struct Found {
    id: Option<i64>,
    is_request: bool,
}

impl<'de> DeserializeSeed<'de> for &mut Found {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Found {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => self.id = map.next_value::<Option<i64>>()?,
                name => {
                    self.is_request |= name == "method";
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::answered;

    #[test]
    fn the_id_of_an_answer_is_found_in_its_beginning() {
        assert_eq!(answered(br#"{"jsonrpc":"2.0","id":7,"result":{"result":"xxxx"#), Some(7));
        assert_eq!(answered(br#"{"id":7,"result":1,"error":2}"#), Some(7));
    }

    #[test]
    fn an_id_inside_of_something_or_of_a_request_is_nobodys() {
        for line in [
            &br#"{"jsonrpc":"2.0","result":{"id":7,"text":"xxx"#[..],
            br#"{"method":"state.set","id":7,"params":{"value":"xxx"#,
            br#"{"id":"7","result":"xxx"#,
            br#"[{"id":7,"result":"xxx"#,
            br#"not {"id":7}"#,
            b"",
        ] {
            assert_eq!(answered(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
