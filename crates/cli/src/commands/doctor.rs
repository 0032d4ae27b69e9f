//! `greenroom doctor`: says what the host finds on this machine.

use std::path::PathBuf;

/// Check this machine, the data folder and the runners, and say what is in force
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom doctor
  greenroom doctor --config greenroom.toml --json")]
pub struct Args {
    /// Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data folder [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
