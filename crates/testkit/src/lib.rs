//! Real servers for tests, which end with the test in any case.
//!
//! Invariant: the host is known only by its program, its address and its contract. A server that does not start is a
//! panic with the reason.

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
