//! `greenroom supervise`: the supervisor of one runner process.

use std::ffi::OsString;

/// Start a runner process and kill its tree when the host exits
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Arguments of the runtime
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}
