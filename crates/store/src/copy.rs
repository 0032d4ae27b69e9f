//! Copies of a whole database, for backups, restores and moves between the two databases.
//!
//! A copy is logical: every table as lines of JSON in the order of its key, read from one snapshot. The same facts
//! give the same lines on both databases, so a checksum over the lines shows whether a copy is equal.
//!
//! Invariants: a snapshot changes nothing; a database is loaded as a whole or not at all; the columns come from the
//! database's catalog and the tables from the schema, so that neither is listed here. What belongs to one database
//! and not to its facts is not copied: the search index, which is rebuilt, and some rows of `meta`.

mod line;
mod loading;
mod moved;
mod snapshot;

pub use loading::Loading;
pub(crate) use moved::refuse_moved;
pub use moved::{clear_moved, mark_moved};
pub use snapshot::{Snapshot, refers_to};

use crate::Location;
use crate::StoreError;
use crate::drivers::Bulk;
use crate::params;
use crate::sql::{Cell, Dialect};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;

/// Rows of `meta` that describe one database and are not facts in it.
const OWN_META: &str =
    "'schema', 'schema_fingerprint', 'epoch', 'commit', 'space', 'search_upto', 'moved_to'";

/// Errors of copies.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no database at {0}")]
    NoDatabase(String),
    #[error("{0} is not empty")]
    NotEmpty(String),
    #[error("table `{0}` of the copy does not fit this database")]
    OtherTable(String),
    #[error("a line of table `{0}` cannot be read: {1}")]
    Line(String, String),
    #[error("table `{0}` differs from its copy")]
    Differs(String),
    #[error("the database file is damaged: {0}")]
    Damaged(String),
    /// Reading or writing the lines failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A table as the catalog describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub name: String,
    /// In the order in which a line has them.
    pub columns: Vec<String>,
    /// The columns of the primary key: the order of the lines.
    pub key: Vec<String>,
}

/// What a copy of a table is compared by: its rows, and the SHA-256 of its lines as hexadecimal text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub rows: u64,
    pub sha256: String,
}

/// Takes one row of a table that is loaded.
pub type Sink<'a> = &'a mut dyn FnMut(&[Cell]) -> Result<(), CopyError>;
/// Sees each row of a table and its line.
pub type Visit<'a> = &'a mut dyn FnMut(&[Cell], &str) -> Result<(), CopyError>;
/// Gives the rows of a table, in the order of its key, to a sink.
pub type Feed<'a> = &'a mut dyn FnMut(Sink<'_>) -> Result<(), CopyError>;

impl Table {
    fn read(driver: &mut dyn Bulk, name: &str) -> Result<Option<Table>, StoreError> {
        let sql = match driver.dialect() {
            Dialect::Sqlite => "SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid",
            Dialect::Postgres => {
                "SELECT CAST(c.column_name AS TEXT),
                        CAST(COALESCE(k.ordinal_position, 0) AS BIGINT)
                 FROM information_schema.columns c
                 LEFT JOIN (information_schema.table_constraints t
                     JOIN information_schema.key_column_usage k
                       ON k.constraint_schema = t.constraint_schema
                      AND k.constraint_name = t.constraint_name
                      AND t.constraint_type = 'PRIMARY KEY')
                   ON k.table_schema = c.table_schema AND k.table_name = c.table_name
                  AND k.column_name = c.column_name
                 WHERE c.table_schema = current_schema() AND c.table_name = CAST(?1 AS TEXT)
                 ORDER BY c.ordinal_position"
            }
        };
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        for mut row in driver.query(sql, params![name])? {
            let (column, key_position) = (row.text()?, row.int()?);
            if key_position > 0 {
                key.push((key_position, column.clone()));
            }
            columns.push(column);
        }
        key.sort();
        let key = key.into_iter().map(|(_, column)| column).collect();
        Ok((!columns.is_empty()).then(|| Table { name: name.to_owned(), columns, key }))
    }

    /// The index of a column in a line.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    pub(crate) fn column_list(&self) -> String {
        list(&self.columns)
    }

    fn select(&self) -> String {
        let which = match self.name.as_str() {
            "meta" => format!(" WHERE name NOT IN ({OWN_META})"),
            _ => String::new(),
        };
        let (columns, key) = (self.column_list(), list(&self.key));
        format!("SELECT {columns} FROM \"{}\"{which} ORDER BY {key}", self.name)
    }

    /// Visits the rows of a database and computes the checksum of their lines.
    fn read_rows(&self, driver: &mut dyn Bulk, each: Visit<'_>) -> Result<Sum, CopyError> {
        let mut summing = Summing::default();
        driver.each_row(&self.select(), &mut |cells| {
            let line = summing.add(cells);
            each(cells, line)
        })?;
        Ok(summing.finish())
    }
}

