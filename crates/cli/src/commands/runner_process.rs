//! `greenroom runner-process`: a built-in runner, started by the host like any other.

use std::process::ExitCode;

/// Run a built-in runner on standard input and output
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the runner, e.g. `echo`
    pub name: String,
    /// Settings of the runner, as JSON
    pub settings: Option<String>,
}

/// Runs until its input ends.
pub fn run(args: &Args) -> ExitCode {
    match args.name.as_str() {
        "echo" => greenroom_echo::main(),
        "local-agent" => greenroom_local_agent::main(),
        "acp-agent" => greenroom_acp_agent::main(args.settings.as_deref().unwrap_or("{}")),
        name => {
            crate::output::note(&format!("error: there is no built-in runner `{name}`"));
            ExitCode::from(2)
        }
    }
}
