//! The `greenroom` program: configuration, wiring, commands.
//!
//! Invariant: the only crate that prints or exits.

pub mod config;
pub mod env;
