//! The gateways from outside: clients of MCP and of models with the token of a run, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod client;
mod mcp;
mod models;
#[path = "../host/stage.rs"]
#[expect(dead_code, reason = "shared with the tests of the host, which need more of it")]
mod stage;
mod tokens;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
