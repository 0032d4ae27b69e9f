//! `greenroom serve`: starts the host.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Start the host; no configuration needed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom serve
  greenroom serve --config greenroom.toml --data /var/lib/greenroom
  greenroom serve --listen 127.0.0.1:0")]
pub struct Args {
    /// Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for everything the host keeps [default: ./greenroom-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:8700]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
}
