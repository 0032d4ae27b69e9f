//! What a runner can reach, seen from inside.

use crate::kit::{Kit, WAIT, data, finish, request, script};
use greenroom_runtime::{RunEnd, RunnerSpec, isolation_available};
use serde_json::{Value, json};

/// Not allowed, nothing there, or a read-only mount.
const REFUSED: [&str; 3] = ["PermissionError", "FileNotFoundError", "OSError"];

/// Landlock is a matter of the kernel; where it is missing there is nothing to show.
fn enforced() -> bool {
    isolation_available().starts_with("landlock:")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_cannot_read_what_is_not_its_own() {
    let kit = Kit::wire().await;
    assert!(kit.state().isolation.unwrap().starts_with(&isolation_available()));
    if !enforced() {
        return;
    }
    let host = std::process::id();
    let secrets = [
        format!("read {}", kit.path("data/admin-token").display()),
        format!("read {}", kit.path("other/code.py").display()),
        format!("list {}", kit.path("data").display()),
        format!("list {}", kit.path("other").display()),
        format!("write {}", kit.path("data/new").display()),
        format!("read /proc/{host}/environ"),
        format!("read /proc/{host}/maps"),
        format!("list /proc/{host}/fd"),
        format!("kill {host}"),
        "list /proc".to_owned(),
        "list /root".to_owned(),
        "write /etc/new".to_owned(),
    ];
    for secret in secrets {
        let seen = kit.output(&secret).await;
        assert!(REFUSED.contains(&seen.as_str().unwrap()), "{secret}: {seen}");
    }
    let own = [
        format!("write {}", kit.path("wire/new").display()),
        format!("list {}", kit.path("wire").display()),
        "read /etc/passwd".to_owned(),
        "read /proc/self/status".to_owned(),
        "read /proc/meminfo".to_owned(),
        "write /dev/null".to_owned(),
    ];
    for open in own {
        let seen = kit.output(&open).await;
        assert!(seen.as_str().unwrap().starts_with("ok"), "{open}: {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_works_in_the_sandbox() {
    let kit = Kit::wire().await;
    assert_eq!(kit.output("python").await, json!(["42", true, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn node_works_in_the_sandbox() {
    let kit = Kit::new();
    let spec = RunnerSpec { command: vec!["node".into(), script("wire.js")], ..kit.spec() };
    kit.runtime.apply(vec![spec]).await;
    let id = "plugin:test/node/main";
    kit.runtime.ready(&greenroom_protocol::RunnerId::parse(id).unwrap(), WAIT).await.unwrap();
    let secret = kit.path("data/admin-token");
    let run = kit.runtime.start_run(request(id, "r", secret.to_str().unwrap())).await.unwrap();
    let (results, end) = finish(run).await;
    assert_eq!(end, RunEnd::Finished);
    let content = data(&results[0])["message"]["content"].clone();
    let seen: Value = serde_json::from_str(content.as_str().unwrap()).unwrap();
    let secret = if enforced() { "ENOENT" } else { "ok: secret" };
    assert_eq!(
        seen,
        json!({"secret": secret, "child": "ok: 42", "temp": "ok: undefined", "crypto": "ok: 2"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_environment_works_in_the_sandbox() {
    let kit = Kit::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the test makes the environment that the runner uses"
    )]
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(kit.path("wire/venv"))
        .status()
        .unwrap();
    assert!(made.success());
    let spec =
        RunnerSpec { command: vec!["venv/bin/python".into(), script("wire.py")], ..kit.spec() };
    kit.runtime.apply(vec![spec]).await;
    kit.ready().await;
    assert_eq!(kit.output("python").await, json!(["42", true, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_names_its_interpreter_works_in_the_sandbox() {
    use std::os::unix::fs::PermissionsExt;
    let kit = Kit::new();
    let file = kit.path("wire/run.py");
    let code = std::fs::read_to_string(script("wire.py")).unwrap();
    std::fs::write(&file, format!("#!/usr/bin/env python3\n{code}")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    kit.runtime.apply(vec![RunnerSpec { command: vec!["./run.py".into()], ..kit.spec() }]).await;
    kit.ready().await;
    assert_eq!(kit.output("python").await, json!(["42", true, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_starts_with_its_own_session_environment_and_descriptors_only() {
    let kit = Kit::new();
    let mut spec = kit.spec();
    spec.env.insert("API_KEY".into(), "k".into());
    kit.runtime.apply(vec![spec]).await;
    kit.ready().await;
    let seen = kit.output("self").await;
    assert_eq!(seen["sid"], true);
    assert_eq!(seen["cwd"], kit.path("wire").to_str().unwrap());
    // The fourth is the listing itself.
    assert_eq!(seen["fds"], json!([0, 1, 2, 3]));
    let environment = seen["env"].as_object().unwrap();
    assert_eq!(environment["API_KEY"], "k");
    assert!(!environment.contains_key("CARGO_MANIFEST_DIR") && !environment.contains_key("USER"));
    let private = kit.path("data/run");
    for name in ["HOME", "TMPDIR"] {
        assert!(environment[name].as_str().unwrap().starts_with(private.to_str().unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_around_the_data_folder_is_open_without_it() {
    let kit = Kit::new();
    std::fs::write(kit.path("helper.py"), "").unwrap();
    let spec = RunnerSpec { dir: kit.folder.path().to_owned(), ..kit.spec() };
    kit.runtime.apply(vec![spec]).await;
    kit.ready().await;
    if !enforced() {
        return;
    }
    let token = kit.output(&format!("read {}", kit.path("data/admin-token").display())).await;
    assert!(["PermissionError", "FileNotFoundError"].contains(&token.as_str().unwrap()), "{token}");
    let beside = kit.output(&format!("read {}", kit.path("other/code.py").display())).await;
    assert_eq!(beside, "ok: b'secret'");
    let written = kit.output(&format!("write {}", kit.path("data/new").display())).await;
    assert!(!written.as_str().unwrap().starts_with("ok"), "{written}");
    // Where covering is not allowed, the folder is open entry by entry, with a warning.
    let listed = kit.output(&format!("list {}", kit.folder.path().display())).await;
    let expected = match kit.state().warnings.len() {
        0 => json!("ok: ['data', 'helper.py', 'other', 'wire']"),
        _ => json!("PermissionError"),
    };
    assert_eq!(listed, expected);
    assert_eq!(kit.output("python").await, json!(["42", true, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_folder_cannot_be_a_runners_folder() {
    let kit = Kit::new();
    kit.runtime.apply(vec![RunnerSpec { dir: kit.path("data"), ..kit.spec() }]).await;
    let error = crate::kit::eventually("the refusal", || kit.state().last_error).await;
    assert!(error.ends_with("is kept from runners: give this one a folder of its own"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_it_is_said() {
    let kit = Kit::new();
    kit.runtime
        .apply(vec![RunnerSpec { sandbox: greenroom_runtime::Sandbox::Off, ..kit.spec() }])
        .await;
    kit.ready().await;
    assert_eq!(kit.state().isolation.as_deref(), Some("off"));
    let run = kit.start("echo x").await;
    assert_eq!(run.isolation(), "off");
    finish(run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_not_the_runners_own_is_read_only_and_hides_files() {
    let kit = Kit::new();
    for name in ["config.toml", "secret", "helper.py"] {
        std::fs::write(kit.path(name), "text").unwrap();
    }
    let spec = RunnerSpec {
        dir: kit.folder.path().to_owned(),
        owns_dir: false,
        hidden: vec![kit.path("config.toml"), kit.path("secret")],
        ..kit.spec()
    };
    kit.runtime.apply(vec![spec]).await;
    kit.ready().await;
    if !enforced() {
        return;
    }
    for name in ["config.toml", "secret"] {
        // Covered by an empty file, or not open at all.
        let read = kit.output(&format!("read {}", kit.path(name).display())).await;
        assert!(["ok: b''", "PermissionError"].contains(&read.as_str().unwrap()), "{name}: {read}");
        kit.output(&format!("write {}", kit.path(name).display())).await;
        assert_eq!(std::fs::read_to_string(kit.path(name)).unwrap(), "text");
    }
    let helper = kit.path("helper.py");
    assert_eq!(kit.output(&format!("read {}", helper.display())).await, "ok: b'text'");
    for path in [helper, kit.path("new")] {
        // The error of a read-only file system.
        assert_eq!(kit.output(&format!("write {}", path.display())).await, "OSError");
    }
    assert_eq!(kit.output("python").await, json!(["42", true, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_file_stays_hidden_in_a_runners_own_folder() {
    let kit = Kit::new();
    let secret = kit.path("wire/secret");
    std::fs::write(&secret, "text").unwrap();
    kit.runtime.apply(vec![RunnerSpec { hidden: vec![secret.clone()], ..kit.spec() }]).await;
    kit.ready().await;
    if !enforced() {
        return;
    }
    let read = kit.output(&format!("read {}", secret.display())).await;
    assert!(["ok: b''", "PermissionError"].contains(&read.as_str().unwrap()), "{read}");
    kit.output(&format!("write {}", secret.display())).await;
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_cannot_change_the_host_or_leave_its_processes() {
    let kit = Kit::wire().await;
    let seen = kit.output(&format!("reach {}", std::process::id())).await;
    for (what, outcome) in seen.as_object().unwrap() {
        assert_eq!(outcome, "PermissionError", "{what}");
    }
    assert_eq!(kit.state().warnings, Vec::<String>::new());
    let private = kit.output("self").await["env"]["HOME"].as_str().unwrap().to_owned();
    assert!(!private.contains(&format!("-{}-", std::process::id())), "{private}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_may_do_with_its_own_processes_what_it_likes() {
    let kit = Kit::wire().await;
    let seen = kit.output("own").await;
    assert_eq!(
        seen,
        json!({
            "child": 7, "limit": "ok: None", "nice": "ok: 1", "affinity": "ok: None",
            "socket": "ok: None", "capabilities": ["0000000000000000"],
        })
    );
}
