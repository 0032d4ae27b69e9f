//! The two databases, as thin as they can be: connections, transactions, errors.

#[cfg(test)]
mod plans;
mod postgres;
mod sqlite;

pub(crate) use self::postgres::PostgresDriver;
pub(crate) use self::sqlite::{SqliteDriver, checkpoint};

use crate::StoreError;
use crate::sql::Tx;

pub(crate) trait Driver: Tx + Send {
    /// Whether the database holds our tables at all.
    fn has_schema(&mut self) -> Result<bool, StoreError>;
    /// Runs a script of several statements, placeholders of the schema filled in.
    fn run_script(&mut self, script: &str) -> Result<(), StoreError>;
    /// From here on this driver writes for the given start of the host.
    fn hold(&mut self, epoch: i64) -> Result<(), StoreError>;
    fn begin(&mut self) -> Result<(), StoreError>;
    /// The same without waiting for anybody who has the database; whether it has begun.
    fn begin_at_once(&mut self) -> bool;
    fn commit(&mut self) -> Result<(), StoreError>;
    /// After a new connection: whether the last commit, whose answer was lost, took place.
    fn has_committed(&mut self) -> Result<bool, StoreError>;
    fn rollback(&mut self);
    /// Opens the connection again and takes back the right to write; an error is `Lost` when another
    /// host has taken over.
    fn reconnect(&mut self) -> Result<(), StoreError>;
}
