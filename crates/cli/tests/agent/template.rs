//! `greenroom runner new --from local-agent`: a copy that builds, answers and keeps the contract.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[expect(clippy::disallowed_methods, reason = "the programs under test are started here")]
fn run(program: &str, dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).env("CARGO_PROFILE_DEV_DEBUG", "0");
    // Its own project, yet what was built for it once is not built again.
    command
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("local-agent-copy"));
    command.output().unwrap()
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The files of a folder, by their paths in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(open) = folders.pop() {
        for entry in std::fs::read_dir(open).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path().strip_prefix(folder).unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_copy_has_every_source_as_it_is_but_for_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["runner", "new", "--lang", "rust", "--from", "local-agent", "my-agent"];
    let made = run(crate::PROGRAM, dir.path(), &args);
    assert!(made.status.success(), "{}", told(&made));
    let original = workspace().join("runners/local-agent/src");
    let copy = dir.path().join("my-agent/src");
    let sources: Vec<PathBuf> =
        files(&copy).into_iter().filter(|path| path != Path::new("main.rs")).collect();
    assert_eq!(
        sources,
        files(&original),
        "crates/cli/src/commands/runner_new/local_agent.rs lists them"
    );
    for path in sources.iter().filter(|path| *path != Path::new("lib.rs")) {
        let text = |folder: &Path| std::fs::read_to_string(folder.join(path)).unwrap();
        assert_eq!(text(&copy), text(&original), "{}", path.display());
    }
    let library = std::fs::read_to_string(copy.join("lib.rs")).unwrap();
    assert!(library.contains("Plugin::new(\"local\", \"my-agent\")"), "{library}");
}

#[test]
fn only_rust_has_a_copy_of_the_local_agent() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["runner", "new", "--lang", "python", "--from", "local-agent", "my-agent"];
    let made = run(crate::PROGRAM, dir.path(), &args);
    assert_eq!(made.status.code(), Some(2));
    assert!(told(&made).contains("the template `local-agent` is for Rust"), "{}", told(&made));
    assert!(!dir.path().join("my-agent").exists());
}

#[test]
fn a_copy_builds_answers_and_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["runner", "new", "--lang", "rust", "--from", "local-agent", "my-agent"];
    run(crate::PROGRAM, dir.path(), &args);
    let folder = dir.path().join("my-agent");
    // The versions that are here already: nothing is fetched.
    std::fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let tested =
        run(env!("CARGO"), &folder, &["test", "--offline", "--quiet", "--test", "answers"]);
    assert!(tested.status.success(), "{}", told(&tested));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("local-agent-copy/debug/my-agent");
    let kept = run(crate::PROGRAM, dir.path(), &["runner", "test", program.to_str().unwrap()]);
    assert!(kept.status.success(), "{}", told(&kept));
}
