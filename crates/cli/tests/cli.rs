//! The program as people use it: the real binary, real sockets, real runner processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

#[path = "cli/database.rs"]
mod database;
#[path = "cli/docs.rs"]
mod docs;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/fake_host.rs"]
mod fake_host;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/local.rs"]
mod local;
#[path = "cli/model_server.rs"]
mod model_server;
#[path = "cli/operate.rs"]
mod operate;
#[path = "cli/runner_test.rs"]
mod runner_test;
#[path = "cli/sending.rs"]
mod sending;
#[path = "cli/serving.rs"]
mod serving;
#[path = "cli/talking.rs"]
mod talking;
#[path = "cli/tls.rs"]
mod tls;
#[path = "cli/tool.rs"]
mod tool;
#[path = "cli/watching.rs"]
mod watching;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary with a clean environment, in a folder of its own.
#[expect(clippy::disallowed_methods, reason = "these tests are about the program itself")]
fn greenroom(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.args(args).current_dir(dir).stdin(Stdio::null());
    for name in ["GREENROOM_URL", "GREENROOM_TOKEN", "GREENROOM_DATA", "GREENROOM_CONFIG"] {
        command.env_remove(name);
    }
    command.env("COLUMNS", "100").env("TZ", "UTC");
    command
}

fn read(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Everything a command printed, with its exit code.
fn told(dir: &Path, args: &[&str]) -> String {
    read(&greenroom(dir, args).output().unwrap())
}
