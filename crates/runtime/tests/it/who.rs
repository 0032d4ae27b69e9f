//! Who a child is, what it sees of the system, and when it is its turn.

use crate::child::{Kit, OUTPUT_BYTES_MAX, OWN_IDS, enforced, is_root};
use crate::kit::eventually;
use greenroom_runtime::{ChildEnd, ChildError, ChildSpec};
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_folder_of_root_is_open_to_the_process_that_it_was_given_to() {
    if !is_root() || !may_mount() {
        return;
    }
    let kit = Kit::new();
    let closed = |name: &str| {
        std::fs::create_dir(kit.path(name)).unwrap();
        std::fs::set_permissions(kit.path(name), PermissionsExt::from_mode(0o700)).unwrap();
        kit.path(name)
    };
    let (dir, path) = (closed("dir"), closed("path"));
    let line = format!("id -u; echo x > here; echo y > {}/there; chmod 640 here", path.display());
    let command = ["/bin/sh", "-c", &line].map(str::to_owned).to_vec();
    let spec = ChildSpec { command, dir: dir.clone(), paths: vec![path.clone()], ..kit.spec(&[]) };
    let finished = kit.run(&spec).await.unwrap();
    assert_eq!((finished.stderr_tail.as_str(), finished.warnings), ("", Vec::new()));
    let uid: u64 = String::from_utf8(finished.stdout).unwrap().trim().parse().unwrap();
    assert!(OWN_IDS.contains(&uid), "{uid}");
    // On disk nothing belongs to that user.
    for file in [dir.join("here"), path.join("there")] {
        let found = std::fs::metadata(&file).unwrap();
        assert_eq!((found.uid(), found.gid()), (0, 0), "{}", file.display());
    }
    assert_eq!(std::fs::metadata(dir.join("here")).unwrap().mode() & 0o7777, 0o640);
    // Nor can it leave a file that makes others root.
    let line = "cp /bin/true here; chmod 4755 here; chmod g+s here; install -m 4755 here too";
    let command = ["/bin/sh", "-c", line].map(str::to_owned).to_vec();
    kit.run(&ChildSpec { command, ..spec }).await.unwrap();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().mode();
        assert_eq!(mode & 0o6000, 0);
    }
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_in_a_closed_folder_is_brought_within_reach_without_what_lies_beside_it() {
    if !is_root() || !may_mount() {
        return;
    }
    let kit = Kit::new();
    // As an interpreter in the home of root: closed at the top, open below, found by a link.
    let open = |name: &str| {
        std::fs::create_dir_all(kit.path(name)).unwrap();
        std::fs::set_permissions(kit.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    };
    for name in ["home", "home/.envs", "home/.envs/3.1", "home/.envs/3.1/bin", "home/bin"] {
        open(name);
    }
    open("home/.envs/3.1/lib/python3.1");
    let program = kit.path("home/.envs/3.1/bin/look");
    std::fs::write(&program, "#!/bin/sh\nid -u\nls -A \"$1\"\ncat \"$1/secret\"\nexit 0\n")
        .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("../.envs/3.1/bin/look", kit.path("home/bin/look")).unwrap();
    std::fs::write(kit.path("home/secret"), "mine").unwrap();
    std::fs::set_permissions(kit.path("home"), PermissionsExt::from_mode(0o700)).unwrap();
    let home = kit.text("home");
    let spec =
        ChildSpec { command: vec![kit.text("home/bin/look"), home.clone()], ..kit.spec(&[]) };
    // As the product does: what the host makes is its own alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let finished = kit.run(&spec).await.unwrap();
    assert_eq!(finished.warnings, Vec::<String>::new());
    let said = String::from_utf8(finished.stdout).unwrap();
    let uid: u64 = said.lines().next().unwrap().parse().unwrap();
    assert!(OWN_IDS.contains(&uid), "{said}");
    assert!(!said.contains("mine") && !said.contains("secret"), "{said}");
    // The host sees its folder as before.
    assert_eq!(std::fs::read_to_string(kit.path("home/secret")).unwrap(), "mine");
    assert!(kit.is_clear());
}

/// Whether this machine lets root mount, which containers often do not.
#[expect(clippy::disallowed_methods, reason = "the test asks the system")]
pub(crate) fn may_mount() -> bool {
    let tried = std::process::Command::new("unshare")
        .args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"])
        .status();
    tried.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_settings_of_the_system_a_child_reads_what_programs_need_and_nothing_else() {
    let kit = Kit::new();
    if !enforced() {
        return;
    }
    let (needed, foreign) = ("/etc/passwd", ["/etc/shadow", "/etc/fstab", "/etc/login.defs"]);
    let foreign: Vec<&str> = foreign.into_iter().filter(|path| Path::new(path).exists()).collect();
    let paths: Vec<&str> = std::iter::once(needed).chain(foreign.iter().copied()).collect();
    let output = kit.output(&kit.on_files("read", &paths)).await;
    assert!(output[needed].as_str().unwrap().starts_with("ok"), "{output}");
    for path in foreign {
        assert_eq!(output[path], "FileNotFoundError", "{output}");
    }
    let output = kit.output(&kit.on_files("list", &["/etc"])).await;
    assert_eq!(output, json!({"/etc": "PermissionError"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn children_wait_for_their_turn_within_their_time_and_are_not_started_after_it() {
    let limits = greenroom_config::Limits { tool_processes: 2, ..Default::default() };
    let kit = Kit::with(limits.into());
    let begun = |name: &str| kit.path("own").join(name);
    let sleeper = |name: &str, seconds: &str| {
        let touch = format!("touch {name}; exec sleep {seconds}");
        ChildSpec { command: vec!["/bin/sh".into(), "-c".into(), touch], ..kit.spec(&[]) }
    };
    let (one, two) = (sleeper("one", "100"), sleeper("two", "100"));
    let (late, after) = (sleeper("late", "0"), sleeper("after", "0"));
    let mut first = Box::pin(kit.run(&one));
    let mut second = Box::pin(kit.run(&two));
    let both = async {
        tokio::select! {
            _ = &mut first => panic!("it sleeps"),
            _ = &mut second => panic!("it sleeps"),
            () = eventually("both", || {
                (begun("one").exists() && begun("two").exists()).then_some(())
            }) => {}
        }
    };
    both.await;
    let soon = Instant::now() + Duration::from_millis(300);
    let ran = kit.children.run(&late, b"", soon, OUTPUT_BYTES_MAX).await;
    assert_eq!(ran.unwrap_err(), ChildError::NoTurn);
    assert!(!begun("late").exists());
    // A caller that gives up makes room, and one that waits can give up as well.
    let waiting = tokio::time::timeout(Duration::from_millis(100), kit.run(&late)).await;
    assert!(waiting.is_err());
    drop(first);
    assert_eq!(kit.run(&after).await.unwrap().ended, ChildEnd::Exited(0));
    assert!(begun("after").exists() && !begun("late").exists());
    drop(second);
    eventually("the end of them", || kit.is_clear().then_some(())).await;
}
