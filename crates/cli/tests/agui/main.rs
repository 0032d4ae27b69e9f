//! AG-UI as a client on the wire sees it: every frame by hand, over the real program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod again;
mod cards;
mod client;
mod copilot;
mod interrupts;
mod progress;
mod reader;
mod returns;
mod runs;
#[path = "../host/stage.rs"]
#[expect(dead_code, reason = "shared with the tests of the host, which need more of it")]
mod stage;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
