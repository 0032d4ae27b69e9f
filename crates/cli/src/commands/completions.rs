//! `greenroom completions`: shell completions.

use crate::cli::Cli;
use crate::failure::{Exit, Outcome};
use crate::output;
use clap::CommandFactory;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom completions bash > ~/.local/share/bash-completion/completions/greenroom
  greenroom completions fish > ~/.config/fish/completions/greenroom.fish")]
pub struct Args {
    shell: clap_complete::Shell,
}

pub fn run(args: &Args) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "greenroom", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
