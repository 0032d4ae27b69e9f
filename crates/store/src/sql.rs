//! The interface through which commands and reads use a database.
//!
//! Invariant: statements are written once, in SQL that SQLite and PostgreSQL both understand, with `?1`
//! placeholders; only the drivers and the search index know which of the two it is.

use crate::StoreError;
use std::borrow::Cow;

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Value::Text(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl<'a> From<&'a Cow<'_, str>> for Value<'a> {
    fn from(value: &'a Cow<'_, str>) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<&'a Option<Cow<'_, str>>> for Value<'a> {
    fn from(value: &'a Option<Cow<'_, str>>) -> Self {
        value.as_deref().into()
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        value.as_deref().into()
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Value::Blob(value)
    }
}

/// Builds a parameter list: `params![id, now, &text]`.
#[macro_export]
#[doc(hidden)]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}

/// PostgreSQL cannot keep U+0000 in a text, so both databases refuse it.
pub(crate) fn refuse_nul(text: &str) -> Result<(), StoreError> {
    if text.as_bytes().contains(&0) {
        return Err(StoreError::Refused("a text holds the character U+0000".to_owned()));
    }
    Ok(())
}

/// Text from outside must not fail a command, so U+0000 is kept as U+FFFD.
pub(crate) fn prose(text: &str) -> Cow<'_, str> {
    if text.as_bytes().contains(&0) {
        return Cow::Owned(text.replace('\0', "\u{fffd}"));
    }
    Cow::Borrowed(text)
}

/// One column of a row that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl Cell {
    pub(crate) fn as_value(&self) -> Value<'_> {
        match self {
            Cell::Null => Value::Null,
            Cell::Int(value) => Value::Int(*value),
            Cell::Text(text) => Value::Text(text),
            Cell::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

/// A row, read from left to right.
#[derive(Debug)]
pub struct Row(std::vec::IntoIter<Cell>);

impl Row {
    pub fn new(cells: Vec<Cell>) -> Self {
        Self(cells.into_iter())
    }

    fn take(&mut self) -> Cell {
        self.0.next().unwrap_or(Cell::Null)
    }

    pub fn int(&mut self) -> Result<i64, StoreError> {
        match self.take() {
            Cell::Int(value) => Ok(value),
            other => Err(unexpected("an integer", &other)),
        }
    }

    pub fn text(&mut self) -> Result<String, StoreError> {
        match self.take() {
            Cell::Text(value) => Ok(value),
            other => Err(unexpected("a text", &other)),
        }
    }

    pub fn blob(&mut self) -> Result<Vec<u8>, StoreError> {
        match self.take() {
            Cell::Blob(value) => Ok(value),
            other => Err(unexpected("bytes", &other)),
        }
    }

    pub fn opt_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.take() {
            Cell::Null => Ok(None),
            Cell::Int(value) => Ok(Some(value)),
            other => Err(unexpected("an integer or nothing", &other)),
        }
    }

    pub fn opt_text(&mut self) -> Result<Option<String>, StoreError> {
        match self.take() {
            Cell::Null => Ok(None),
            Cell::Text(value) => Ok(Some(value)),
            other => Err(unexpected("a text or nothing", &other)),
        }
    }
}

fn unexpected(wanted: &str, found: &Cell) -> StoreError {
    StoreError::Refused(format!("expected {wanted} in a column, found {found:?}"))
}

/// Which database it is, for the few statements that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

/// An open transaction (or a reader's snapshot of one statement).
pub trait Tx {
    fn dialect(&self) -> Dialect;

    /// Runs a statement and returns how many rows it changed.
    fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError>;

    /// Runs a statement and returns its rows.
    fn query(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError>;

    /// Runs an INSERT that returns the number of its row.
    fn insert(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<i64, StoreError> {
        let row = self.query_opt(sql, params)?;
        row.ok_or_else(|| StoreError::Refused("a row got no number".to_owned()))?.int()
    }

    /// Runs a statement that returns at most one row.
    fn query_opt(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }
}
