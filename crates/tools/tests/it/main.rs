//! Tools against real processes and real servers: good ones, broken ones and hostile ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a2ui;
mod hostile;
mod kit;
mod methods;
mod network;
mod servers;
