//! The files of a new runner, as written by `greenroom runner new`.
//!
//! Invariant: the files build and pass their own test unchanged.

use std::path::PathBuf;

const RUST: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
    ("src/main.rs", include_str!("../templates/rust/src/main.rs.in")),
    ("tests/answers.rs", include_str!("../templates/rust/tests/answers.rs.in")),
    ("README.md", include_str!("../templates/rust/README.md.in")),
];

/// Files added to the sources of a copied runner.
const LOCAL_AGENT: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../templates/local-agent/Cargo.toml.in")),
    ("src/main.rs", include_str!("../templates/local-agent/src/main.rs.in")),
    ("tests/answers.rs", include_str!("../templates/local-agent/tests/answers.rs.in")),
    ("README.md", include_str!("../templates/local-agent/README.md.in")),
];

const PYTHON: [(&str, &str); 4] = [
    ("runner.py", include_str!("../templates/python-sdk/runner.py")),
    ("tests/test_runner.py", include_str!("../templates/python-sdk/tests/test_runner.py")),
    ("requirements.txt", include_str!("../templates/python-sdk/requirements.txt.in")),
    ("README.md", include_str!("../templates/python-sdk/README.md.in")),
];

const PLAIN_PYTHON: [(&str, &str); 2] = [
    ("runner.py", include_str!("../templates/python/runner.py")),
    ("README.md", include_str!("../templates/python/README.md.in")),
];

/// Where a new runner gets its SDK from.
#[derive(Debug, Clone, Copy)]
pub enum SdkSource<'a> {
    /// The version of this crate, from the registry.
    Published,
    /// A checkout: the path of `crates/sdk` or `sdks/python`.
    Path(&'a str),
}

/// The files of a Rust runner, relative to its folder. `name` is lower case with dashes.
pub fn rust(name: &str, sdk: SdkSource<'_>) -> Vec<(PathBuf, String)> {
    fill(&RUST, &[("{{name}}", name), ("{{sdk}}", &dependency(sdk))])
}

/// The files of a Rust runner that starts as a copy of the local agent, with the given sources.
pub fn local_agent(
    name: &str,
    sdk: SdkSource<'_>,
    sources: &[(&str, &str)],
) -> Vec<(PathBuf, String)> {
    let library = name.replace('-', "_");
    let sdk = dependency(sdk);
    let mut files =
        fill(&LOCAL_AGENT, &[("{{name}}", name), ("{{crate}}", &library), ("{{sdk}}", &sdk)]);
    let plugin = format!("\"local\", \"{name}\"");
    files.extend(fill(sources, &[("\"greenroom\", \"local-agent\"", &plugin)]));
    files
}

fn dependency(sdk: SdkSource<'_>) -> String {
    match sdk {
        SdkSource::Published => format!("\"{}\"", env!("CARGO_PKG_VERSION")),
        // TOML strings are escaped like JSON.
        SdkSource::Path(path) => format!("{{ path = {} }}", serde_json::Value::from(path)),
    }
}

/// The files of a Python runner with the SDK and a test.
pub fn python(name: &str, sdk: SdkSource<'_>) -> Vec<(PathBuf, String)> {
    let sdk = match sdk {
        SdkSource::Published => format!("greenroom-sdk=={}", env!("CARGO_PKG_VERSION")),
        SdkSource::Path(path) => format!("greenroom-sdk @ file://{}", path.replace(' ', "%20")),
    };
    fill(&PYTHON, &[("{{name}}", name), ("my-runner", name), ("{{sdk}}", &sdk)])
}

/// The files of a Python runner without the SDK: one file, no dependencies.
pub fn plain_python(name: &str) -> Vec<(PathBuf, String)> {
    fill(&PLAIN_PYTHON, &[("{{name}}", name), ("my-runner", name)])
}

fn fill(files: &[(&str, &str)], values: &[(&str, &str)]) -> Vec<(PathBuf, String)> {
    let filled = |text: &str| {
        values
            .iter()
            .fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    };
    files.iter().map(|(path, text)| (PathBuf::from(path), filled(text))).collect()
}
