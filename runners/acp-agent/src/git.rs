//! `git` workspaces: a repository and a branch for each conversation.
//!
//! Invariant: the given repository and its copy are only read by sessions; the repository of a conversation is in its
//! workspace and shares only objects. Once a harness had it, git reads it behind the wall of its session.

use crate::process::{Commanded, enclosed};
use crate::settings::Wall;
use crate::workspace::{Place, create, write_atomically};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How long one git command may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(300);
/// Largest diff that is kept.
const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where a worktree belongs.
pub(crate) struct Tree<'a> {
    /// The folder of the runner.
    pub(crate) own: &'a Path,
    pub(crate) repository: &'a Path,
    pub(crate) work: &'a Path,
    /// The id of the conversation.
    pub(crate) id: &'a str,
}

pub(crate) struct Made {
    pub(crate) branch: String,
    /// The commit that the branch started from.
    pub(crate) base: String,
}

/// Creates the worktree, or finds the one that exists.
pub(crate) async fn prepare(tree: &Tree<'_>, base: Option<&str>) -> Result<Made, String> {
    let branch = format!("greenroom/{}", tree.id);
    let name: String =
        crate::sha256_hex(tree.repository.to_string_lossy().as_bytes()).chars().take(16).collect();
    let copy = repositories(tree.own).join(format!("{name}.git"));
    let marker = format!("refs/greenroom-base/{}", tree.id);
    if tree.work.join(".git").exists() {
        let base = git(&copy, &["rev-parse", &marker]).await?;
        return Ok(Made { branch, base: base.trim().to_owned() });
    }
    let repository = tree.repository.to_string_lossy().into_owned();
    if !copy.join("HEAD").exists() {
        create(&copy).map_err(|error| error.to_string())?;
        git(&copy, &["init", "--quiet", "--bare", "."]).await?;
    }
    // Into refs of its own: branches of conversations stay as they are.
    let fetched = ["fetch", "--quiet", "--no-tags", "--prune", &repository];
    let heads = [
        "+HEAD:refs/greenroom/head",
        "+refs/heads/*:refs/remotes/origin/*",
        "+refs/tags/*:refs/tags/*",
    ];
    git(&copy, &[&fetched[..], &heads[..]].concat())
        .await
        .map_err(|error| format!("cannot read the repository `{repository}`: {error}"))?;
    let start = match base {
        None => "refs/greenroom/head".to_owned(),
        Some(base) => {
            let remote = format!("refs/remotes/origin/{base}");
            match git(&copy, &["rev-parse", "--verify", "--quiet", &remote]).await {
                Ok(_) => remote,
                Err(_) => base.to_owned(),
            }
        }
    };
    let commit = format!("{start}^{{commit}}");
    let base = git(&copy, &["rev-parse", "--verify", "--quiet", &commit]).await.map_err(|_| {
        format!("`{repository}` has no branch or commit `{}`", base.unwrap_or("HEAD"))
    })?;
    let base = base.trim().to_owned();
    git(&copy, &["update-ref", &marker, &base]).await?;
    check_out(&copy, tree.work, &branch, &base).await?;
    Ok(Made { branch, base })
}

/// A repository that has its objects from the copy, complete or not at all.
async fn check_out(copy: &Path, work: &Path, branch: &str, base: &str) -> Result<(), String> {
    let part = work.with_extension("part");
    let failed = |error: std::io::Error| format!("cannot create `{}`: {error}", work.display());
    if part.exists() {
        std::fs::remove_dir_all(&part).map_err(failed)?;
    }
    create(&part).map_err(failed)?;
    git(&part, &["init", "--quiet", "."]).await?;
    let objects = format!("{}\n", copy.join("objects").display());
    let alternates = part.join(".git/objects/info/alternates");
    write_atomically(&alternates, objects.as_bytes()).map_err(failed)?;
    let from = copy.to_string_lossy().into_owned();
    let refs = ["+refs/remotes/origin/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
    git(&part, &[&["fetch", "--quiet", "--no-tags", &from][..], &refs[..]].concat()).await?;
    git(&part, &["checkout", "--quiet", "-B", branch, base]).await?;
    std::fs::rename(&part, work).map_err(failed)
}

/// All changes since the base: committed ones, uncommitted ones and new files.
pub(crate) async fn diff(
    wall: Option<&Wall>,
    place: &Place,
    base: &str,
) -> Result<Vec<u8>, String> {
    // Known to the index without their content, so that they are part of the diff.
    let add = ["add", "--intent-to-add", "--all", "."];
    let options = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", base];
    let mut diff = Vec::new();
    for args in [&add[..], &options[..]] {
        diff = match wall {
            None => git(&place.work, args).await?.into_bytes(),
            Some(wall) => git_behind(wall, place, args).await?,
        };
    }
    diff.truncate(DIFF_BYTES_MAX);
    Ok(diff)
}

const SAFE: [&str; 8] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "gc.auto=0",
    "-c",
    "safe.directory=*",
];

