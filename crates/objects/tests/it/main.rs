//! Bytes in real folders and in a real S3-compatible server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bucket;
mod folder;
mod kit;
mod suite;
