//! Whole tables of PostgreSQL, for copies.

use super::{PostgresDriver, cell, failed};
use crate::StoreError;
use crate::copy::{CopyError, Feed, Table};
use crate::drivers::{Bulk, Driver};
use crate::sql::{Cell, Tx, refuse_nul};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use std::fmt::Write as _;
use std::io::Write as _;

/// Lines are sent in pieces of about this size.
const PIECE_BYTES: usize = 64 * 1024;

impl Bulk for PostgresDriver {
    fn begin_snapshot(&mut self) -> Result<(), StoreError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.client.batch_execute(begin).map_err(failed)?;
        // Only the first statement says which state it is.
        self.query("SELECT 1 FROM meta LIMIT 1", &[]).map(drop)
    }

    fn each_row(
        &mut self,
        sql: &str,
        each: &mut dyn FnMut(&[Cell]) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        let none: [&(dyn ToSql + Sync); 0] = [];
        let mut rows = self.client.query_raw(sql, none).map_err(failed)?;
        let mut cells = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            cells.clear();
            for column in 0..row.len() {
                cells.push(cell(&row, column)?);
            }
            each(&cells)?;
        }
        Ok(())
    }

    fn load_rows(&mut self, table: &Table, feed: Feed<'_>) -> Result<(), CopyError> {
        let sql = format!("COPY \"{}\" ({}) FROM STDIN", table.name, table.column_list());
        let mut writer = self.client.copy_in(&sql).map_err(failed)?;
        let mut lines = String::with_capacity(2 * PIECE_BYTES);
        feed(&mut |cells| {
            copy_line(cells, &mut lines)?;
            if lines.len() >= PIECE_BYTES {
                writer.write_all(lines.as_bytes())?;
                lines.clear();
            }
            Ok(())
        })?;
        writer.write_all(lines.as_bytes())?;
        writer.finish().map_err(failed)?;
        Ok(())
    }

    /// New rows are numbered behind those that were loaded.
    fn finish_load(&mut self) -> Result<(), CopyError> {
        let numbered = self.query(
            "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT)
             FROM information_schema.columns
             WHERE table_schema = current_schema() AND is_identity = 'YES'",
            &[],
        )?;
        for mut row in numbered {
            let (table, column) = (row.text()?, row.text()?);
            self.run_script(&format!(
                "SELECT setval(pg_get_serial_sequence('\"{table}\"', '{column}'),
                               COALESCE(MAX(\"{column}\"), 0) + 1, false) FROM \"{table}\""
            ))?;
        }
        Ok(())
    }
}

/// A row in the text format of COPY.
fn copy_line(cells: &[Cell], out: &mut String) -> Result<(), StoreError> {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            out.push('\t');
        }
        match cell {
            Cell::Null => out.push_str("\\N"),
            Cell::Int(value) => out.push_str(&value.to_string()),
            Cell::Text(text) => {
                refuse_nul(text)?;
                out.extend(text.chars().flat_map(escaped));
            }
            Cell::Blob(bytes) => {
                out.push_str("\\\\x");
                for byte in bytes {
                    let _ = write!(out, "{byte:02x}");
                }
            }
        }
    }
    out.push('\n');
    Ok(())
}

fn escaped(c: char) -> impl Iterator<Item = char> {
    let (first, second) = match c {
        '\\' => ('\\', Some('\\')),
        '\n' => ('\\', Some('n')),
        '\r' => ('\\', Some('r')),
        '\t' => ('\\', Some('t')),
        c => (c, None),
    };
    std::iter::once(first).chain(second)
}
