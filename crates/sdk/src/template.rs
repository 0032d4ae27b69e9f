//! The files of a new runner, as `greenroom runner new` writes them.
//!
//! Invariant: what is written builds and passes its own test as it is.

use std::path::PathBuf;

const RUST: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
    ("src/main.rs", include_str!("../templates/rust/src/main.rs.in")),
    ("tests/answers.rs", include_str!("../templates/rust/tests/answers.rs.in")),
    ("README.md", include_str!("../templates/rust/README.md.in")),
];

const PYTHON: [(&str, &str); 2] = [
    ("runner.py", include_str!("../templates/python/runner.py")),
    ("README.md", include_str!("../templates/python/README.md.in")),
];

/// Where a new Rust runner takes the SDK from.
#[derive(Debug, Clone, Copy)]
pub enum SdkSource<'a> {
    /// The version of this crate, from the registry.
    Published,
    /// A checkout: the path of `crates/sdk`.
    Path(&'a str),
}

/// The files of a runner in Rust, relative to its folder. `name` is lower case with dashes.
pub fn rust(name: &str, sdk: SdkSource<'_>) -> Vec<(PathBuf, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let dependency = match sdk {
        SdkSource::Published => format!("\"{version}\""),
        // A TOML string is escaped as JSON is.
        SdkSource::Path(path) => format!("{{ path = {} }}", serde_json::Value::from(path)),
    };
    fill(&RUST, &[("{{name}}", name), ("{{sdk}}", &dependency)])
}

/// The files of a runner in Python: one file, no dependency.
pub fn python(name: &str) -> Vec<(PathBuf, String)> {
    fill(&PYTHON, &[("{{name}}", name), ("my-runner", name)])
}

fn fill(files: &[(&str, &str)], values: &[(&str, &str)]) -> Vec<(PathBuf, String)> {
    let filled = |text: &str| {
        values.iter().fold(text.to_owned(), |text, (hole, value)| text.replace(hole, value))
    };
    files.iter().map(|(path, text)| (PathBuf::from(path), filled(text))).collect()
}
