//! The size of the store.

use super::finding;
use greenroom_objects::Backend;
use greenroom_store::in_units;
use greenroom_store::reads::sizes::{Precision, Sizes, TableSize};
use serde_json::{Value, json};

/// One line: the database and its tables that are not empty.
pub(super) fn summary(sizes: &Sizes) -> Value {
    let tables = sizes.tables.iter().filter(|table| table.rows > 0).map(|table| {
        let sign = match table.precision {
            Precision::Exact => "",
            Precision::About => "about ",
            Precision::AtLeast => "more than ",
        };
        format!("{sign}{} {}", table.rows, noun(table.name))
    });
    let tables: Vec<String> = tables.collect();
    let tables = if tables.is_empty() { "nothing yet".to_owned() } else { tables.join(", ") };
    let bytes = in_units(sizes.database_bytes);
    finding("sizes", true, &format!("{bytes} in the database: {tables}"))
}

/// A word for the rows of a table.
fn noun(table: &str) -> &str {
    match table {
        "transcript" => "transcript items",
        "state" => "state values",
        "storage" => "stored values",
        "outbox" => "deliveries",
        "audit" => "audit records",
        other => other,
    }
}

/// The location and size of artifacts; a folder must be writable.
pub(super) fn artifacts(backend: &Backend, sizes: Option<&Sizes>) -> Value {
    let kept = sizes.map_or(0, |sizes| sizes.artifact_bytes);
    let problem = match backend {
        Backend::Folder(folder) => super::unwritable(folder),
        Backend::Bucket(_) => None,
    };
    let found = problem.clone().unwrap_or_else(|| in_units(kept));
    finding("artifacts", problem.is_none(), &format!("{backend}: {found}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_rows_are_left_out() {
        let table = |name, rows, precision| TableSize { name, rows, precision };
        let tables = vec![
            table("events", 3, Precision::Exact),
            table("state", 0, Precision::Exact),
            table("transcript", 250_000, Precision::About),
            table("runs", 100_000, Precision::AtLeast),
        ];
        let summary = summary(&Sizes { database_bytes: 4096, artifact_bytes: 0, tables });
        let found = "4.0 KiB in the database: 3 events, about 250000 transcript items, more than 100000 runs";
        assert_eq!(summary, json!({"what": "sizes", "ok": true, "found": found}));
    }
}
