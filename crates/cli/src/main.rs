//! The `greenroom` program.

use clap::{CommandFactory, FromArgMatches};
use greenroom_cli::cli::{Cli, Command, wants_json};
use greenroom_cli::commands::runner_process;
use greenroom_cli::failure::{Exit, Outcome};
use greenroom_cli::output;
use std::pin::Pin;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The environment of a tool holds a credential: hide it from other processes first.
    if std::env::args_os().nth(1).is_some_and(|command| command == "tool") {
        greenroom_runtime::make_undumpable();
    }
    let matches = Cli::command().get_matches();
    let json = wants_json(&matches);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // These two run once per runner process: no async runtime, as little memory as possible.
    match cli.command {
        Command::Supervise(args) => return greenroom_runtime::supervisor::main(args.args),
        Command::RunnerProcess(args) => return runner_process::run(&args),
        _ => {}
    }
    match start(cli) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        Err(failure) => {
            // The printed results already contain the reason.
            if json && failure.exit != Exit::RunFailed {
                let _ = output::print_json(&failure.json());
            }
            output::note(&failure.to_string());
            failure.exit.into()
        }
    }
}

fn start(cli: Cli) -> Outcome {
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = match cli.command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build()?;
    // Boxed: otherwise each kind of runtime gets a copy of all commands.
    let work: Pin<Box<dyn Future<Output = Outcome>>> = Box::pin(greenroom_cli::run(cli.command));
    runtime.block_on(work)
}
