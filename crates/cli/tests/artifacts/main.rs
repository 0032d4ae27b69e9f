//! Artifacts through the real binary: over HTTP, from runners, in a folder and in a bucket, with the power
//! going out in between.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod bucket;
mod commands;
mod crash;
mod http;
mod refusals;
mod results;
mod runs;
mod stage;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
