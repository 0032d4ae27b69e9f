//! The reference runner as a user meets it: a real host, a real process, a model behind a real wire.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod answers;
mod breakers;
mod checks;
mod client;
mod commands;
mod compaction;
mod context;
mod events;
mod exchanges;
mod form;
mod grants;
mod killed;
mod knowledge;
mod large;
mod long;
#[path = "loop.rs"]
mod loops;
mod many_tools;
mod models;
mod prefix;
#[path = "../resources/programs.rs"]
#[expect(dead_code, reason = "shared with the tests of tools, which need more of it")]
mod programs;
mod raw;
#[path = "../agui/reader.rs"]
#[expect(dead_code, reason = "shared with the tests of AG-UI, which need more of it")]
mod reader;
mod rounds;
mod scene;
mod sentences;
#[path = "../resources/models/server.rs"]
#[expect(dead_code, reason = "shared with the tests of models, which need more of it")]
mod server;
mod shapes;
#[path = "../host/stage.rs"]
#[expect(dead_code, reason = "shared with the tests of the host, which need more of it")]
mod stage;
mod steering;
mod stream;
mod template;
mod yard;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
