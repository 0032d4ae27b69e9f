//! The tables of a folder while no host is on it: their version, their shape, how many rows each has.

use crate::folder::Opened;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) version: i64,
    pub(crate) shape: Vec<String>,
    /// Of all tables but `meta` and those of the search index.
    pub(crate) rows: BTreeMap<String, String>,
}

const COLUMNS: &str = "SELECT table_name || '.' || column_name || ' ' || data_type
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1";
const OBJECTS: &str = "SELECT name || ' ' || COALESCE(sql, '') FROM sqlite_schema ORDER BY 1";
const TABLES: &str = "SELECT table_name::text FROM information_schema.tables
    WHERE table_schema = 'public' AND table_name <> 'meta' AND table_name NOT LIKE 'search%'";
const SQLITE_TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name NOT LIKE 'sqlite_%' AND name <> 'meta' AND name NOT LIKE 'search%'";
const VERSION: &str = "SELECT value FROM meta WHERE name = 'schema'";

impl Tables {
    pub(crate) async fn of(opened: &Opened) -> Tables {
        let url = opened.database.as_ref().map(|database| database.url.clone());
        let data = opened.host.data();
        let read = move || match url {
            Some(url) => {
                let column = |query: &str| greenroom_testkit::postgres::column(&url, query);
                Self::read((COLUMNS, TABLES), column)
            }
            None => of_sqlite(&data),
        };
        tokio::task::spawn_blocking(read).await.unwrap()
    }

    fn read((shape, tables): (&str, &str), column: impl Fn(&str) -> Vec<String>) -> Tables {
        let count = |table: String| {
            let query = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}");
            let count = column(&query).remove(0);
            (table, count)
        };
        Tables {
            version: column(VERSION)[0].parse().unwrap(),
            shape: column(shape),
            rows: column(tables).into_iter().map(count).collect(),
        }
    }
}

/// Of a copy: whoever opens a database last and closes it tidies up its log.
fn of_sqlite(data: &Path) -> Tables {
    let copy = tempfile::tempdir().unwrap();
    for name in ["greenroom.db", "greenroom.db-wal"] {
        if data.join(name).exists() {
            std::fs::copy(data.join(name), copy.path().join(name)).unwrap();
        }
    }
    let connection = Connection::open(copy.path().join("greenroom.db")).unwrap();
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    Tables::read((OBJECTS, SQLITE_TABLES), |query| {
        let mut statement = connection.prepare(query).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    })
}
