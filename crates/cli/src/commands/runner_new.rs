//! `greenroom runner new`: creates a working runner.
//!
//! Invariant: writes into a new folder only.

mod local_agent;

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use greenroom_sdk::template::{self, SdkSource};
use std::path::{Path, PathBuf};

/// Names that a Rust package cannot have: keywords and standard crates.
const RUST_WORDS: &str = "abstract alloc as async await become box break const continue core crate do dyn else \
    enum extern false final fn for gen if impl in let loop macro match mod move mut override priv \
    proc-macro pub ref return self static std struct super test trait true try type typeof unsafe \
    unsized use virtual where while yield";
const NAME_CHARS_MAX: usize = 64;

/// Create a new, working runner
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom runner new --lang python my-runner
  greenroom runner new --lang python --from plain my-script
  greenroom runner new --lang rust --from local-agent my-agent")]
pub struct Args {
    /// Name of the runner: lowercase letters, digits and dashes
    name: String,
    /// Programming language
    #[arg(long, value_enum)]
    lang: Lang,
    /// Template, instead of the smallest runner: a copy of the built-in agent (Rust), or one file without
    /// dependencies (Python)
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
    if let Some(hint) = wrong_name(&args.name, args.lang) {
        return Err(Failure::new(format!("`{}` is not a name for a runner", args.name))
            .exit(Exit::Usage)
            .hint(hint));
    }
    let (rust_sdk, python_sdk) = (in_checkout(1, "sdk"), in_checkout(2, "sdks/python"));
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let files = match (args.lang, args.from) {
        (Lang::Rust, None) => template::rust(&args.name, sdk(&rust_sdk, "Cargo.toml")),
        (Lang::Rust, Some(Origin::LocalAgent)) => {
            let sdk = sdk(&rust_sdk, "Cargo.toml");
            template::local_agent(&args.name, sdk, local_agent::SOURCES)
        }
        (Lang::Python, None) => template::python(&args.name, sdk(&python_sdk, "pyproject.toml")),
        (Lang::Python, Some(Origin::Plain)) => template::plain_python(&args.name),
        (Lang::Rust, Some(Origin::Plain)) => {
            return Err(Failure::new("the template `plain` is for Python")
                .exit(Exit::Usage)
                .hint("write `--lang python --from plain`"));
        }
        (Lang::Python, Some(Origin::LocalAgent)) => {
            return Err(Failure::new("the template `local-agent` is for Rust")
                .exit(Exit::Usage)
                .hint("write `--lang rust --from local-agent`"));
        }
    };
    if dir.exists() {
        return Err(Failure::new(format!("`{}` already exists", dir.display()))
            .hint("choose another folder with `--dir`"));
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
        "wrote `{dir}`\nhint: run `{next}` next; its README explains how to test and bind it"
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

/// A folder of the checkout this program was built from.
fn in_checkout(above: usize, folder: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(above).unwrap_or(here);
    root.join(folder).display().to_string()
}

/// The checkout, if it still exists.
fn sdk<'p>(path: &'p str, file: &str) -> SdkSource<'p> {
    match Path::new(path).join(file).exists() {
        true => SdkSource::Path(path),
        false => SdkSource::Published,
    }
}

/// What is wrong with a name.
fn wrong_name(name: &str, lang: Lang) -> Option<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_word = || RUST_WORDS.split_whitespace().any(|word| word == name);
    if name.is_empty() || !name.chars().all(allowed) {
        return Some("write lowercase letters, digits and dashes, e.g. `my-runner`".to_owned());
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some("begin with a lowercase letter, e.g. `my-runner`".to_owned());
    }
    if name.len() > NAME_CHARS_MAX {
        return Some(format!("write at most {NAME_CHARS_MAX} characters, e.g. `my-runner`"));
    }
    (matches!(lang, Lang::Rust) && is_word())
        .then(|| format!("this name is reserved in Rust; write e.g. `{name}-runner`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_refused_with_what_it_lacks() {
        let lacks = |name: &str, lang| wrong_name(name, lang).unwrap_or_default();
        for name in ["", "My Runner", "my_runner", "läufer"] {
            let hint = "write lowercase letters, digits and dashes, e.g. `my-runner`";
            assert_eq!(lacks(name, Lang::Python), hint, "{name}");
        }
        for name in ["1abc", "-abc"] {
            let hint = "begin with a lowercase letter, e.g. `my-runner`";
            assert_eq!(lacks(name, Lang::Python), hint, "{name}");
        }
        let hint = "write at most 64 characters, e.g. `my-runner`";
        assert_eq!(lacks(&"a".repeat(65), Lang::Rust), hint);
        for name in ["a", "my-runner", "fn-runner", "abc1"] {
            assert_eq!(wrong_name(name, Lang::Rust), None, "{name}");
        }
        assert_eq!(wrong_name(&"a".repeat(64), Lang::Rust), None);
    }

    #[test]
    fn what_rust_keeps_for_itself_is_no_name_in_rust_alone() {
        for name in ["fn", "async", "self", "type", "core", "proc-macro"] {
            let hint = format!("this name is reserved in Rust; write e.g. `{name}-runner`");
            assert_eq!(wrong_name(name, Lang::Rust), Some(hint));
            assert_eq!(wrong_name(name, Lang::Python), None);
        }
    }

    #[test]
    fn the_checkout_is_named_without_detours() {
        for (path, end) in [
            (in_checkout(1, "sdk"), "/crates/sdk"),
            (in_checkout(2, "sdks/python"), "/sdks/python"),
        ] {
            assert!(path.ends_with(end) && !path.contains(".."), "{path}");
            assert!(Path::new(&path).is_dir(), "{path}");
        }
    }
}
