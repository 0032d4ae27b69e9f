//! LangBot plugins as they are: the published SDK in real processes, under the real host, and a plugin of the
//! older dialect that speaks the frames by hand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod adding;
mod agent_runner;
mod basics;
mod calls;
mod components;
mod config_files;
mod forms;
mod history;
mod parallel;
mod raising;
mod random;
mod sessions;
mod settings;
mod snapshots;
mod stage;
mod thinking;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
