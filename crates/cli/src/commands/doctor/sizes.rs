//! How much the store keeps.

use super::finding;
use greenroom_objects::Place;
use greenroom_store::reads::sizes::{Precision, Sizes, TableSize};
use serde_json::{Value, json};

/// One line: the database, and its tables that hold something.
pub(super) fn told(sizes: &Sizes) -> Value {
    let tables = sizes.tables.iter().filter(|table| table.rows > 0).map(|table| {
        let sign = match table.precision {
            Precision::Exact => "",
            Precision::About => "about ",
            Precision::AtLeast => "more than ",
        };
        format!("{} {sign}{}", table.name, table.rows)
    });
    let tables: Vec<String> = tables.collect();
    let tables = if tables.is_empty() { "nothing yet".to_owned() } else { tables.join(", ") };
    finding("sizes", true, &format!("database {}; {tables}", in_units(sizes.database_bytes)))
}

/// Where the bytes of artifacts are, and how many.
pub(super) fn artifacts(place: &Place, sizes: Option<&Sizes>) -> Value {
    let kept = sizes.map_or(0, |sizes| sizes.artifact_bytes);
    finding("artifacts", true, &format!("{place}; {}", in_units(kept)))
}

pub(super) fn as_json(sizes: &Sizes) -> Value {
    let table = |table: &TableSize| {
        let precision = match table.precision {
            Precision::Exact => "exact",
            Precision::About => "about",
            Precision::AtLeast => "at_least",
        };
        json!({"name": table.name, "rows": table.rows, "precision": precision})
    };
    let tables: Vec<Value> = sizes.tables.iter().map(table).collect();
    json!({"database_bytes": sizes.database_bytes, "artifact_bytes": sizes.artifact_bytes,
        "tables": tables})
}

fn in_units(bytes: i64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = units.into_iter().find(|(_, shift)| bytes >> shift > 0);
    match fits {
        Some((unit, shift)) => {
            let tenths = (i128::from(bytes) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_largest_unit() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_572_864, "1.5 MiB"),
            (i64::MAX, "8589934591.9 GiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(in_units(bytes), text);
        }
    }

    #[test]
    fn tables_without_rows_are_left_out() {
        let table = |name, rows, precision| TableSize { name, rows, precision };
        let tables = vec![
            table("events", 3, Precision::Exact),
            table("state", 0, Precision::Exact),
            table("transcript", 250_000, Precision::About),
            table("runs", 100_000, Precision::AtLeast),
        ];
        let told = told(&Sizes { database_bytes: 4096, artifact_bytes: 0, tables });
        let found = "database 4.0 KiB; events 3, transcript about 250000, runs more than 100000";
        assert_eq!(told, json!({"what": "sizes", "ok": true, "found": found}));
    }
}
