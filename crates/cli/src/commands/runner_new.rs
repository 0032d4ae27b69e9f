//! `greenroom runner new`: writes a runner that works.
//!
//! Invariant: writes into a new folder only.

mod local_agent;

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use greenroom_sdk::template::{self, SdkSource};
use std::path::{Path, PathBuf};

/// Where the SDK stands in the checkout this program was built from.
const SDK_IN_CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk");

/// Write a new runner that works
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom runner new --lang python my-runner
  greenroom runner test python3 my-runner/runner.py
  greenroom runner new --lang rust --from local-agent my-agent")]
pub struct Args {
    /// Name of the runner: lower case letters, digits and dashes
    name: String,
    /// Language to write it in
    #[arg(long, value_enum)]
    lang: Lang,
    /// Built-in runner to begin with a copy of, instead of the smallest one; in Rust
    #[arg(long, value_enum)]
    from: Option<Origin>,
    /// Folder to write [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Lang {
    Rust,
    Python,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Origin {
    LocalAgent,
}

pub fn run(args: &Args) -> Outcome {
    if !is_runner_name(&args.name) {
        return Err(Failure::new(format!("`{}` is not a name for a runner", args.name))
            .exit(Exit::Usage)
            .hint("write lower case letters, digits and dashes, e.g. `my-runner`"));
    }
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let files = match (args.lang, args.from) {
        (Lang::Rust, None) => template::rust(&args.name, sdk()),
        (Lang::Rust, Some(Origin::LocalAgent)) => {
            template::local_agent(&args.name, sdk(), local_agent::SOURCES)
        }
        (Lang::Python, None) => template::python(&args.name),
        (Lang::Python, Some(Origin::LocalAgent)) => {
            return Err(Failure::new("the local agent is written in Rust")
                .exit(Exit::Usage)
                .hint("write `--lang rust --from local-agent`"));
        }
    };
    if dir.exists() {
        return Err(Failure::new(format!("`{}` exists already", dir.display()))
            .hint("name another folder with `--dir`"));
    }
    for (path, text) in files {
        write(&dir.join(path), &text)?;
    }
    let dir = dir.display();
    let next = match args.lang {
        Lang::Rust => format!("cargo test --manifest-path {dir}/Cargo.toml"),
        Lang::Python => format!("greenroom runner test python3 {dir}/runner.py"),
    };
    output::note(&format!(
        "wrote `{dir}`\nhint: `{next}` tries it; its README says how to bind it"
    ));
    Ok(Exit::Ok)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| {
        anyhow::Error::new(error).context(format!("cannot write `{}`", path.display())).into()
    })
}

fn sdk() -> SdkSource<'static> {
    match Path::new(SDK_IN_CHECKOUT).join("Cargo.toml").exists() {
        true => SdkSource::Path(SDK_IN_CHECKOUT),
        false => SdkSource::Published,
    }
}

fn is_runner_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(allowed)
}
