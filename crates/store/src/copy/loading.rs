//! Loads a copy into a new database.
//!
//! Invariant: no host can open the database until `finish` has compared everything: PostgreSQL is filled in one
//! transaction, SQLite in a file with another name. A load that is dropped leaves nothing that a host would open.

use super::{CopyError, Feed, OWN_META, Sum, Summing, Table, Visit};
use crate::Location;
use crate::drivers::{Bulk, PostgresDriver, SqliteDriver};
use crate::search::index;
use crate::sql::Dialect;
use crate::{StoreError, fault, params, schema};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Items that are put into the search index at a step.
const INDEX_STEP: i64 = 1_000;

pub struct Loading {
    driver: Box<dyn Bulk>,
    schema: i64,
    /// None on PostgreSQL.
    files: Option<Files>,
    loaded: Vec<(Table, Sum)>,
}

struct Files {
    part: PathBuf,
    whole: PathBuf,
    /// Keeps hosts from opening the final name.
    _lock: File,
}

impl Loading {
    /// Creates the tables of a version in an empty database. All methods block.
    pub fn create(location: &Location, version: i64) -> Result<Loading, CopyError> {
        schema::refuse_newer(version)?;
        let not_empty = || CopyError::NotEmpty(location.to_string());
        let (mut driver, files): (Box<dyn Bulk>, _) = match location {
            Location::Sqlite(path) => {
                let lock = crate::drivers::lock_file(path)?;
                if path.exists() || beside(path, "-wal").exists() {
                    return Err(not_empty());
                }
                let part = beside(path, ".part");
                let driver = SqliteDriver::loader(&part)?;
                (Box::new(driver), Some(Files { part, whole: path.clone(), _lock: lock }))
            }
            Location::Postgres(url) => (Box::new(PostgresDriver::writer(url)?), None),
        };
        if driver.has_schema()? {
            return Err(not_empty());
        }
        driver.begin()?;
        schema::create_tables(&mut *driver, version)?;
        let own = format!("DELETE FROM meta WHERE name NOT IN ({OWN_META})");
        driver.run_script(&own)?;
        Ok(Loading { driver, schema: version, files, loaded: Vec::new() })
    }

    /// Fills a table, once.
    pub fn load(&mut self, table: &Table, feed: Feed<'_>) -> Result<Sum, CopyError> {
        let other = || CopyError::OtherTable(table.name.clone());
        let is_known = schema::tables().any(|name| name == table.name);
        let own = if is_known { Table::read(&mut *self.driver, &table.name)? } else { None };
        if own.as_ref() != Some(table) || self.loaded.iter().any(|(known, _)| known == table) {
            return Err(other());
        }
        let mut summing = Summing::default();
        self.driver.load_rows(table, &mut |sink| {
            feed(&mut |cells| {
                summing.add(cells);
                sink(cells)
            })
        })?;
        fault::point("after_table_loaded");
        let sum = summing.finish();
        self.loaded.push((table.clone(), sum.clone()));
        Ok(sum)
    }

    /// Reads what a table holds so far.
    pub fn read_back(&mut self, table: &Table, each: Visit<'_>) -> Result<Sum, CopyError> {
        table.read_rows(&mut *self.driver, each)
    }

    /// Reads every table back and compares it, builds the search index, and gives the file its final name.
    /// The next host gets the epoch after `epoch`.
    pub fn finish(
        mut self,
        epoch: i64,
        checked: &mut dyn FnMut(&Table, &Sum),
    ) -> Result<(), CopyError> {
        for (table, sum) in std::mem::take(&mut self.loaded) {
            if self.read_back(&table, &mut |_, _| Ok(()))? != sum {
                return Err(CopyError::Differs(table.name));
            }
            checked(&table, &sum);
            self.loaded.push((table, sum));
        }
        for name in schema::tables() {
            if !self.loaded.iter().any(|(table, _)| table.name == name)
                && Table::read(&mut *self.driver, name)?.is_some()
            {
                return Err(CopyError::OtherTable(name.to_owned()));
            }
        }
        self.set_meta("epoch", epoch)?;
        self.driver.finish_load()?;
        // The index of an older version is built by the host, after it has migrated.
        if self.schema == schema::newest() {
            self.build_index()?;
        }
        fault::point("before_load_committed");
        self.driver.commit()?;
        let Loading { driver, files, .. } = self;
        drop(driver);
        match files {
            Some(files) => files.rename(),
            None => Ok(()),
        }
    }

    fn build_index(&mut self) -> Result<(), StoreError> {
        let mut upto = 0;
        loop {
            let (entries, reached) = index::next_entries(&mut *self.driver, upto, INDEX_STEP)?;
            if reached == upto {
                break;
            }
            index::insert(&mut *self.driver, &entries)?;
            upto = reached;
        }
        if self.driver.dialect() == Dialect::Postgres {
            index::settle(&mut *self.driver)?;
        }
        self.set_meta(index::UPTO, upto)
    }

    fn set_meta(&mut self, name: &str, value: i64) -> Result<(), StoreError> {
        self.driver.execute(
            "UPDATE meta SET value = ?2 WHERE name = ?1",
            params![name, value.to_string().as_str()],
        )?;
        Ok(())
    }
}

impl Files {
    fn rename(&self) -> Result<(), CopyError> {
        File::open(&self.part)?.sync_all()?;
        std::fs::rename(&self.part, &self.whole)?;
        let parent = self.whole.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(())
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}
