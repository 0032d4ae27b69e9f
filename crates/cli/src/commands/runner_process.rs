//! `greenroom runner-process`: a reference runner, started by the host as any other runner.

/// Be a built-in runner on standard input and output
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the runner, e.g. `echo`
    pub name: String,
}
