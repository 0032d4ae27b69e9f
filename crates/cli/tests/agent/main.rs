//! The reference runner as a user meets it: a real host, a real process, a model behind a real wire.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod answers;
mod scene;
#[path = "../resources/models/server.rs"]
#[expect(dead_code, reason = "shared with the tests of models, which need more of it")]
mod server;
#[path = "../host/stage.rs"]
#[expect(dead_code, reason = "shared with the tests of the host, which need more of it")]
mod stage;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
