//! Children against what they are kept from: files, sockets, processes, memory, time, output.

use crate::kit::{WAIT, eventually, fixture, is_alive, processes_of, script};
use greenroom_runtime::{
    Child, ChildEnd, ChildError, ChildSpec, Children, Finished, Limits, Network, Settings, Without,
    isolation_available,
};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

pub(crate) const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// The users that processes of root become.
pub(crate) const OWN_IDS: std::ops::Range<u64> = 0x7100_0000..0x7200_0000;
/// An ordinary user.
const USER: u32 = 54_321;

pub(crate) struct Kit {
    folder: TempDir,
    pub(crate) children: Children,
    settings: Settings,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::on(limits, Without::default())
    }

    /// On a kernel without these parts.
    pub(crate) fn without(without: Without) -> Self {
        Self::on(Limits::default(), without)
    }

    fn on(limits: Limits, without: Without) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["data/run", "own", "other", "program"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        // As the product does: the data folder is its own alone.
        for (name, mode) in [("", 0o755), ("data", 0o700), ("own", 0o777), ("other", 0o755)] {
            std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        for name in ["data/admin-token", "own/file", "other/file"] {
            std::fs::write(path(name), "text").unwrap();
        }
        // Other users cannot read them where this checkout is in a closed folder.
        for name in ["child.py", "wall.py"] {
            std::fs::copy(script(name), path("program").join(name)).unwrap();
        }
        let settings = Settings {
            users: greenroom_runtime::UserIds::default(),
            without,
            supervisor: vec![fixture(), "supervise".into()],
            run_dir: path("data/run"),
            hidden: vec![path("data")],
            cleaner: greenroom_runtime::Cleaner::default(),
            host_version: "test".into(),
            limits,
        };
        Self { children: Children::new(settings.clone()), folder, settings }
    }

    /// For a host that is not root, where these tests are: its supervisors run as another user.
    pub(crate) fn as_user() -> Self {
        let kit = Self::new();
        let fixture = fixture();
        let script = format!(
            "#!/bin/sh\nexec setpriv --reuid={USER} --regid={USER} --clear-groups --inh-caps=-all \
             --bounding-set=-all {fixture} \"$@\"\n"
        );
        let (supervisor, data) = (kit.path("supervisor"), kit.path("data"));
        std::fs::write(&supervisor, script).unwrap();
        for (path, mode) in [(&supervisor, 0o755), (&data, 0o755), (&data.join("run"), 0o777)] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::chown(kit.path("own"), Some(USER), Some(USER)).unwrap();
        let settings = Settings {
            supervisor: vec![supervisor.to_str().unwrap().to_owned(), "supervise".into()],
            ..kit.settings.clone()
        };
        Self { children: Children::new(settings), ..kit }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn spec(&self, args: &[&str]) -> ChildSpec {
        let program = [python(), self.text("program/child.py")];
        let args = args.iter().map(|word| (*word).to_owned());
        ChildSpec {
            name: "child".into(),
            command: program.into_iter().chain(args).collect(),
            dir: self.path("own"),
            owns_dir: true,
            // Names the folder, so that whatever is left of the child can be found.
            env: [("FOLDER".to_owned(), self.text(""))].into(),
            ..ChildSpec::default()
        }
    }

    /// Tells of paths in the environment: a file that the command names would be open to it.
    pub(crate) fn on_files(&self, verb: &str, paths: &[&str]) -> ChildSpec {
        let mut spec = self.spec(&[verb]);
        spec.env.insert("PATHS".to_owned(), paths.join(":"));
        spec
    }

    pub(crate) async fn run(&self, spec: &ChildSpec) -> Result<Finished, ChildError> {
        self.children.run(spec, b"", Instant::now() + WAIT, OUTPUT_BYTES_MAX).await
    }

    /// Runs a verb that succeeds and returns its output.
    pub(crate) async fn output(&self, spec: &ChildSpec) -> Value {
        let finished = self.run(spec).await.unwrap();
        assert_eq!(finished.ended, ChildEnd::Exited(0), "{finished:?}");
        serde_json::from_slice(&finished.stdout).unwrap()
    }

    /// No process, no lock and no private folder of any child is left.
    pub(crate) fn is_clear(&self) -> bool {
        processes_of(self.folder.path()).is_empty()
            && std::fs::read_dir(self.path("data/run")).unwrap().count() == 0
    }
}

/// The system's own where there is one: it is open to every user.
pub(crate) fn python() -> String {
    let system = "/usr/bin/python3";
    if Path::new(system).exists() { system.to_owned() } else { "python3".to_owned() }
}

pub(crate) fn enforced() -> bool {
    isolation_available().starts_with("landlock:")
}

pub(crate) fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_reads_its_input_and_gets_its_arguments_and_environment_only() {
    let kit = Kit::new();
    let spec = kit.spec(&["echo", "a", "b c"]);
    let input = "{\"x\": 1}".repeat(100_000);
    let ran = kit.children.run(&spec, input.as_bytes(), Instant::now() + WAIT, 1 << 20).await;
    let finished = ran.unwrap();
    let output: Value = serde_json::from_slice(&finished.stdout).unwrap();
    assert_eq!(
        output,
        json!({
            "read": input, "args": ["a", "b c"],
            "environment": ["FOLDER", "HOME", "LANG", "PATH", "TMPDIR"],
        })
    );
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_confines_a_child_is_said() {
    let kit = Kit::new();
    let finished = kit.run(&kit.spec(&["who"])).await.unwrap();
    let output: Value = serde_json::from_slice(&finished.stdout).unwrap();
    let uid = output["uid"].as_u64().unwrap();
    if is_root() {
        assert!(OWN_IDS.contains(&uid), "{output}");
        assert_eq!(output, json!({"uid": uid, "gid": uid, "groups": []}));
    } else {
        assert_eq!(uid, u64::from(rustix::process::getuid().as_raw()));
    }
    let limit = if finished.isolation.contains("+cgroup") { "cgroup" } else { "rlimit" };
    let expected = format!("{}+view+seccomp+net:off+{limit}+uid:{uid}", isolation_available());
    assert_eq!((finished.isolation, finished.warnings), (expected, Vec::<String>::new()));
    let bare = ChildSpec { sandbox: greenroom_runtime::Sandbox::Off, ..kit.spec(&["who"]) };
    assert_eq!(kit.run(&bare).await.unwrap().isolation, "off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_cannot_read_or_write_outside_its_folder() {
    let kit = Kit::new();
    let (own, other) = (kit.text("own/file"), kit.text("other/file"));
    let host = format!("/proc/{}/environ", std::process::id());
    let secret = kit.text("data/admin-token");
    let output = kit.output(&kit.on_files("read", &[&own, &other, &secret, &host])).await;
    if !enforced() {
        return;
    }
    let (refused, absent) = ("PermissionError", "FileNotFoundError");
    assert_eq!(output, json!({own: "ok: text", other: absent, secret: absent, host: refused}));
    let (new, beside) = (kit.text("own/new"), kit.text("other/new"));
    let output = kit.output(&kit.on_files("write", &[&new, &beside])).await;
    assert_eq!(output, json!({new.as_str(): "ok: 3", beside: absent}));
    let reader = ChildSpec { owns_dir: false, ..kit.on_files("write", &[&new]) };
    // The error of a read-only file system.
    assert_eq!(kit.output(&reader).await, json!({new: "OSError"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_without_a_folder_runs_in_a_private_one() {
    let kit = Kit::new();
    let output = kit.output(&ChildSpec { dir: PathBuf::new(), ..kit.spec(&["where"]) }).await;
    assert_eq!(output, json!({"is_home": true, "write": "ok: 3"}));
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_reaches_the_network_that_it_was_given_and_no_more() {
    let kit = Kit::new();
    let [given, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let path = kit.path("own/socket");
    let _unix = UnixListener::bind(&path).unwrap();
    let name = SocketAddr::from_abstract_name(path.to_str().unwrap()).unwrap();
    let _abstract = UnixListener::bind_addr(&name).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let tries = |network: Network, port: u16| {
        let spec = kit.spec(&["sockets", &port.to_string(), path.to_str().unwrap()]);
        ChildSpec { network, ..spec }
    };
    let no = "PermissionError";
    let off = json!({
        "tcp": no, "mptcp": no, "fast": no, "udp": no, "unix": "ok: None", "raw": no,
        // In a network namespace of its own there is nobody at that address.
        "abstract": "ConnectionRefusedError",
        "pair": "ok: [None, None]",
    });
    assert_eq!(kit.output(&tries(Network::Off, port(&given))).await, off);
    // In a network of its own it may have any socket, and none leads anywhere else.
    let one = || Network::host(given.local_addr().unwrap());
    let found = kit.output(&tries(one(), port(&given))).await;
    assert_eq!(
        (&found["tcp"], &found["unix"], &found["raw"]),
        (&json!("ok: None"), &json!("ok: None"), &json!(no))
    );
    let found = kit.output(&tries(one(), port(&other))).await;
    assert_eq!(
        (&found["tcp"], &found["fast"]),
        (&json!("ConnectionRefusedError"), &json!("ConnectionRefusedError"))
    );
    let on = kit.output(&tries(Network::On, port(&other))).await;
    for (what, expected) in
        [("tcp", "ok: None"), ("udp", "ok: None"), ("abstract", no), ("raw", no)]
    {
        assert_eq!(on[what], expected, "{what}");
    }
    let said = kit.run(&tries(one(), port(&given))).await.unwrap().isolation;
    assert!(said.contains(&format!("+netns:{}+", port(&given))), "{said}");
    let said = kit.run(&tries(Network::On, 1)).await.unwrap().isolation;
    assert!(said.contains("+net:on+"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_forks_without_end_is_stopped() {
    let kit = Kit::new();
    let finished = kit.run(&kit.spec(&["fork"])).await.unwrap();
    assert_eq!(finished.ended, ChildEnd::Stopped);
    assert_eq!(finished.message, "was stopped: it had more than 32 processes (`processes`)");
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_eats_memory_is_stopped() {
    let kit = Kit::new();
    let finished = kit.run(&ChildSpec { memory_mb: 128, ..kit.spec(&["eat"]) }).await.unwrap();
    // By the supervisor or the kernel, whichever is first.
    match finished.ended {
        ChildEnd::Stopped => {
            assert_eq!(
                finished.message,
                "was stopped: it used more than 128 MB of memory (`memory_mb`)"
            );
        }
        ended => {
            assert_eq!(ended, ChildEnd::Exited(1));
            assert!(finished.stderr_tail.ends_with("MemoryError"), "{}", finished.stderr_tail);
        }
    }
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_does_not_outlive_its_deadline() {
    let kit = Kit::new();
    let soon = || Instant::now() + Duration::from_millis(700);
    let ran = kit.children.run(&kit.spec(&["sleep"]), b"", soon(), OUTPUT_BYTES_MAX).await;
    assert_eq!(ran.unwrap_err(), ChildError::Deadline { stderr_tail: "about to sleep".into() });
    assert!(kit.is_clear());
    // Nor does one that hears no signal.
    let ran = kit.children.run(&kit.spec(&["stubborn"]), b"", soon(), OUTPUT_BYTES_MAX).await;
    assert_eq!(ran.unwrap_err(), ChildError::Deadline { stderr_tail: String::new() });
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_goes_into_the_background_is_found_there() {
    let kit = Kit::new();
    assert_eq!(kit.output(&kit.spec(&["daemon"])).await, "gone");
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_writes_without_end_is_stopped() {
    let kit = Kit::new();
    let error = kit.run(&kit.spec(&["gigabyte"])).await.unwrap_err();
    let stderr_tail = String::new();
    assert_eq!(error, ChildError::OutputTooLarge { bytes_max: OUTPUT_BYTES_MAX, stderr_tail });
    assert!(kit.is_clear());
    let finished = kit.run(&kit.spec(&["complain"])).await.unwrap();
    assert_eq!(finished.ended, ChildEnd::Exited(3));
    assert!(finished.stderr_tail.ends_with("line 99999"));
    assert!(finished.stderr_tail.len() <= 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_whose_caller_is_gone_ends() {
    let kit = Kit::new();
    let spec = kit.spec(&["sleep"]);
    let ran = tokio::time::timeout(Duration::from_millis(300), kit.run(&spec)).await;
    assert!(ran.is_err());
    eventually("the end of the child", || kit.is_clear().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_cannot_be_started_says_why() {
    let kit = Kit::new();
    let spec = ChildSpec { command: vec!["no-such-program".into()], ..kit.spec(&[]) };
    let error = kit.run(&spec).await.unwrap_err();
    assert!(matches!(&error, ChildError::Start(why) if why.starts_with("`no-such-program`")));
    eventually("the end of the supervisor", || kit.is_clear().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_and_node_work_in_a_child() {
    let kit = Kit::new();
    assert_eq!(
        kit.output(&kit.spec(&["python"])).await,
        json!({
            "threads": 6, "callback": 42, "temporary": 1, "child": "42",
            "shell": "fine", "async": "done",
        })
    );
    let node = ChildSpec { command: vec!["node".into(), script("child.js")], ..kit.spec(&[]) };
    assert_eq!(
        kit.output(&node).await,
        json!({"hot": true, "wasm": true, "worker": 42, "child": "42", "file": "text"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_stays_is_spoken_to_until_it_is_killed() {
    let kit = Kit::new();
    let Child { mut stdin, mut stdout, mut hold } =
        kit.children.start(&kit.spec(&["serve"])).await.unwrap();
    stdin.write_all(b"hello\n").await.unwrap();
    let mut line = [0; 8];
    stdout.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"\"hello\"\n");
    assert!(is_alive(hold.pid));
    hold.kill();
    assert_eq!(hold.ended().await.1, ChildEnd::Stopped);
    assert!(kit.is_clear());
    // One that ends with its input.
    let Child { stdin, stdout: _stdout, mut hold } =
        kit.children.start(&kit.spec(&["serve"])).await.unwrap();
    drop(stdin);
    assert_eq!(hold.ended().await, ("exited with code 0".to_owned(), ChildEnd::Exited(0)));
}
