//! `greenroom runner test`: checks any runner process against the contract (CONTRACT §3).

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use greenroom_config as config;
use greenroom_protocol::Object;
use greenroom_runner_check::Plan;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Check a runner process against the contract
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Starts the command and calls it as the host does: handshake, manifests, one run, two concurrent
runs, cancel, unknown methods, invalid lines, shutdown, end of input.
Calls of the runner to the host are refused; a run that fails because of it fails the test.

Examples:
  greenroom runner test python3 runner.py
  greenroom runner test --text \"hi\" --config '{\"tone\":\"dry\"}' -- target/release/my-runner --verbose")]
pub struct Args {
    /// Runner to check, by its name in the plugin [default: the first]
    #[arg(long, value_name = "NAME")]
    runner: Option<String>,
    /// Message of the test runs
    #[arg(long, default_value = "hello")]
    text: String,
    /// `ctx.config` of the test runs, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    config: Option<Object>,
    /// Seconds a single step may take
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command that starts the runner
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<String>,
}

pub async fn run(args: Args) -> Outcome {
    if let Some(plugin) = args.command.iter().map(Path::new).find_map(plugin_of) {
        let plugin = plugin.display();
        let message = format!("`{plugin}` is a LangBot plugin, which this command cannot check");
        let hint =
            format!("add it with `greenroom runner add {plugin}` and try it with `greenroom send`");
        return Err(Failure::new(message).exit(Exit::Usage).hint(hint));
    }
    let plan = Plan {
        command: args.command,
        runner: args.runner,
        text: args.text,
        config: args.config.unwrap_or_default(),
        timeout: Duration::from_secs(args.timeout),
    };
    let report = greenroom_runner_check::check(&plan).await;
    match args.json {
        true => output::print_json(&report)?,
        false => output::print(&output::plain(&report.to_string()))?,
    }
    Ok(if report.ok { Exit::Ok } else { Exit::Failure })
}

/// The folder of a LangBot plugin, if an argument of the command is in one.
fn plugin_of(path: &Path) -> Option<PathBuf> {
    let folder = match path.is_dir() {
        true => path.to_owned(),
        false if path.is_file() => Path::new(".").join(path.parent()?),
        false => return None,
    };
    config::is_langbot_plugin(&folder).then_some(folder)
}

fn object(text: &str) -> Result<Object, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}
