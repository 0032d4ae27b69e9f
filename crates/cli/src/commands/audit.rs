//! `greenroom audit`: calls of runners, newest first.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::{output, times};
use greenroom_protocol::ErrorCode;
use greenroom_protocol::api::audit::AuditView;

/// List the calls of runners, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A record says who called what and how it ended, never what was asked or answered. Records of calls that only
read stand here within a second.

Examples:
  greenroom audit --run run_0197f2c1
  greenroom audit --denied
  greenroom audit --method state.set --code payload_too_large --limit 100 --json")]
pub struct Args {
    /// Only calls of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Only calls of this method, e.g. `history.page`
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// Only calls with this outcome: `ok` or an error code
    #[arg(long, value_parser = codes())]
    code: Option<String>,
    /// Only calls that were refused
    #[arg(long)]
    denied: bool,
    #[command(flatten)]
    page: super::PageArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

fn codes() -> Vec<&'static str> {
    std::iter::once("ok").chain(ErrorCode::ALL.map(ErrorCode::as_str)).collect()
}

pub async fn run(args: Args) -> Outcome {
    let denied = args.denied.then(|| "true".to_owned());
    let filters = [
        ("run_id", &args.run),
        ("method", &args.method),
        ("code", &args.code),
        ("denied", &denied),
    ];
    let filters = filters.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
    let client = Client::new(&args.host)?;
    let page: Page<AuditView> =
        args.page.read(&client, &["v1", "audit"], filters.collect()).await?;
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    let head = ["AT", "METHOD", "CODE", "RESOURCE", "SCOPE", "RUN", "PLUGIN", "IN", "OUT", "TOOK"];
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    super::print_page(head.map(str::to_owned).to_vec(), rows, &page.next_cursor)
}

fn row(call: &AuditView) -> Vec<String> {
    vec![
        times::short(&call.at),
        call.method.clone(),
        call.code.clone(),
        call.resource.clone().unwrap_or_default(),
        call.scope.clone().unwrap_or_default(),
        call.run_id.clone().unwrap_or_default(),
        call.plugin.clone(),
        call.bytes_in.to_string(),
        call.bytes_out.to_string(),
        took(call.duration_us),
    ]
}

fn took(duration_us: i64) -> String {
    match duration_us {
        ..1_000 => format!("{duration_us} µs"),
        1_000..1_000_000 => format!("{}.{} ms", duration_us / 1000, duration_us % 1000 / 100),
        _ => format!("{}.{} s", duration_us / 1_000_000, duration_us % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::took;

    #[test]
    fn a_duration_has_the_unit_that_fits() {
        let cases = [(0, "0 µs"), (999, "999 µs"), (1_250, "1.2 ms"), (2_900_000, "2.9 s")];
        for (duration_us, text) in cases {
            assert_eq!(took(duration_us), text);
        }
    }
}
