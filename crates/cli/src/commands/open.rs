//! `greenroom open`: a URL that signs in once.

use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Outcome};
use crate::{output, sign_in};
use serde::Deserialize;
use serde_json::json;

/// Print a one-time URL that signs you in to the web interface
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The URL works once within ten minutes (`limits.sign_in_code_s`) and signs in as the admin.

Examples:
  greenroom open
  xdg-open \"$(greenroom open)\"")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Deserialize)]
struct Made {
    code: String,
    expires_in_s: u64,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let made: Made = client.post(&["v1", "session", "code"], &json!({})).await?;
    let url = sign_in::url(&client.address()?, &made.code);
    match args.json {
        true => output::print_json(&json!({"url": url, "expires_in_s": made.expires_in_s}))?,
        false => output::print(&format!("{url}\n"))?,
    }
    Ok(Exit::Ok)
}
