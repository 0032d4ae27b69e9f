//! What tests start: real servers that end with the test, whatever becomes of it.
//!
//! Invariant: the host is known by its program, its address and its contract alone; nothing here looks
//! inside. A failure to start something is a panic that says why.

pub mod api;
pub mod fold;
pub mod host;
pub mod http;
pub mod postgres;
pub mod processes;
pub mod random;
pub mod reader;
pub mod receiver;
#[cfg(feature = "s3")]
pub mod s3;
pub mod wait;
