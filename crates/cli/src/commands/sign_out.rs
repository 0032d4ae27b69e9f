//! `greenroom sign-out`: forgets the sign-in at an MCP server.

use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Outcome};
use crate::output;
use serde_json::Value;

/// Forget the sign-in at an MCP server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The tokens are deleted here; to revoke them as well, use the settings of the service.

Examples:
  greenroom sign-out issues")]
pub struct Args {
    /// Name of the server: NAME of `[tools.NAME]`
    server: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let done: Value = client.delete(&["v1", "tool-servers", &args.server, "sign-in"]).await?;
    match args.json {
        true => output::print_json(&done)?,
        false => output::print(&format!("signed out of {}\n", output::plain(&args.server)))?,
    }
    Ok(Exit::Ok)
}
