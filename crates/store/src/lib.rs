//! Facts: everything Greenroom keeps, behind one interface of batched commands.
//!
//! Invariant: what a command changes is committed together and before its outcome is returned; no caller holds a
//! transaction. SQLite and PostgreSQL run the same commands and pass the same suite.

mod approvals;
pub mod audit;
pub mod chunk;
mod clock;
pub mod commands;
mod condition;
mod conditions;
pub mod copy;
mod database;
mod drivers;
mod error;
pub mod fault;
mod gate;
mod health;
mod job;
mod location;
pub mod rates;
mod reader;
pub mod reads;
pub mod records;
mod schema;
mod search;
mod session;
mod shares;
pub mod sql;
mod store;
pub mod types;
mod writer;

pub use database::in_units;
pub use error::StoreError;
pub use location::Location;
pub use schema::SchemaVersion;
pub use session::session_key;
pub use store::{OnLoss, Options, Postponed, Probed, Store, Sync};
