//! The `greenroom` program.

use clap::Parser;
use greenroom_cli::cli::Cli;
use greenroom_cli::failure::{Exit, Failure};
use greenroom_cli::output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(cli) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        Err(failure) => {
            output::note(&failure.to_string());
            failure.exit.into()
        }
    }
}

fn start(cli: Cli) -> Result<Exit, Failure> {
    // Fails only when a provider is installed already, and then that one is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(greenroom_cli::run(cli.command))
}