/// SQLite would create a missing file.
fn refuse_absent(location: &Location) -> Result<(), CopyError> {
    match location {
        Location::Sqlite(path) if !path.exists() => {
            Err(CopyError::NoDatabase(location.to_string()))
        }
        _ => Ok(()),
    }
}

fn list(columns: &[String]) -> String {
    let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    quoted.join(", ")
}

#[derive(Default)]
struct Summing {
    rows: u64,
    hash: Sha256,
    line: String,
}

impl Summing {
    /// Adds a row and returns its line with the line feed.
    fn add(&mut self, cells: &[Cell]) -> &str {
        self.line.clear();
        line::write(cells, &mut self.line);
        self.rows += 1;
        self.hash.update(self.line.as_bytes());
        &self.line
    }

    fn finish(self) -> Sum {
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Sum { rows: self.rows, sha256 }
    }
}

/// Parses a line of a dump.
pub fn read_line(table: &Table, text: &str) -> Result<Vec<Cell>, CopyError> {
    let cells =
        line::read(text).map_err(|cause| CopyError::Line(table.name.clone(), cause.to_string()))?;
    match cells.len() == table.columns.len() {
        true => Ok(cells),
        false => {
            Err(CopyError::Line(table.name.clone(), format!("it has {} columns", cells.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::{Driver, SqliteDriver};
    use crate::sql::Tx;
    use crate::store::{Options, Store, Sync};
    use crate::{reads, schema};

    #[test]
    fn a_copy_of_any_version_is_loaded_and_upgraded_by_the_next_start() {
        for version in 1..=schema::newest() {
            let folder = tempfile::tempdir().unwrap();
            let from = folder.path().join("from.db");
            let mut driver = SqliteDriver::writer(&from, Sync::Normal).unwrap();
            schema::create_at(&mut driver, version).unwrap();
            let item = "INSERT INTO transcript (workspace_id, conversation_id, event_seq, seq,
                     item_id, role, text, body, created_at)
                 VALUES ('default', 'c', 1, 1, 'i', 'user', 'an old word', '{}', 5)";
            driver.run_script(item).unwrap();
            drop(driver);
            let mut source = Snapshot::open(&Location::Sqlite(from)).unwrap();
            assert_eq!(source.schema(), version);
            let to = Location::Sqlite(folder.path().join("to.db"));
            let mut target = Loading::create(&to, version).unwrap();
            for table in source.tables() {
                let feed = &mut |sink: Sink<'_>| {
                    source.read(&table, &mut |cells, _| sink(cells)).map(drop)
                };
                target.load(&table, feed).unwrap();
            }
            target.finish(7, &mut |_, _| ()).unwrap();
            let store = Store::open(&Options { location: to.clone(), sync: Sync::Normal }).unwrap();
            assert_eq!(store.epoch(), 8);
            store.close();
            let Location::Sqlite(path) = &to else { panic!("it is SQLite") };
            let mut reader = SqliteDriver::reader(path).unwrap();
            assert_eq!(schema::version(&mut reader).unwrap().unwrap().found, schema::newest());
            let query = reads::search::SearchQuery {
                workspace: "default".to_owned(),
                text: "old word".to_owned(),
                top_k: 1,
                ..reads::search::SearchQuery::default()
            };
            let tx: &mut dyn Tx = &mut reader;
            assert_eq!(reads::search::search(tx, &query).unwrap().len(), 1, "version {version}");
        }
    }
}
