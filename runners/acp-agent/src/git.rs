//! `git` workspaces: a working tree and a branch for each conversation.
//!
//! Invariant: the given repository is only read, and nothing that one conversation can write is used for another one
//! or by the runner. A workspace is a repository of its own that borrows the objects of a copy which only the runner
//! writes; the runner compares with a repository that the harness cannot reach, so that no setting, hook or filter of
//! a harness is executed for it.

use crate::sha256_hex;
use crate::workspace::{Record, create, write_atomically};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::process::Command;

/// How long one git command may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(300);
/// Largest diff that is kept.
const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Branches and tags of the given repository in the copy, and from there in a workspace.
const REFS: [&str; 2] =
    ["+refs/remotes/origin/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];

/// Where a working tree belongs.
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

/// Creates the working tree, or finds the one that exists.
pub(crate) async fn prepare(
    tree: &Tree<'_>,
    base: Option<&str>,
    before: Option<&Record>,
) -> Result<Made, String> {
    let branch = format!("greenroom/{}", tree.id);
    if let Some(before) = before
        && let Some(base) = &before.base
    {
        return match before.repository.as_deref() == Some(tree.repository) {
            true => Ok(Made { branch, base: base.clone() }),
            false => Err(format!(
                "the workspace belongs to another repository: remove it with `greenroom workspace remove {}`",
                tree.id
            )),
        };
    }
    let repository = tree.repository.to_string_lossy().into_owned();
    let copy = copy_of(tree.own, tree.repository);
    if !copy.join("HEAD").exists() {
        create(&copy).map_err(|error| error.to_string())?;
        git(&copy, &["init", "--quiet", "--bare", "--template=", "."]).await?;
    }
    let fetched = ["fetch", "--quiet", "--no-tags", "--prune", &repository];
    let heads = ["+HEAD:refs/greenroom/head", "+refs/heads/*:refs/remotes/origin/*", REFS[1]];
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
    check_out(tree.work, &copy, &branch, &base).await?;
    Ok(Made { branch, base })
}

/// A new repository in the workspace. What an attempt before left behind is removed.
async fn check_out(work: &Path, copy: &Path, branch: &str, base: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot create `{}`: {error}", work.display());
    if work.symlink_metadata().is_ok() {
        std::fs::remove_dir_all(work).map_err(failed)?;
    }
    create(work).map_err(failed)?;
    git(work, &["init", "--quiet", "--template=", "."]).await?;
    borrow(&work.join(".git"), copy).map_err(failed)?;
    let copy = copy.to_string_lossy();
    let fetch = ["fetch", "--quiet", "--no-tags", &*copy];
    git(work, &[&fetch[..], &REFS[..]].concat()).await?;
    for (key, value) in [("user.name", "Greenroom"), ("user.email", "greenroom@localhost")] {
        git(work, &["config", key, value]).await?;
    }
    git(work, &["checkout", "--quiet", "--no-track", "-b", branch, base]).await.map(drop)
}

/// Lets a repository use the objects of another one.
fn borrow(repository: &Path, from: &Path) -> std::io::Result<()> {
    let info = repository.join("objects/info");
    create(&info)?;
    let line = format!("{}\n", from.join("objects").display());
    write_atomically(&info.join("alternates"), line.as_bytes())
}

/// All changes of a workspace since its base: committed ones, uncommitted ones and new files.
pub(crate) async fn diff(own: &Path, root: &Path, record: &Record) -> Result<Vec<u8>, String> {
    let base = record.base.as_deref().unwrap_or("HEAD");
    let own_git = root.join("compare.git");
    if !own_git.join("objects/info/alternates").exists() {
        create(&own_git).map_err(|error| error.to_string())?;
        git(&own_git, &["init", "--quiet", "--bare", "--template=", "."]).await?;
        let copy = copy_of(own, record.repository.as_deref().unwrap_or(Path::new("")));
        borrow(&own_git, &copy).map_err(|error| error.to_string())?;
    }
    let git_dir = format!("--git-dir={}", own_git.display());
    let work_tree = format!("--work-tree={}", record.path.display());
    let here = ["-c", "core.bare=false", "-c", "core.excludesFile=", &git_dir, &work_tree];
    let run = async |args: &[&str]| git(&record.path, &[&here[..], args].concat()).await;
    run(&["read-tree", "--reset", base]).await?;
    // New files become known to the index without their content, so that they are part of the diff.
    run(&["add", "--intent-to-add", "--all", "."]).await?;
    let options = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary"];
    let mut diff =
        run(&[&options[..], &["--ignore-submodules=dirty", base]].concat()).await?.into_bytes();
    diff.truncate(DIFF_BYTES_MAX);
    Ok(diff)
}

#[expect(
    clippy::disallowed_methods,
    reason = "git is a child of the runner, inside the runner's sandbox"
)]
async fn git(dir: &Path, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    let safe = [
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "gc.auto=0",
        "-c",
        "safe.directory=*",
        "-c",
        "init.defaultBranch=main",
    ];
    command.args(safe).args(args).current_dir(dir).stdin(Stdio::null()).kill_on_drop(true);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    if let Some(settings) = settings() {
        command.env("GIT_CONFIG_GLOBAL", settings);
    }
    let output = tokio::time::timeout(GIT_TIMEOUT, command.output());
    let name = args.iter().find(|word| !word.starts_with('-') && !word.contains('='));
    let name = name.unwrap_or(&"");
    let output = output.await.map_err(|_| format!("`git {name}` took too long"))?;
    let output = output.map_err(|error| format!("cannot start `git`: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let problem = String::from_utf8_lossy(&output.stderr);
            let problem = problem.trim().lines().last().unwrap_or("no reason given").to_owned();
            Err(format!("`git {name}`: {problem}"))
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

/// The copy of a repository, which all its workspaces borrow from.
pub(crate) fn copy_of(own: &Path, repository: &Path) -> PathBuf {
    let hash = sha256_hex(repository.to_string_lossy().as_bytes());
    repositories(own).join(format!("{}.git", &hash[..16]))
}

/// The folder of the copies. Sessions of `git` workspaces read it.
pub(crate) fn repositories(own: &Path) -> PathBuf {
    own.join("repositories")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Owner;
    use std::os::unix::fs::PermissionsExt;

    async fn repository(folder: &Path) {
        let config = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        std::fs::create_dir_all(folder).unwrap();
        git(folder, &["init", "--quiet", "-b", "main"]).await.unwrap();
        std::fs::write(folder.join("a.txt"), "one\n").unwrap();
        std::fs::write(folder.join(".gitattributes"), "*.txt filter=evil diff=evil\n").unwrap();
        git(folder, &["add", "."]).await.unwrap();
        git(folder, &[&config[..], &["commit", "--quiet", "-m", "first"]].concat()).await.unwrap();
    }

    fn record(work: &Path, repository: &Path, made: &Made) -> Record {
        let owner = Owner {
            agent: "a".to_owned(),
            workspace_id: None,
            conversation_id: "c".to_owned(),
            bot_id: None,
            thread_id: None,
        };
        Record {
            owner,
            kind: "git".to_owned(),
            path: work.to_owned(),
            branch: Some(made.branch.clone()),
            base: Some(made.base.clone()),
            repository: Some(repository.to_owned()),
        }
    }

    #[tokio::test]
    async fn each_conversation_has_a_branch_and_the_repository_is_only_read() {
        let folder = tempfile::tempdir().unwrap();
        let (source, own) = (folder.path().join("source"), folder.path().join("own"));
        repository(&source).await;
        let before = git(&source, &["for-each-ref"]).await.unwrap();
        let root = |id: &str| own.join("workspaces").join(id);
        let (one, two) = (root("one").join("work"), root("two").join("work"));
        let tree = |id, work| Tree { own: &own, repository: &source, work, id };
        let made = prepare(&tree("one", &one), None, None).await.unwrap();
        prepare(&tree("two", &two), Some("main"), None).await.unwrap();
        assert_eq!(made.branch, "greenroom/one");
        let branch = git(&one, &["branch", "--show-current"]).await.unwrap();
        assert_eq!(branch.trim(), made.branch);
        // A change that is committed, one that is not, and a new file.
        std::fs::write(one.join("b.txt"), "b\n").unwrap();
        git(&one, &["add", "b.txt"]).await.unwrap();
        git(&one, &["commit", "--quiet", "-m", "second"]).await.unwrap();
        std::fs::write(one.join("a.txt"), "two\n").unwrap();
        std::fs::write(one.join("new.txt"), "n\n").unwrap();
        let record = record(&one, &source, &made);
        let text = diff(&own, &root("one"), &record).await.unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("-one\n+two\n") && text.contains("+++ b/new.txt"), "{text}");
        assert!(text.contains("+++ b/b.txt"), "{text}");
        // What is taken back is no change any more, and the harness's own index is as it was.
        std::fs::remove_file(one.join("new.txt")).unwrap();
        std::fs::write(one.join("a.txt"), "one\n").unwrap();
        let text = String::from_utf8(diff(&own, &root("one"), &record).await.unwrap()).unwrap();
        assert!(!text.contains("a.txt") && !text.contains("new.txt"), "{text}");
        assert_eq!(git(&one, &["status", "--porcelain"]).await.unwrap(), "");
        assert_eq!(std::fs::read_to_string(two.join("a.txt")).unwrap(), "one\n");
        assert_eq!(git(&source, &["for-each-ref"]).await.unwrap(), before);
        // The workspace is found again, with the same base; not for another repository.
        let again = prepare(&tree("one", &one), Some("nope"), Some(&record)).await.unwrap();
        assert_eq!(again.base, made.base);
        let other = Tree { repository: &own, ..tree("one", &one) };
        let refused = prepare(&other, None, Some(&record)).await.err().unwrap();
        assert!(refused.contains("belongs to another repository"), "{refused}");
        let missing = prepare(&tree("three", &root("three/work")), Some("nope"), None).await;
        assert!(missing.err().unwrap().contains("no branch or commit `nope`"));
    }

    #[tokio::test]
    async fn hooks_filters_and_settings_of_a_harness_are_not_executed() {
        let folder = tempfile::tempdir().unwrap();
        let (source, own) = (folder.path().join("source"), folder.path().join("own"));
        repository(&source).await;
        let root = own.join("workspaces/one");
        let work = root.join("work");
        let tree = Tree { own: &own, repository: &source, work: &work, id: "one" };
        let made = prepare(&tree, None, None).await.unwrap();
        let ran = folder.path().join("ran");
        let script = work.join("evil.sh");
        std::fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", ran.display())).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let evil = script.display();
        let settings = format!(
            "[core]\n\tfsmonitor = {evil}\n\thooksPath = {0}\n[filter \"evil\"]\n\tclean = {evil}\n\tsmudge = {evil}\n\
             \trequired = true\n[diff \"evil\"]\n\ttextconv = {evil}\n\tcommand = {evil}\n[diff]\n\texternal = {evil}\n",
            work.display()
        );
        let config = work.join(".git/config");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text + &settings).unwrap();
        for hook in ["post-checkout", "post-index-change", "reference-transaction"] {
            std::fs::copy(&script, work.join(hook)).unwrap();
        }
        std::fs::write(work.join("a.txt"), "two\n").unwrap();
        let record = record(&work, &source, &made);
        let text = String::from_utf8(diff(&own, &root, &record).await.unwrap()).unwrap();
        assert!(text.contains("-one\n+two\n"), "{text}");
        // Another conversation begins.
        let other = own.join("workspaces/two/work");
        prepare(&Tree { work: &other, id: "two", ..tree }, None, None).await.unwrap();
        assert!(!ran.exists());
        // The settings do work: git in the workspace itself executes them.
        let plain = ["diff", "--no-ext-diff"];
        let _ = git(&work, &[&["-c", "core.fsmonitor=false"][..], &plain[..]].concat()).await;
        assert!(ran.exists());
    }
}
