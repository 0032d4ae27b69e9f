//! `greenroom check`: validates a configuration.

use std::path::PathBuf;

/// Validate the configuration and say what would bind
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom check
  greenroom check --config greenroom.toml --json")]
pub struct Args {
    /// Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
