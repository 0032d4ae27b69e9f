//! `greenroom init`: writes a commented configuration.
//!
//! Invariant: never overwrites a file.

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

const TEMPLATE: &str = include_str!("init.toml");

/// Write a commented greenroom.toml
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom init
  greenroom init --config /etc/greenroom/greenroom.toml")]
pub struct Args {
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "greenroom.toml")]
    config: PathBuf,
}

pub fn run(args: &Args) -> Outcome {
    let path = args.config.display();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(format!("`{path}` already exists"))
            .hint("edit it, or choose another file with `--config`"),
        _ => anyhow::Error::new(error).context(format!("cannot write `{path}`")).into(),
    };
    let mut file = std::fs::File::create_new(&args.config).map_err(failed)?;
    file.write_all(TEMPLATE.as_bytes()).map_err(failed)?;
    output::note(&format!(
        "wrote `{path}`\nhint: `greenroom serve` uses it; a host that already runs in this folder loads it by itself"
    ));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_config::{Config, Surroundings, parse};
    use std::path::Path;

    fn read(text: &str) -> Config {
        let env = |_: &str| Some(uuid::Uuid::now_v7().to_string());
        let read = |_: &Path| Err(ErrorKind::NotFound.into());
        let known = crate::wiring::known();
        let dir = Path::new("/srv");
        let around = Surroundings { dir, env: &env, read: &read, known: &known };
        parse(Path::new("greenroom.toml"), text, &around).unwrap().config
    }

    #[test]
    fn what_is_written_is_the_default_and_valid_once_uncommented() {
        assert_eq!(read(TEMPLATE), Config::default());
        let is_key = |line: &str| line.starts_with("# [") || line.contains(" = ");
        let keys = TEMPLATE.lines().filter(|line| line.starts_with("# ") && is_key(line));
        let keys = keys.filter(|line| !line.contains("Never write a secret"));
        let text: Vec<&str> = keys.map(|line| &line[2..]).collect();
        let config = read(&text.join("\n"));
        let counts = (config.agents.len(), config.models.len(), config.tools.len());
        assert_eq!((counts, config.budget_day), ((2, 1, 1), Some(5_000_000)));
        let agent = &config.agents["my-agent"];
        assert_eq!(agent.grant.models, ["main"]);
        assert_eq!(agent.budget.run, Some(500_000));
        let helper = &config.agents["helper"];
        assert_eq!(helper.runner.to_string(), "plugin:greenroom/local-agent/default");
        assert_eq!(greenroom_local_agent::check_config(&helper.config), Ok(()));
    }
}
