//! The rows of a database: to and from an archive.

use super::archive::{Archive, ArchiveWriter};
use super::manifest::{Artifacts, Database, TableDump};
use super::progress::{Progress, count};
use crate::failure::Failure;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use greenroom_host::artifacts::owner_of_bytes;
use greenroom_store::Location;
use greenroom_store::copy::{CopyError, Loading, Sink, Snapshot, Sum, Table, read_line};
use greenroom_store::sql::{Cell, Dialect};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};

/// Sizes of the artifacts in the snapshot, by hash.
pub(crate) type Referred = BTreeMap<String, u64>;

/// The contents of one snapshot.
pub(crate) struct Dumped {
    pub(crate) database: Database,
    pub(crate) referred: Referred,
    pub(crate) owner: String,
}

fn member(table: &Table) -> String {
    format!("database/{}.jsonl.gz", table.name)
}

/// Writes every table of one snapshot, which ends when this returns.
pub(crate) fn dump(
    location: &Location,
    archive: &mut ArchiveWriter,
    progress: &mut Progress,
) -> Result<Dumped, CopyError> {
    let mut snapshot = Snapshot::open(location)?;
    let owner = owner_of_bytes(&snapshot.cursor_key()?);
    let (mut tables, mut referred, mut rows) = (Vec::new(), Referred::new(), 0);
    for table in snapshot.tables() {
        let sum = archive.add(&member(&table), 0o600, |out| {
            let mut lines = GzEncoder::new(out, Compression::fast());
            let sum = snapshot.read(&table, &mut |cells, line| {
                rows += 1;
                progress.update(|| format!("{} of `{}`", count(rows, "row"), table.name));
                note_bytes(&table, cells, &mut referred);
                Ok(lines.write_all(line.as_bytes())?)
            })?;
            lines.finish()?;
            Ok::<Sum, CopyError>(sum)
        })?;
        tables.push(TableDump { table, sum });
    }
    progress.done(&format!("database: {} in {} tables", count(rows, "row"), tables.len()));
    let kind = match snapshot.dialect() {
        Dialect::Sqlite => "sqlite",
        Dialect::Postgres => "postgres",
    };
    let (schema, epoch) = (snapshot.schema(), snapshot.epoch());
    Ok(Dumped {
        database: Database { kind: kind.to_owned(), schema, epoch, tables },
        referred,
        owner,
    })
}

fn note_bytes(table: &Table, cells: &[Cell], referred: &mut Referred) {
    if table.name != "artifacts" {
        return;
    }
    let cell = |name| table.column(name).and_then(|at| cells.get(at));
    if let (Some(Cell::Text(hash)), Some(Cell::Int(size))) = (cell("sha256"), cell("size")) {
        referred.insert(hash.clone(), u64::try_from(*size).unwrap_or(0));
    }
}

/// Fills the tables of a database from a verified archive.
pub(crate) fn load(
    archive: &Archive,
    loading: &mut Loading,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let artifacts = &archive.manifest.artifacts;
    let mut rows = 0;
    for dump in &archive.manifest.database.tables {
        let table = &dump.table;
        let lines = BufReader::new(GzDecoder::new(
            archive.section(&member(table)).map_err(anyhow::Error::new)?,
        ));
        let mut lines = Lines { lines, table, artifacts };
        let loaded = loading.load(table, &mut |sink| {
            lines.feed(&mut |cells| {
                rows += 1;
                progress.update(|| format!("{} into `{}`", count(rows, "row"), table.name));
                sink(cells)
            })
        });
        // Rows are skipped in this table only, if their bytes were deleted.
        let is_shorter = table.name == "artifacts" && !artifacts.collected.is_empty();
        if loaded.map_err(anyhow::Error::new)? != dump.sum && !is_shorter {
            let what = format!("the rows of `{}` do not match the manifest", table.name);
            return Err(anyhow::Error::new(archive.damaged(what)).into());
        }
    }
    Ok(())
}

struct Lines<'a, R> {
    lines: R,
    table: &'a Table,
    artifacts: &'a Artifacts,
}

impl<R: BufRead> Lines<'_, R> {
    fn feed(&mut self, sink: Sink<'_>) -> Result<(), CopyError> {
        let hash = match self.table.name.as_str() {
            "artifacts" => self.table.column("sha256"),
            _ => None,
        };
        let mut line = String::new();
        while self.lines.read_line(&mut line)? > 0 {
            let cells = read_line(self.table, &line)?;
            // The row was deleted together with its bytes.
            let is_gone = hash.and_then(|at| cells.get(at)).is_some_and(
                |cell| matches!(cell, Cell::Text(hash) if self.artifacts.collected.contains(hash)),
            );
            if !is_gone {
                sink(&cells)?;
            }
            line.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_collected_bytes_are_not_loaded() {
        let columns = ["artifact_id", "sha256"].map(str::to_owned).to_vec();
        let table = Table { name: "artifacts".to_owned(), columns, key: Vec::new() };
        let collected = vec!["gone".to_owned()];
        let artifacts = Artifacts { owner: String::new(), count: 1, bytes: 1, collected };
        let text = "[\"a\",\"gone\"]\n[\"b\",\"here\"]\n";
        let mut lines = Lines { lines: text.as_bytes(), table: &table, artifacts: &artifacts };
        let mut loaded = Vec::new();
        let mut keep = |cells: &[Cell]| {
            loaded.push(cells[0].clone());
            Ok(())
        };
        lines.feed(&mut keep).unwrap();
        assert_eq!(loaded, [Cell::Text("b".to_owned())]);
    }
}
