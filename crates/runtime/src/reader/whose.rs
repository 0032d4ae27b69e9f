//! Whose answer a line is that cannot be read as a whole, and whether it is one at all.
//!
//! Invariant: a key is believed only where it stands at the top of a line, not inside of anything.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The id of the answer that begins like this, if it stands before where it breaks.
pub(super) fn answered(line: &[u8]) -> Option<i64> {
    let found = Found::of(line);
    found.id.filter(|_| !found.is_request)
}

/// Whether this is what a LangBot plugin meant as a message or as a piece of one, however it is spelled.
pub(super) fn is_plugins(line: &[u8]) -> bool {
    Found::of(line).is_plugins
}

#[derive(Default)]
struct Found {
    id: Option<i64>,
    is_request: bool,
    is_plugins: bool,
}

impl Found {
    fn of(line: &[u8]) -> Self {
        let mut found = Found::default();
        let mut reader = serde_json::Deserializer::from_slice(line);
        // It cannot be read to its end; what was found before is kept.
        let _ = (&mut found).deserialize(&mut reader);
        found
    }
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
                "type" => {
                    let kind = map.next_value::<Value>()?;
                    self.is_plugins |= kind.as_str().is_some_and(|kind| kind.starts_with("chunk_"));
                }
                name => {
                    self.is_request |= name == "method";
                    self.is_plugins |= name == "seq_id";
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{answered, is_plugins};

    #[test]
    fn the_id_of_an_answer_is_found_in_its_beginning() {
        assert_eq!(answered(br#"{"jsonrpc":"2.0","id":7,"result":{"result":"xxxx"#), Some(7));
        assert_eq!(answered(br#"{"id":7,"result":1,"error":2}"#), Some(7));
    }

    #[test]
    fn a_message_of_a_plugin_is_known_however_it_is_spelled() {
        for line in [
            &br#"{"seq_id":1,"code":0,"data":{"a"#[..],
            br#"{ "code" : 0, "seq_id" : "x" }"#,
            br#"{"type":"chunk_start","total_size":-1}"#,
            br#"{"type": "chunk_data", "data": "xxx"#,
            br#"{"offset":0,"type":"chunk_data","data":"xxx"#,
        ] {
            assert!(is_plugins(line), "{}", String::from_utf8_lossy(line));
        }
        for line in [
            &br#"{"level":"info","data":{"seq_id":1,"type":"chunk_start"}"#[..],
            br#"{"type":"log","text":"chunk_start"#,
            br#"{'seq_id': 1}"#,
            b"{",
        ] {
            assert!(!is_plugins(line), "{}", String::from_utf8_lossy(line));
        }
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
