//! `greenroom supervise`: the small process that stands above every runner process.

use std::ffi::OsString;

/// Start a runner process and end its tree when the host is gone
#[derive(Debug, clap::Args)]
pub struct Args {
    /// As the runtime wrote them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}
