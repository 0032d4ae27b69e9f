//! The wall: what a process was not given, it can neither change nor watch nor connect to.
//!
//! Invariant: every attack is tried by a tool and by a runner, with and without namespaces and with an older
//! Landlock; started by root, every test is repeated by an ordinary user.

use crate::child::{self, is_root};
use crate::kit;
use greenroom_runtime::{ChildError, ChildSpec, RunnerSpec, Sandbox, Without};
use serde_json::{Value, json};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

/// What a program sees of a refused attack: nothing there, a read-only mount, a refused call, or an abstract address of
/// another network namespace.
const REFUSED: [&str; 5] = ["ENOENT", "EROFS", "EPERM", "EACCES", "ECONNREFUSED"];
/// The user of the tests that an ordinary user repeats.
const USER: u32 = 4242;

const WHOLE: Without = Without { namespaces: false, landlock_above: None };
const NO_NAMESPACES: Without = Without { namespaces: true, landlock_above: None };
const OLD_LANDLOCK: Without = Without { namespaces: false, landlock_above: Some(3) };
const NO_LANDLOCK: Without = Without { namespaces: false, landlock_above: Some(0) };
const NEITHER: Without = Without { namespaces: true, landlock_above: Some(3) };

/// Sockets that belong to other programs of this user.
struct Sockets {
    names: Vec<String>,
    _streams: Vec<UnixListener>,
    _datagram: UnixDatagram,
    _folder: tempfile::TempDir,
}

impl Sockets {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let streams = [UnixListener::bind(path("tmux")), UnixListener::bind_addr(&address)];
        let datagram = UnixDatagram::bind(path("journal")).unwrap();
        for file in ["tmux", "journal"] {
            std::fs::set_permissions(path(file), PermissionsExt::from_mode(0o777)).unwrap();
        }
        let text = |name: &str| path(name).to_str().unwrap().to_owned();
        Self {
            names: vec![text("tmux"), text("journal"), format!("@{name}")],
            _streams: streams.into_iter().map(Result::unwrap).collect(),
            _datagram: datagram,
            _folder: folder,
        }
    }
}

/// What must not change: mode, owner, times.
fn state(path: &Path) -> (u32, u32, i64, i64) {
    let found = std::fs::metadata(path).unwrap();
    (found.mode(), found.uid(), found.mtime(), found.ctime())
}

fn all_refused(seen: &Value, may_watch: &[&str]) {
    let each = |kind: &str| seen[kind].as_object().unwrap().clone();
    for (path, attacks) in each("metadata") {
        for (attack, outcome) in attacks.as_object().unwrap() {
            // In a view, the data folder is an empty one on the way to the process's own.
            let is_way = path.ends_with("/data") && !may_watch.is_empty();
            if attack == "inotify" && (is_way || may_watch.contains(&path.as_str())) {
                continue;
            }
            assert!(REFUSED.contains(&outcome.as_str().unwrap()), "{attack} {path}: {outcome}");
        }
    }
    for (address, outcome) in each("sockets") {
        assert!(REFUSED.contains(&outcome.as_str().unwrap()), "{address}: {outcome}");
    }
}

/// Attacks by a tool and by a runner.
async fn attack(without: Without) -> Vec<Value> {
    let sockets = Sockets::open();
    let tools = child::Kit::without(without);
    let runners = kit::Kit::without(without);
    runners.runtime.apply(vec![RunnerSpec { command: python(), ..runners.spec() }]).await;
    runners.ready().await;
    let targets: Vec<PathBuf> = [
        tools.path("data"),
        tools.path("data/admin-token"),
        tools.path("other/file"),
        runners.path("data"),
        runners.path("other/code.py"),
        "/dev/null".into(),
        "/usr/bin/env".into(),
        "/etc/passwd".into(),
    ]
    .into();
    let before: Vec<_> = targets.iter().map(|path| state(path)).collect();
    let paths: Vec<&str> = targets.iter().map(|path| path.to_str().unwrap()).collect();
    let mut spec = tools.on_files("wall", &paths);
    spec.env.insert("SOCKETS".into(), sockets.names.join(":"));
    let by_tool = tools.output(&spec).await;
    let by_runner =
        runners.output(&format!("wall {} {}", paths.join(":"), sockets.names.join(":"))).await;
    let after: Vec<_> = targets.iter().map(|path| state(path)).collect();
    assert_eq!(before, after, "{paths:?}");
    vec![by_tool, by_runner]
}

fn python() -> Vec<String> {
    vec![child::python(), kit::script("wire.py")]
}

/// What every program may read is no secret, and neither is its use.
const SHARED: [&str; 3] = ["/dev/null", "/usr/bin/env", "/etc/passwd"];

