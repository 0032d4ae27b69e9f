//! The runtime against real processes: good runners, broken ones and hostile ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backoff;
mod child;
mod claims;
mod discovery;
mod homes;
mod hostile;
mod kit;
mod network;
mod pins;
mod process;
mod proxy;
mod quotas;
mod read_delay;
mod remote;
mod sandbox;
mod streaming;
mod tools;
mod unread;
mod wall;
mod who;
