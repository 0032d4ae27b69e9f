//! What the tests of tools share: programs in a folder of their own, and the processes that the host starts.

use crate::stage::{Stage, config};
use greenroom_testkit::host::TestHost;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The system's own where there is one: it is open to every user.
pub(crate) fn python() -> &'static str {
    let system = "/usr/bin/python3";
    if Path::new(system).exists() { system } else { "python3" }
}

pub(crate) fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resources/programs").join(name)
}

/// A host that is not started yet, in a folder that the users of tools can get into.
pub(crate) fn prepared(more: &str) -> TestHost {
    let host = TestHost::prepare(crate::PROGRAM, &config("cancel_grace_s = 1", more));
    std::fs::set_permissions(host.folder(), Permissions::from_mode(0o755)).unwrap();
    host
}

/// Writes the manifest and the program of a module into a folder of its name, with a folder `out` for it.
pub(crate) fn module(host: &TestHost, name: &str, manifest: &str) -> PathBuf {
    let folder = host.folder().join(name);
    std::fs::create_dir_all(folder.join("out")).unwrap();
    for (path, mode) in [(folder.clone(), 0o755), (folder.join("out"), 0o777)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let script = format!("{name}.py");
    std::fs::copy(program(&script), folder.join(&script)).unwrap();
    let head = format!(
        "module = \"{name}\"\ndescription = \"A module of a test\"\n\
         command = [\"{}\", \"{script}\"]\npaths = [\"out\"]\n",
        python()
    );
    std::fs::write(folder.join("module.toml"), head + manifest).unwrap();
    folder
}

/// A method in a manifest, with more keys.
pub(crate) fn method(name: &str, more: &str) -> String {
    let schema = "input_schema = { type = \"object\" }";
    let schema = if more.contains("input_schema") { "" } else { schema };
    let risk = if more.contains("risk") { "" } else { "risk = \"read\"" };
    format!("[methods.{name}]\ndescription = \"Does {name}\"\n{risk}\n{schema}\n{more}\n")
}

/// Runs the program in the folder of a host: exit code, stdout and stderr.
#[expect(clippy::disallowed_methods, reason = "these tests are about the program itself")]
pub(crate) fn greenroom(host: &TestHost, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(crate::PROGRAM);
    command.args(args).current_dir(host.folder());
    for name in ["GREENROOM_URL", "GREENROOM_TOKEN", "GREENROOM_DATA", "GREENROOM_CONFIG"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Every process that descends from the host, with its arguments.
pub(crate) fn descendants(stage: &Stage) -> Vec<(u32, Vec<String>)> {
    let host = stage.host.pid();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = all.filter(|pid| *pid != host && ancestors(*pid).contains(&host));
    own.filter_map(|pid| Some((pid, arguments(pid)?))).collect()
}

pub(crate) fn arguments(pid: u32) -> Option<Vec<String>> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// The parents of a process, nearest first.
pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything; the parent is the second field behind it.
        let parent: u32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        (parent > 1).then_some(parent)
    };
    std::iter::successors(parent(&pid), parent).collect()
}
