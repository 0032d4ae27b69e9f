//! The `greenroom` program.

use clap::Parser;
use greenroom_cli::cli::{Cli, Command};
use greenroom_cli::commands::runner_process;
use greenroom_cli::failure::{Exit, Failure};
use greenroom_cli::output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // These two stand beside the host, one per runner process: no runtime, as little memory as can be.
    match cli.command {
        Command::Supervise(args) => return greenroom_runtime::supervisor::main(args.args),
        Command::RunnerProcess(args) => return runner_process::run(&args),
        _ => {}
    }
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
    let mut builder = match cli.command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build()?;
    runtime.block_on(greenroom_cli::run(cli.command))
}
