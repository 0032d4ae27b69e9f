//! `greenroom runner add` and `runner list`: a plugin becomes a runner, and it is said what it asks for.

use crate::PROGRAM;
use crate::stage::{SDK, Stage, copy, greenroom, plugins_folder};
use greenroom_testkit::host::TestHost;
use std::path::Path;
use std::process::Command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Packs a folder as LangBot does.
#[expect(clippy::disallowed_methods, reason = "Python packs what Python unpacks")]
fn pack(folder: &Path, package: &Path) {
    let script = "import shutil, sys; shutil.make_archive(sys.argv[2], 'zip', sys.argv[1])";
    let made = Command::new("python3").args(["-c", script]).arg(folder).arg(package).status();
    assert!(made.unwrap().success());
    std::fs::rename(package.with_extension("lbpkg.zip"), package).unwrap();
}

#[tokio::test]
async fn a_package_is_unpacked_installed_configured_and_answers() {
    let host = TestHost::prepare(PROGRAM, "# mine\n[limits] # not touched\nrunner_start_s = 60");
    let folder = host.folder().to_owned();
    let source = tempfile::tempdir().unwrap();
    copy(&plugins_folder().join("basics"), source.path());
    pack(source.path(), &folder.join("basics.lbpkg"));
    let added = greenroom(&folder, &["runner", "add", "basics.lbpkg", "--name", "helper"]);
    let (told, said) = (text(&added.stdout), text(&added.stderr));
    assert!(added.status.success(), "{told}{said}");
    assert!(told.contains("plugin:greenroom-tests/basics/plain"), "{told}");
    assert!(told.contains("nothing"), "{told}");
    let config = std::fs::read_to_string(folder.join("greenroom.toml")).unwrap();
    assert_eq!(
        config,
        "# mine\n[limits] # not touched\nrunner_start_s = 60\n\n[runners.helper]\nwire = \"langbot\"\n\
         dir = \"plugins/basics\"\nplugin = \"greenroom-tests/basics\"\n\
         network = true                      # or a list: [\"api.example.com:443\"]\n"
    );
    // What is there already is not added again, and the file stays as it was.
    copy(&plugins_folder().join("basics"), &folder.join("twin"));
    for (path, name, reason) in [
        ("plugins/basics", "helper", "plugins/basics` is `[runners.helper]` already"),
        ("plugins/basics", "second", "plugins/basics` is `[runners.helper]` already"),
        ("twin", "second", "`greenroom-tests/basics` is `[runners.helper]` already"),
    ] {
        let again = greenroom(&folder, &["runner", "add", path, "--name", name]);
        let said = text(&again.stderr);
        assert!(!again.status.success() && said.contains(reason), "{said}");
        assert!(!said.contains("--name"), "it would not help: {said}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("greenroom.toml")).unwrap(), config);
    host.configure(&format!(
        "{config}[agents.helper]\nrunner = \"plugin:greenroom-tests/basics/plain\"\nevents = []\n"
    ));
    let stage = Stage::start(host).await;
    assert_eq!(stage.answer("helper", "c1", "hello").await, "Received: hello");
    let line = stage.listed("helper");
    assert!(line.contains(&format!("langbot Runner {SDK}")), "{line}");
}

#[test]
fn a_configuration_with_a_mistake_is_not_added_to() {
    let folder = tempfile::tempdir().unwrap();
    copy(&plugins_folder().join("basics"), &folder.path().join("basics"));
    let config = "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\napi_key = { env = \"NO_SUCH_KEY_HERE\" }\n";
    std::fs::write(folder.path().join("greenroom.toml"), config).unwrap();
    let added = greenroom(folder.path(), &["runner", "add", "basics"]);
    let said = text(&added.stderr);
    assert!(!added.status.success() && said.contains("NO_SUCH_KEY_HERE"), "{said}");
    assert!(!said.contains("--name"), "it would not help: {said}");
    assert!(!folder.path().join("basics/.venv").exists(), "nothing was installed");
    assert_eq!(std::fs::read_to_string(folder.path().join("greenroom.toml")).unwrap(), config);
}

#[test]
fn what_cannot_be_read_is_told_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.lbpkg"), "no package").unwrap();
    let added = greenroom(folder.path(), &["runner", "add", "bad.lbpkg"]);
    let said = text(&added.stderr);
    assert!(!added.status.success() && said.contains("File is not a zip file"), "{said}");
    assert!(!said.contains("Traceback") && !said.contains("line "), "{said}");
}

#[test]
fn what_is_no_plugin_is_not_added() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for (path, reason) in [("empty", "is not a LangBot plugin"), ("none", "does not exist")] {
        let added = greenroom(folder.path(), &["runner", "add", path]);
        assert_eq!(added.status.code(), Some(2), "{}", text(&added.stderr));
        assert!(text(&added.stderr).contains(reason), "{}", text(&added.stderr));
    }
    assert!(!folder.path().join("greenroom.toml").exists());
}

#[test]
fn an_older_plugin_is_refused_with_the_way_out_before_anything_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("older");
    copy(&plugins_folder().join("basics"), &plugin);
    let component = plugin.join("components/runner/plain.yaml");
    let described = std::fs::read_to_string(&component).unwrap();
    std::fs::write(&component, described.replace("kind: Runner", "kind: AgentRunner")).unwrap();
    let added = greenroom(folder.path(), &["runner", "add", "older"]);
    let said = text(&added.stderr);
    assert_eq!(added.status.code(), Some(2), "{said}");
    assert!(said.contains("older dialect") && said.contains("--sdk"), "{said}");
    assert!(!plugin.join(".venv").exists());
    assert!(!folder.path().join("greenroom.toml").exists());
}
