//! Real runner processes, spoken to by hand as CONTRACT §3 says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic where it is")]

mod calls;
mod in_memory;
mod process;
mod runs;
mod templates;
mod websocket;
mod wire;
