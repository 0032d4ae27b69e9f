//! A row as one line of JSON: `[1,"text",null,{"base64":"aGk="}]`.
//!
//! Invariant: a row has one line, and the line gives the row back.

use crate::sql::Cell;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Adds the line of a row, with its line feed.
pub(super) fn write(cells: &[Cell], out: &mut String) {
    out.push('[');
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match cell {
            Cell::Null => out.push_str("null"),
            Cell::Int(value) => out.push_str(&value.to_string()),
            Cell::Text(text) => out.push_str(&Value::from(text.as_str()).to_string()),
            Cell::Blob(bytes) => {
                out.push_str("{\"base64\":\"");
                STANDARD.encode_string(bytes, out);
                out.push_str("\"}");
            }
        }
    }
    out.push_str("]\n");
}

pub(super) fn read(line: &str) -> Result<Vec<Cell>, &'static str> {
    let values: Vec<Value> = serde_json::from_str(line).map_err(|_| "it is not a list in JSON")?;
    values.into_iter().map(cell).collect()
}

fn cell(value: Value) -> Result<Cell, &'static str> {
    match value {
        Value::Null => Ok(Cell::Null),
        Value::Number(number) => {
            number.as_i64().map(Cell::Int).ok_or("a number in it is not an integer of 64 bits")
        }
        Value::String(text) => Ok(Cell::Text(text)),
        Value::Object(object) => {
            let text = object.get("base64").and_then(Value::as_str).filter(|_| object.len() == 1);
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            bytes.map(Cell::Blob).ok_or("an object in it is not `{\"base64\": …}`")
        }
        Value::Bool(_) | Value::Array(_) => Err("a value in it has no type of a column"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_cell() -> impl Strategy<Value = Cell> {
        prop_oneof![
            Just(Cell::Null),
            any::<i64>().prop_map(Cell::Int),
            any::<String>().prop_map(Cell::Text),
            any::<Vec<u8>>().prop_map(Cell::Blob),
        ]
    }

    proptest! {
        #[test]
        fn a_line_gives_its_row_back(cells in proptest::collection::vec(any_cell(), 0..8)) {
            let mut line = String::new();
            write(&cells, &mut line);
            prop_assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?}");
            prop_assert_eq!(read(&line), Ok(cells));
        }

        #[test]
        fn whatever_is_read_does_no_harm(line in "\\PC{0,80}") {
            let _ = read(&line);
        }
    }

    #[test]
    fn a_row_is_written_as_the_format_says() {
        let cells = [
            Cell::Int(-7),
            Cell::Text("a \"b\"\n".to_owned()),
            Cell::Null,
            Cell::Blob(b"hi".to_vec()),
        ];
        let mut line = String::new();
        write(&cells, &mut line);
        assert_eq!(line, "[-7,\"a \\\"b\\\"\\n\",null,{\"base64\":\"aGk=\"}]\n");
        for bad in ["", "{}", "[1.5]", "[true]", "[[]]", "[{}]", "[{\"base64\":\"?\"}]", "[1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
