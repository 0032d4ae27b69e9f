//! `greenroom sign-in`: signs in at an MCP server with the user's browser.
//!
//! Invariant: only the redirect with the state of this sign-in is passed on; the host keeps the tokens.

mod redirect;

use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use redirect::{Listener, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Sign in at an MCP server that wants OAuth
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints an address to open in a browser on this machine, and waits until you have signed in there.
If the browser is on another machine, copy the address that it ends at, even if it cannot be loaded,
and pass it with `--redirected`.

Examples:
  greenroom sign-in issues
  greenroom sign-in issues --port 8765
  greenroom sign-in issues --redirected 'http://127.0.0.1:8765/callback?code=…&state=…'")]
pub struct Args {
    /// Name of the server: NAME of `[tools.NAME]`
    server: String,
    /// Port for the redirect; a client that you registered yourself may need a fixed one [default: any]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Complete a sign-in with the address that the browser ended at
    #[arg(long, value_name = "ADDRESS", conflicts_with = "port")]
    redirected: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Deserialize)]
struct Begun {
    url: String,
    state: String,
    expires_in_s: u64,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let redirect = match &args.redirected {
        Some(address) => Redirect::parse(address).ok_or_else(|| {
            let hint = "copy the whole address from the browser, with `state=…`";
            Failure::new("`--redirected` is not the end of a sign-in").hint(hint).exit(Exit::Usage)
        })?,
        None => in_browser(&args, &client).await?,
    };
    let path = ["v1", "tool-servers", &args.server, "sign-in", "finish"];
    let done: Value = client.post(&path, &redirect).await?;
    match args.json {
        true => output::print_json(&done)?,
        false => output::print(&format!("signed in at {}\n", output::plain(&args.server)))?,
    }
    Ok(Exit::Ok)
}

async fn in_browser(args: &Args, client: &Client) -> Result<Redirect, Failure> {
    let listener = Listener::open(args.port).await?;
    let path = ["v1", "tool-servers", &args.server, "sign-in"];
    let begun: Result<Begun, _> =
        client.post(&path, &json!({"redirect_uri": listener.address()})).await;
    let begun = begun.map_err(|error| {
        Failure::from(error).or_hint("`greenroom doctor` lists the servers and what they want")
    })?;
    output::note("open this address in a browser:");
    match args.json {
        true => output::print_json(&json!({"url": begun.url, "state": begun.state}))?,
        false => output::print(&format!("{}\n", output::plain(&begun.url)))?,
    }
    let wait = Duration::from_secs(begun.expires_in_s);
    let redirect = tokio::time::timeout(wait, listener.redirect(&begun.state)).await;
    redirect.map_err(|_| {
        Failure::new("nobody signed in within ten minutes").hint("start again: `greenroom sign-in`")
    })?
}
