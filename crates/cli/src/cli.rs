//! The command line: every command, its options and its help.
//!
//! Invariant: structure only; what a command does is in its own file under `commands/`.

use crate::commands;
use clap::{ArgMatches, Parser, Subcommand};

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  failed
  2  invalid arguments or configuration
  3  not found, or no host answers
  4  the run that was followed failed, was cancelled or timed out

Environment:
  GREENROOM_URL     address of the host, e.g. http://127.0.0.1:8700
  GREENROOM_TOKEN   token for that host
  GREENROOM_CONFIG  configuration file of `serve`, `check`, `doctor`, `tool`, `backup` and `move`
  GREENROOM_DATA    data folder
  GREENROOM_LOG     what is logged, e.g. `info` or `greenroom_host=debug`
  GREENROOM_MODEL   model to use if none is configured, as `provider/model`
  NO_COLOR          when set, output has no colours

Examples:
  greenroom serve
  greenroom send \"hello\" --follow
  greenroom runs list --status failed";

/// An agent host: events in, a runner's answer out, every fact kept
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, after_help = AFTER_HELP, max_term_width = 100)]
#[command(arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// Whether a command line requests JSON; then errors are JSON as well.
pub fn wants_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, inner)) => wants_json(inner),
        None => matches!(matches.try_get_one::<bool>("json"), Ok(Some(true))),
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(commands::serve::Args),
    Open(commands::open::Args),
    Init(commands::init::Args),
    Check(commands::check::Args),
    Send(commands::send::Args),
    #[command(subcommand)]
    Runs(Runs),
    Approvals(Approvals),
    #[command(subcommand)]
    Deliveries(Deliveries),
    #[command(subcommand)]
    Artifacts(Artifacts),
    History(commands::history::Args),
    #[command(subcommand)]
    Events(Events),
    Audit(commands::audit::Args),
    #[command(subcommand)]
    Runner(Runner),
    #[command(subcommand)]
    Harness(Harness),
    #[command(subcommand)]
    Workspace(Workspace),
    Tool(commands::tool::Args),
    SignIn(commands::sign_in::Args),
    SignOut(commands::sign_out::Args),
    #[command(subcommand)]
    Dev(Dev),
    #[command(subcommand)]
    Backup(Backup),
    Move(commands::move_to::Args),
    Bench(commands::bench::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
    #[command(hide = true)]
    Supervise(commands::supervise::Args),
    #[command(hide = true)]
    RunnerProcess(commands::runner_process::Args),
}

/// List, show, follow, cancel, replay and answer runs
#[derive(Debug, Subcommand)]
pub enum Runs {
    List(commands::runs_list::Args),
    Show(commands::runs_show::Args),
    Follow(commands::runs_follow::Args),
    Cancel(commands::runs_cancel::Args),
    Replay(commands::runs_replay::Args),
    Answer(commands::runs_answer::Args),
}

/// List, show, allow and deny pending approvals
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without a subcommand, lists pending approvals.

Examples:
  greenroom approvals
  greenroom approvals show apr_0197…
  greenroom approvals allow apr_0197…"
)]
pub struct Approvals {
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
    #[command(flatten)]
    pub list: commands::approvals_list::Args,
}

#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    List(commands::approvals_list::Args),
    Show(commands::approvals_show::Args),
    /// Allow an action: it is carried out once
    #[command(after_help = "\
Examples:
  greenroom approvals allow apr_0197…
  greenroom approvals allow apr_0197… --nonce 5f0c… --json")]
    Allow(commands::approvals_answer::Args),
    /// Deny an action
    #[command(after_help = "\
Examples:
  greenroom approvals deny apr_0197…")]
    Deny(commands::approvals_answer::Args),
}

/// List, retry and discard deliveries to surfaces
#[derive(Debug, Subcommand)]
pub enum Deliveries {
    List(commands::deliveries_list::Args),
    /// Retry deliveries that failed or have an unknown outcome
    #[command(after_help = "\
A delivery keeps its id and its position in the order of its target; its retry time starts again.
One with an unknown outcome may arrive twice.

Examples:
  greenroom deliveries retry dlv_0197…
  greenroom deliveries retry --failed --surface helpdesk
  greenroom deliveries retry --failed --unknown --run run_0197… --json")]
    Retry(commands::deliveries_resolve::Args),
    /// Discard deliveries without sending them
    #[command(after_help = "\
Pending deliveries can be discarded too; later deliveries of the same target continue.

Examples:
  greenroom deliveries discard dlv_0197… dlv_0198…
  greenroom deliveries discard --unknown --surface helpdesk")]
    Discard(commands::deliveries_resolve::Args),
}

/// Upload, download and show artifacts
#[derive(Debug, Subcommand)]
pub enum Artifacts {
    Put(commands::artifacts_put::Args),
    Get(commands::artifacts_get::Args),
    Show(commands::artifacts_show::Args),
}

/// List and show events
#[derive(Debug, Subcommand)]
pub enum Events {
    List(commands::events_list::Args),
    Show(commands::events_show::Args),
}

/// List, create, add and test runners
#[derive(Debug, Subcommand)]
pub enum Runner {
    List(commands::runner_list::Args),
    New(commands::runner_new::Args),
    Add(commands::runner_add::Args),
    Test(commands::runner_test::Args),
}

/// List and add external harnesses: Claude Code, Codex, Gemini CLI, goose, Kimi Code, OpenCode
#[derive(Debug, Subcommand)]
pub enum Harness {
    List(commands::harness_list::Args),
    Add(commands::harness_add::Args),
}

/// List, show, compare and remove the workspaces of external harnesses
#[derive(Debug, Subcommand)]
pub enum Workspace {
    List(commands::workspace::ListArgs),
    Show(commands::workspace::OneArgs),
    /// Print the changes of a `git` workspace since its base
    Diff(commands::workspace::OneArgs),
    /// Remove a workspace with everything in it
    Remove(commands::workspace::RemoveArgs),
}

/// Create, restore and list backups
#[derive(Debug, Subcommand)]
pub enum Backup {
    Create(commands::backup_create::Args),
    Restore(commands::backup_restore::Args),
    List(commands::backup_list::Args),
}

/// Tools for runner developers and tests
#[derive(Debug, Subcommand)]
pub enum Dev {
    ModelServer(commands::dev_model_server::Args),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_names_every_variable_of_the_environment() {
        for (name, about) in greenroom_config::env::ALL {
            assert!(AFTER_HELP.contains(&format!("{name:<16}  {about}")), "{name}");
        }
    }
}