/// In a repository whose settings the harness wrote, which may name programs.
async fn git_behind(wall: &Wall, place: &Place, args: &[&str]) -> Result<Vec<u8>, String> {
    let words = ["git"].iter().chain(&SAFE).chain(args).map(|word| (*word).to_owned());
    let words: Vec<String> = words.collect();
    let home = place.home.to_string_lossy().into_owned();
    let env = [("HOME", home.as_str()), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_CONFIG_NOSYSTEM", "1")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let enclosure = wall.enclose(place, &words, &env, None)?;
    let Commanded { mut command, handover } = enclosed(wall, &place.id, enclosure)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("cannot start `git`: {error}"))?;
    drop(command);
    let output = child.stdout.take();
    let run = async {
        if let Some((socket, enclosure)) = handover {
            let told = tokio::task::spawn_blocking(move || enclosure.hand_over(&socket));
            told.await.map_err(|error| error.to_string()).flatten()?;
        }
        let mut said = Vec::new();
        if let Some(output) = output {
            let read = output.take(DIFF_BYTES_MAX as u64).read_to_end(&mut said).await;
            read.map_err(|error| error.to_string())?;
        }
        // A diff that is longer than what is kept: git cannot write the rest.
        let status = child.wait().await.map_err(|error| error.to_string())?;
        match status.success() || said.len() == DIFF_BYTES_MAX {
            true => Ok(said),
            false => Err(format!("`git {}` ended with {status}", args[0])),
        }
    };
    let timeout = tokio::time::timeout(GIT_TIMEOUT, run).await;
    timeout.map_err(|_| format!("`git {}` took too long", args[0]))?
}

#[expect(
    clippy::disallowed_methods,
    reason = "git is a child of the runner, inside the runner's sandbox"
)]
async fn git(dir: &Path, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(SAFE).args(args).current_dir(dir).stdin(Stdio::null()).kill_on_drop(true);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    if let Some(settings) = settings() {
        command.env("GIT_CONFIG_GLOBAL", settings);
    }
    let output = tokio::time::timeout(GIT_TIMEOUT, command.output());
    let output = output.await.map_err(|_| format!("`git {}` took too long", args[0]))?;
    let output = output.map_err(|error| format!("cannot start `git`: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let problem = String::from_utf8_lossy(&output.stderr);
            let problem = problem.trim().lines().last().unwrap_or("no reason given").to_owned();
            Err(format!("`git {}`: {problem}", args[0]))
        }
    }
}

/// A file for the processes that git starts itself, which do not get its options: the repository belongs to another user.
fn settings() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let write = || {
        let file = std::env::temp_dir().join(format!("gitconfig-{}", std::process::id()));
        write_atomically(&file, b"[safe]\n\tdirectory = *\n").ok().map(|()| file)
    };
    FILE.get_or_init(write).as_deref()
}

/// The folder of the copies.
pub(crate) fn repositories(own: &Path) -> PathBuf {
    own.join("repositories")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    async fn repository(folder: &Path) {
        let config = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        std::fs::create_dir_all(folder).unwrap();
        git(folder, &["init", "--quiet", "-b", "main"]).await.unwrap();
        std::fs::write(folder.join("a.txt"), "one\n").unwrap();
        git(folder, &["add", "."]).await.unwrap();
        git(folder, &[&config[..], &["commit", "--quiet", "-m", "first"]].concat()).await.unwrap();
    }

    #[tokio::test]
    async fn each_conversation_has_a_branch_and_the_repository_is_only_read() {
        let folder = tempfile::tempdir().unwrap();
        let (source, own) = (folder.path().join("source"), folder.path().join("own"));
        repository(&source).await;
        let before = git(&source, &["for-each-ref"]).await.unwrap();
        let work = |id: &str| own.join("workspaces").join(id).join("work");
        let (one, two) = (work("one"), work("two"));
        let tree = |id, work| Tree { own: &own, repository: &source, work, id };
        let made = prepare(&tree("one", &one), None).await.unwrap();
        prepare(&tree("two", &two), Some("main")).await.unwrap();
        assert_eq!(made.branch, "greenroom/one");
        // A hook that the harness wrote is not executed.
        let copy = std::fs::read_dir(repositories(&own)).unwrap().next().unwrap().unwrap().path();
        let hook = copy.join("hooks/post-checkout");
        std::fs::create_dir_all(copy.join("hooks")).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", own.join("ran").display())).unwrap();
        std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(one.join("a.txt"), "two\n").unwrap();
        std::fs::write(one.join("new.txt"), "n\n").unwrap();
        let diff = String::from_utf8(diff(&one, &made.base).await.unwrap()).unwrap();
        assert!(diff.contains("-one\n+two\n") && diff.contains("+++ b/new.txt"), "{diff}");
        assert_eq!(std::fs::read_to_string(two.join("a.txt")).unwrap(), "one\n");
        assert_eq!(git(&source, &["for-each-ref"]).await.unwrap(), before);
        // The worktree is found again, with the same base.
        let again = prepare(&tree("one", &one), None).await.unwrap();
        assert_eq!(again.base, made.base);
        assert!(!own.join("ran").exists());
        let missing = prepare(&tree("three", &work("three")), Some("nope")).await;
        assert!(missing.err().unwrap().contains("no branch or commit `nope`"));
    }
}
