//! Output of commands: data on standard output, everything else on standard error.
//!
//! Invariant: the only module that writes to either; standard output carries data only.

use crate::visible;
pub use greenroom_config::{columns_of, is_wide};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Data, for people or for programs. Whatever it contains, no control character reaches the terminal.
pub fn print(text: &str) -> io::Result<()> {
    let text = plain(text);
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// One JSON value on one line.
pub fn print_json(value: &impl Serialize) -> io::Result<()> {
    print(&format!("{}\n", visible::json(&serde_json::to_string(value)?)))
}

/// A JSON value over several lines.
pub fn print_pretty(value: &impl Serialize) -> io::Result<()> {
    print(&format!("{}\n", visible::json(&serde_json::to_string_pretty(value)?)))
}

/// Anything but data; a closed standard error is ignored.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain(text));
}

/// Whether standard error is a terminal.
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Replaces the last line on a terminal.
pub fn overwrite(text: &str) {
    let mut out = io::stderr().lock();
    let _ = write!(out, "\r\x1b[2K{text}");
    let _ = out.flush();
}

/// Rows as aligned columns; the first row is the header.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| columns_of(&one_line(cell)))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let cell = one_line(cell);
            line.push_str(&cell);
            line.push_str(&" ".repeat(width + 2 - columns_of(&cell)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Untrusted text in which what cannot be seen is shown: terminal controls, direction marks, zero-width characters.
/// Line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    visible::text(&text.replace("\r\n", "\n"), &['\n', '\t'])
}

fn one_line(text: &str) -> String {
    visible::text(&text.replace(['\n', '\t'], " "), &[])
}

/// A size in the unit that fits it, e.g. `12.3 KiB`.
pub fn bytes(count: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / size as f64),
        None => format!("{count} B"),
    }
}
