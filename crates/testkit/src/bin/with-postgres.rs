//! `with-postgres COMMAND…` runs a command beside one PostgreSQL server that all its tests share.
//!
//! Invariant: the server ends with the command, and the command's exit code is passed on.

use greenroom_testkit::postgres::{SERVER_VARIABLE, Server};
use std::process::{Command, ExitCode};

#[expect(
    clippy::disallowed_methods,
    reason = "running the tests' command is all this program does"
)]
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().expect("a command to run");
    let server = Server::start();
    let status = Command::new(&program).args(arguments).env(SERVER_VARIABLE, server.url()).status();
    let code = status.unwrap_or_else(|error| panic!("cannot run {program:?}: {error}")).code();
    drop(server);
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
