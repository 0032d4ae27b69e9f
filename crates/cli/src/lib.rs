//! The `greenroom` program: its commands, and the wiring from the configuration to the other crates.
//!
//! Invariant: the only crate that prints or exits.

mod backup;
pub mod calls;
pub mod cli;
pub mod client;
pub mod commands;
mod cut;
mod data_folder;
mod doors;
pub mod failure;
mod granted;
mod logging;
pub mod output;
mod plugin_files;
mod plugin_manifest;
mod programs;
pub mod reading;
mod secrets;
mod sign_in;
pub mod times;
mod timezone;
mod visible;
mod warnings;
mod watch;
mod wiring;
mod workspaces;

use cli::{
    Approvals, ApprovalsCommand, Artifacts, Backup, Command, Deliveries, Dev, Events, Harness,
    Runner, Runs, Workspace,
};
use failure::{Failure, Outcome};

/// Runs a command.
pub async fn run(command: Command) -> Outcome {
    match command {
        Command::Open(args) => commands::open::run(args).await,
        Command::Init(args) => commands::init::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Send(args) => commands::send::run(args).await,
        Command::Runs(Runs::List(args)) => commands::runs_list::run(args).await,
        Command::Runs(Runs::Show(args)) => commands::runs_show::run(args).await,
        Command::Runs(Runs::Follow(args)) => commands::runs_follow::run(args).await,
        Command::Runs(Runs::Cancel(args)) => commands::runs_cancel::run(args).await,
        Command::Runs(Runs::Answer(args)) => commands::runs_answer::run(args).await,
        Command::Runs(Runs::Replay(args)) => commands::runs_replay::run(args).await,
        Command::Approvals(args) => approvals(args).await,
        Command::Deliveries(command) => deliveries(command).await,
        Command::Artifacts(Artifacts::Put(args)) => commands::artifacts_put::run(args).await,
        Command::Artifacts(Artifacts::Get(args)) => commands::artifacts_get::run(args).await,
        Command::Artifacts(Artifacts::Show(args)) => commands::artifacts_show::run(args).await,
        Command::History(args) => commands::history::run(args).await,
        Command::Events(Events::List(args)) => commands::events_list::run(args).await,
        Command::Events(Events::Show(args)) => commands::events_show::run(args).await,
        Command::Audit(args) => commands::audit::run(args).await,
        Command::Runner(Runner::List(args)) => commands::runner_list::run(args).await,
        Command::Runner(Runner::New(args)) => commands::runner_new::run(&args),
        Command::Runner(Runner::Add(args)) => commands::runner_add::run(&args),
        Command::Runner(Runner::Test(args)) => commands::runner_test::run(args).await,
        Command::Harness(Harness::List(args)) => commands::harness_list::run(&args),
        Command::Harness(Harness::Add(args)) => commands::harness_add::run(&args),
        Command::Workspace(Workspace::List(args)) => commands::workspace::list(&args),
        Command::Workspace(Workspace::Show(args)) => commands::workspace::show(&args),
        Command::Workspace(Workspace::Diff(args)) => commands::workspace::diff(&args),
        Command::Workspace(Workspace::Remove(args)) => commands::workspace::remove(&args),
        Command::Tool(args) => commands::tool::run(args).await,
        Command::SignIn(args) => commands::sign_in::run(args).await,
        Command::SignOut(args) => commands::sign_out::run(args).await,
        Command::Serve(args) => commands::serve::run(args).await,
        Command::Check(args) => commands::check::run(&args),
        Command::Dev(Dev::ModelServer(args)) => commands::dev_model_server::run(args).await,
        Command::Bench(args) => commands::bench::run(args).await,
        Command::Backup(Backup::Create(args)) => commands::backup_create::run(args).await,
        Command::Backup(Backup::Restore(args)) => commands::backup_restore::run(args).await,
        Command::Backup(Backup::List(args)) => commands::backup_list::run(&args),
        Command::Move(args) => commands::move_to::run(args).await,
        Command::Doctor(args) => commands::doctor::run(&args).await,
        Command::Supervise(_) | Command::RunnerProcess(_) => {
            Err(Failure::new("this command is started by the host only"))
        }
    }
}

async fn approvals(Approvals { command, list }: Approvals) -> Outcome {
    match command.unwrap_or(ApprovalsCommand::List(list)) {
        ApprovalsCommand::List(args) => commands::approvals_list::run(args).await,
        ApprovalsCommand::Show(args) => commands::approvals_show::run(args).await,
        ApprovalsCommand::Allow(args) => commands::approvals_answer::run(args, "allow").await,
        ApprovalsCommand::Deny(args) => commands::approvals_answer::run(args, "deny").await,
    }
}

async fn deliveries(command: Deliveries) -> Outcome {
    match command {
        Deliveries::List(args) => commands::deliveries_list::run(args).await,
        Deliveries::Retry(args) => {
            commands::deliveries_resolve::run(args, "retry", "will be sent again").await
        }
        Deliveries::Discard(args) => {
            commands::deliveries_resolve::run(args, "discard", "discarded").await
        }
    }
}
