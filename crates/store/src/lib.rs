//! Facts: everything Greenroom keeps, behind one interface of batched commands.
//!
//! Invariant: what a command changes is committed together and before its outcome is told; nobody holds a
//! transaction. SQLite and PostgreSQL run the same commands and pass the same suite.

mod approvals;
pub mod audit;
pub mod chunk;
pub mod commands;
mod drivers;
mod error;
pub mod fault;
mod line;
pub mod rates;
mod reader;
pub mod reads;
pub mod records;
mod schema;
mod search;
mod shares;
pub mod sql;
mod store;
pub mod types;
mod writer;

pub use error::StoreError;
pub use store::{Location, Options, Postponed, Store, Sync};
