//! `greenroom approvals allow` and `deny`: answers an approval request.

use super::approvals_show::load;
use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use greenroom_protocol::Object;
use greenroom_protocol::api::platform::ApprovalView;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id of the approval
    approval: String,
    /// Nonce of the approval that was reviewed [default: its current nonce]
    #[arg(long, value_name = "NONCE")]
    nonce: Option<String>,
    /// With `allow`: what a tool's server asks for, as JSON; what is left out gets its default
    #[arg(long, value_name = "JSON")]
    values: Option<String>,
    /// With `allow`: other arguments for the tool call than it asked for, in full, as JSON
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args, decision: &'static str) -> Outcome {
    let client = Client::new(&args.host)?;
    let nonce = match args.nonce {
        Some(nonce) => nonce,
        None => load(&client, &args.approval).await?.nonce,
    };
    let mut body = json!({"decision": decision, "nonce": nonce});
    for (name, given) in [("values", &args.values), ("args", &args.args)] {
        let Some(given) = given else { continue };
        let given: Result<Object, _> = serde_json::from_str(given);
        body[name] = json!(given.map_err(|error| {
            Failure::new(format!("`--{name}` is not a JSON object: {error}"))
                .hint("`greenroom approvals show` shows what is asked for")
                .exit(Exit::Usage)
        })?);
    }
    let approval: ApprovalView = client.post(&["v1", "approvals", &args.approval], &body).await?;
    match args.json {
        true => output::print_json(&approval)?,
        false => output::print(&format!(
            "approval {} {}\n",
            output::plain(&approval.approval_id),
            approval.status.as_str()
        ))?,
    }
    Ok(Exit::Ok)
}