fn all_of_its_own() -> Value {
    let names = ["chmod", "fchmod", "chown", "utime", "setxattr", "inotify", "socket"];
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!("ok")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_and_sockets_of_others_are_out_of_reach() {
    for seen in attack(WHOLE).await {
        all_refused(&seen, &SHARED);
        // In its own folder a process can do all of it.
        assert_eq!(seen["own"], all_of_its_own());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn so_they_are_without_namespaces() {
    for without in [NO_NAMESPACES, NEITHER] {
        for seen in attack(without).await {
            all_refused(&seen, &[]);
            assert_eq!(seen["own"]["socket"], "EPERM");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn so_they_are_with_an_older_landlock_or_none() {
    for without in [OLD_LANDLOCK, NO_LANDLOCK] {
        for seen in attack(without).await {
            all_refused(&seen, &SHARED);
            let mut own = all_of_its_own();
            // No scope keeps abstract sockets apart.
            own["socket"] = "EPERM".into();
            assert_eq!(seen["own"], own);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_falls_away_is_named_and_required_refuses_it() {
    let missing = |without| async move {
        let kit = child::Kit::without(without);
        let spec = ChildSpec { sandbox: Sandbox::Required, ..kit.spec(&["who"]) };
        let refused = kit.run(&spec).await.err().map(|error| match error {
            ChildError::Start(why) => why,
            error => panic!("{error}"),
        });
        let probed = kit.children.probe(&kit.spec(&["who"])).await.unwrap();
        assert_eq!(refused.is_some(), !probed.domain.missing.is_empty(), "{refused:?}");
        for guarantee in &probed.domain.missing {
            assert!(refused.as_ref().unwrap().contains(guarantee), "{refused:?}");
        }
        let names =
            probed.domain.missing.iter().map(|text| text.split(':').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(missing(WHOLE).await, Vec::<String>::new());
    assert_eq!(missing(NO_NAMESPACES).await, ["no file view of its own"]);
    assert_eq!(missing(OLD_LANDLOCK).await, ["Landlock 3 knows no scopes"]);
    assert_eq!(missing(NO_LANDLOCK).await, ["no Landlock"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_root_host_every_process_has_a_user_of_its_own() {
    if !is_root() {
        return;
    }
    let kit = child::Kit::new();
    let mut users = std::collections::BTreeSet::new();
    for name in ["one", "two", "one"] {
        let spec = ChildSpec { name: name.into(), ..kit.spec(&["who"]) };
        users.insert(kit.output(&spec).await["uid"].as_u64().unwrap());
    }
    let runners = kit::Kit::wire().await;
    let isolation = runners.state().isolation.unwrap();
    let (_, user) = isolation.rsplit_once("+uid:").unwrap();
    users.insert(user.parse().unwrap());
    assert_eq!(users.len(), 3, "{users:?}");
    assert!(users.iter().all(|user| child::OWN_IDS.contains(user)), "{users:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_a_link_and_links_to_what_was_given_work() {
    let kit = child::Kit::new();
    std::os::unix::fs::symlink("own", kit.path("link")).unwrap();
    std::fs::create_dir(kit.path("given")).unwrap();
    std::os::unix::fs::symlink(kit.path("given"), kit.path("other/given")).unwrap();
    std::fs::write(kit.path("given/file"), "text").unwrap();
    let (file, new) = (kit.text("link/file"), kit.text("other/given/file"));
    let spec = ChildSpec {
        dir: kit.path("link"),
        paths: vec![kit.path("other/given")],
        ..kit.on_files("read", &[&file, &new])
    };
    assert_eq!(kit.output(&spec).await, json!({file: "ok: text", new: "ok: text"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_its_own_folder_opens_nothing_outside() {
    let kit = child::Kit::new();
    let secret = kit.text("other/file");
    // As an argument, as one of its paths, and as its own interpreter.
    for link in ["script", "path"] {
        std::os::unix::fs::symlink(kit.path("other").join("file"), kit.path("own").join(link))
            .unwrap();
    }
    let code = std::fs::read_to_string(kit::script("child.py")).unwrap();
    let first = format!("#!/usr/bin/env -S -u {secret} {}", child::python());
    std::fs::write(kit.path("own/run"), format!("{first}\n{code}")).unwrap();
    std::fs::set_permissions(kit.path("own/run"), PermissionsExt::from_mode(0o755)).unwrap();
    let plain = kit.on_files("read", &[&secret]);
    let mut by_argument = plain.clone();
    by_argument.command.push("script".to_owned());
    let by_path = ChildSpec { paths: vec![kit.path("own/path")], ..plain.clone() };
    let command = vec!["./run".to_owned(), "read".to_owned()];
    let by_shebang = ChildSpec { command, ..plain };
    for spec in [by_argument, by_path, by_shebang] {
        assert_eq!(
            kit.output(&spec).await,
            json!({secret.as_str(): "FileNotFoundError"}),
            "{spec:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pip_installs_into_a_runners_own_folder() {
    let kit = kit::Kit::wire().await;
    assert_eq!(kit.output("pip").await, json!([0, "", "42", true]));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test is repeated by another user")]
fn all_of_this_holds_for_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(USER), Some(USER)).unwrap();
    let names = [
        "wall::metadata_and_sockets_of_others_are_out_of_reach",
        "wall::so_they_are_without_namespaces",
        "wall::so_they_are_with_an_older_landlock_or_none",
        "wall::what_falls_away_is_named_and_required_refuses_it",
        "wall::a_folder_that_is_a_link_and_links_to_what_was_given_work",
        "wall::a_link_in_its_own_folder_opens_nothing_outside",
        "claims::a_virtual_environment_of_its_own_names_an_installation_and_nothing_else",
        "claims::a_first_line_or_a_link_opens_no_program_of_others_and_nothing_around_it",
        "claims::a_folder_that_is_exchanged_while_a_process_starts_opens_nothing",
        "claims::a_hidden_file_cannot_be_renamed_together_with_its_folder",
        "claims::pipes_and_huge_files_in_its_own_folder_delay_no_start",
    ];
    let copies = folder.path().join("copies");
    copy_programs(&copies);
    let ran = std::process::Command::new("setpriv")
        .args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups", "--"])
        .arg(copies.join("tests"))
        .arg("--exact")
        .args(names)
        .env("PATH", "/usr/bin:/bin")
        .env(kit::COPIES, &copies)
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains(&format!("{} passed", names.len())), "{said}");
}

/// Copies what the tests start to where another user reaches it, as `tests` the tests themselves.
fn copy_programs(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), folder.join("tests")).unwrap();
    std::fs::copy(kit::fixture(), folder.join("runtime-fixture")).unwrap();
    for file in std::fs::read_dir(Path::new(&kit::script("wire.py")).parent().unwrap()).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
}
