//! Real runner processes, with hand-written messages of CONTRACT §3.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic where it is")]

mod ask;
mod calls;
mod fake_host;
mod in_memory;
mod process;
mod runs;
mod streams;
mod templates;
mod tools;
mod websocket;
mod wire;
