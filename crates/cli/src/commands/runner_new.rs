//! `greenroom runner new`: writes a runner that works.
//!
//! Invariant: writes into a new folder only.

mod local_agent;

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use greenroom_sdk::template::{self, SdkSource};
use std::path::{Path, PathBuf};

/// Where the SDKs stand in the checkout this program was built from.
const SDK_IN_CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk");
const PYTHON_SDK_IN_CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdks/python");

/// Write a new runner that works
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom runner new --lang python my-runner
  greenroom runner new --lang python --from plain my-script
  greenroom runner new --lang rust --from local-agent my-agent")]
pub struct Args {
    /// Name of the runner: lower case letters, digits and dashes
    name: String,
    /// Language to write it in
    #[arg(long, value_enum)]
    lang: Lang,
    /// What to begin with, instead of the smallest runner: a copy of the built-in agent (Rust), or one
    /// file without any dependency (Python)
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
    Plain,
}

pub fn run(args: &Args) -> Outcome {
    if !is_runner_name(&args.name) {
        return Err(Failure::new(format!("`{}` is not a name for a runner", args.name))
            .exit(Exit::Usage)
            .hint("write lower case letters, digits and dashes, e.g. `my-runner`"));
    }
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let files = match (args.lang, args.from) {
        (Lang::Rust, None) => template::rust(&args.name, sdk(SDK_IN_CHECKOUT, "Cargo.toml")),
        (Lang::Rust, Some(Origin::LocalAgent)) => {
            let sdk = sdk(SDK_IN_CHECKOUT, "Cargo.toml");
            template::local_agent(&args.name, sdk, local_agent::SOURCES)
        }
        (Lang::Python, None) => {
            template::python(&args.name, sdk(PYTHON_SDK_IN_CHECKOUT, "pyproject.toml"))
        }
        (Lang::Python, Some(Origin::Plain)) => template::plain_python(&args.name),
        (Lang::Rust, Some(Origin::Plain)) => {
            return Err(Failure::new("a runner without any dependency is written in Python")
                .exit(Exit::Usage)
                .hint("write `--lang python --from plain`"));
        }
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
        Lang::Python if args.from.is_some() => {
            format!("greenroom runner test python3 {dir}/runner.py")
        }
        Lang::Python => {
            format!(
                "python3 -m venv {dir}/.venv && {dir}/.venv/bin/pip install -r {dir}/requirements.txt"
            )
        }
    };
    output::note(&format!(
        "wrote `{dir}`\nhint: `{next}` comes next; its README says how to try and bind it"
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

/// The checkout, as long as it is there.
fn sdk(path: &'static str, file: &str) -> SdkSource<'static> {
    match Path::new(path).join(file).exists() {
        true => SdkSource::Path(path),
        false => SdkSource::Published,
    }
}

fn is_runner_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(allowed)
}
