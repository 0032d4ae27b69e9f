//! Claims: what a process writes into its own folder, such as links, first lines and `pyvenv.cfg`, opens nothing.
//!
//! Invariant: the secrets are readable for every user of the machine, so that only the wall keeps them apart.

use crate::child::{self, Kit};
use crate::kit;
use greenroom_runtime::{ChildEnd, ChildSpec};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A virtual environment in the process's own folder, and a child that reads these files with its Python.
fn in_venv(kit: &Kit, paths: &[&str]) -> ChildSpec {
    write(&kit.path("own/.venv/pyvenv.cfg"), "home = /usr/bin\n");
    std::fs::create_dir_all(kit.path("own/.venv/bin")).unwrap();
    symlink(child::python(), kit.path("own/.venv/bin/python")).unwrap();
    let mut spec = kit.on_files("read", paths);
    spec.command[0] = ".venv/bin/python".to_owned();
    spec
}

fn none(paths: &[&str]) -> Value {
    paths
        .iter()
        .map(|path| ((*path).to_owned(), json!("FileNotFoundError")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// What others have on the machine: programs with secrets beside them.
fn others(kit: &Kit) -> Vec<String> {
    write(&kit.path("home/.local/bin/tool"), "#!/bin/sh\n");
    write(&kit.path("home/.local/lib/python3.12/site-packages/x.py"), "");
    write(&kit.path("home/.local/lib/node_modules/x/x.js"), "");
    write(&kit.path("home/.local/share/keyring"), "text");
    write(&kit.path("neighbour/.venv/pyvenv.cfg"), "home = /usr/bin\n");
    write(&kit.path("neighbour/.venv/bin/python"), "#!/bin/sh\n");
    write(&kit.path("neighbour/.venv/pip.conf"), "text");
    write(&kit.path("scripts/backup.sh"), "#!/bin/sh\n# text\n");
    [
        "home/.local/share/keyring",
        "neighbour/.venv/pip.conf",
        "scripts/backup.sh",
        "other/file",
        "data/admin-token",
    ]
    .map(|name| kit.text(name))
    .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_environment_of_its_own_names_an_installation_and_nothing_else() {
    let kit = Kit::new();
    let secrets = others(&kit);
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let spec = in_venv(&kit, &secrets);
    let homes = ["/usr/../bin", "/usr/bin/../../bin", "/../bin", "/bin"].map(str::to_owned);
    let claimed = ["home/.local/bin", "neighbour/.venv/bin", "scripts", "other"];
    for home in homes.into_iter().chain(claimed.map(|name| kit.text(name))) {
        write(&kit.path("own/.venv/pyvenv.cfg"), &format!("home = {home}\n"));
        assert_eq!(kit.output(&spec).await, none(&secrets), "{home}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_line_or_a_link_opens_no_program_of_others_and_nothing_around_it() {
    let kit = Kit::new();
    let secrets = others(&kit);
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let code = std::fs::read_to_string(kit::script("child.py")).unwrap();
    let mut spec = kit.on_files("read", &secrets);
    spec.command = vec!["./run".into(), "read".into()];
    symlink(kit.path("scripts/backup.sh"), kit.path("own/link")).unwrap();
    let targets =
        ["home/.local/bin/tool", "neighbour/.venv/bin/python", "scripts/backup.sh", "own/link"];
    for target in targets.map(|name| kit.text(name)) {
        for options in ["-S --unset", "-S -u"] {
            let first = format!("#!/usr/bin/env {options} {target} {}", child::python());
            write(&kit.path("own/run"), &format!("{first}\n{code}"));
            assert_eq!(kit.output(&spec).await, none(&secrets), "{first}");
        }
    }
    // The same by a link that the command leads through.
    let spec = in_venv(&kit, &secrets);
    for (name, target) in [("x", "home/.local/bin/tool"), ("y", "scripts/backup.sh")] {
        let link = format!(".venv/bin/{name}");
        symlink(kit.path(target), kit.path("own").join(&link)).unwrap();
        let mut by_link = spec.clone();
        by_link.command[0] = link;
        // It does not exist in the view, so it cannot even be started.
        assert!(kit.run(&by_link).await.is_err(), "{target}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_exchanged_while_a_process_starts_opens_nothing() {
    let kit = Kit::new();
    write(&kit.path("vault/secret"), "text");
    let code = std::fs::read_to_string(kit::script("child.py")).unwrap();
    write(&kit.path("own/sub/child.py"), &code);
    symlink(kit.path("vault"), kit.path("own/link")).unwrap();
    let secret = kit.text("vault/secret");
    let mut spec = kit.on_files("read", &[&secret]);
    spec.command = vec![child::python(), "sub/child.py".into(), "read".into()];
    let (sub, link, is_over) = (kit.path("own/sub"), kit.path("own/link"), AtomicBool::new(false));
    let mut ran = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &sub, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let starts = async {
            for _ in 0..60 {
                // It may find no script, or a link where a folder was: then it does not start.
                let Ok(finished) = kit.run(&spec).await else { continue };
                if finished.ended != ChildEnd::Exited(0) {
                    continue;
                }
                let said: Value = serde_json::from_slice(&finished.stdout).unwrap();
                assert_eq!(said, none(&[&secret]));
                assert!(finished.isolation.contains("+view"), "{}", finished.isolation);
                ran += 1;
            }
        };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(starts));
        }));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
    assert!(ran > 0, "no start succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn pipes_and_huge_files_in_its_own_folder_delay_no_start() {
    let kit = Kit::new();
    let file = kit.text("own/file");
    let code = std::fs::read_to_string(kit::script("child.py")).unwrap();
    // The host looks for `pyvenv.cfg` beside the folder of the program; this Python does not.
    write(&kit.path("own/e/bin/run"), &format!("#!{}\n{code}", child::python()));
    let command = vec!["e/bin/run".into(), "read".into()];
    let spec = ChildSpec { command, ..kit.on_files("read", &[&file]) };
    let config = kit.path("own/e/pyvenv.cfg");
    rustix::fs::mknodat(CWD, &config, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    assert_eq!(kit.output(&spec).await, json!({file.as_str(): "ok: text"}));
    std::fs::remove_file(&config).unwrap();
    std::fs::File::create(&config).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(kit.output(&spec).await, json!({file.as_str(): "ok: text"}));
    // As the program itself: refused at once, not waited for.
    rustix::fs::mknodat(CWD, kit.path("own/run"), FileType::Fifo, Mode::from_raw_mode(0o777), 0)
        .unwrap();
    let piped = ChildSpec { command: vec!["./run".into()], ..spec };
    assert!(kit.run(&piped).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_file_cannot_be_renamed_together_with_its_folder() {
    let kit = Kit::new();
    for file in ["own/deep/secrets/s", "own/deep/secrets/other"] {
        write(&kit.path(file), "text");
        std::fs::set_permissions(
            kit.path(file).parent().unwrap(),
            PermissionsExt::from_mode(0o777),
        )
        .unwrap();
    }
    std::fs::set_permissions(kit.path("own/deep"), PermissionsExt::from_mode(0o777)).unwrap();
    let rename = "import json, os, sys\n\
                  def tried(name, to):\n    try: os.rename(name, to); return 'moved'\n    \
                  except OSError as error: return error.strerror\n\
                  print(json.dumps([tried('deep', 'x'), tried('deep/secrets', 'deep/x'), open('deep/secrets/other').read()]))";
    let spec = ChildSpec {
        command: vec![child::python(), "-c".into(), rename.into()],
        hidden: vec![kit.path("own/deep/secrets/s")],
        ..kit.spec(&[])
    };
    let busy = "Device or resource busy";
    assert_eq!(kit.output(&spec).await, json!([busy, busy, "text"]));
}
