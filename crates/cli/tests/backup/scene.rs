//! A host with a puppet and a webhook, and the commands that are run beside it.

use crate::PROGRAM;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// Refused with a sentence that says this.
    pub(crate) fn refused(&self, sentence: &str) {
        assert_eq!(self.code, 1, "{self:?}");
        assert!(self.err.contains(sentence) && self.err.contains("hint: "), "{self:?}");
    }
}

/// Runs the program on a thread that may wait for it.
pub(crate) async fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Told {
    run_with(args, None).await
}

/// The same, ending at a fault.
pub(crate) async fn run_with<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    fault: Option<&str>,
) -> Told {
    #[expect(clippy::disallowed_methods, reason = "these tests are about the program itself")]
    let mut command = Command::new(PROGRAM);
    command.args(args).stdin(Stdio::null());
    for name in ["GREENROOM_URL", "GREENROOM_TOKEN", "GREENROOM_DATA", "GREENROOM_CONFIG"] {
        command.env_remove(name);
    }
    command.envs(fault.map(|fault| ("GREENROOM_FAULT", fault)));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Told {
        code: output.status.code().unwrap_or(-1),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// A configuration with a puppet, an agent that has to ask, and secrets in files. `more` stands before all tables.
pub(crate) fn config(store: &str, hook: &str) -> String {
    let puppet = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host/runners/puppet.py");
    format!(
        r#"
[store]
{store}
sync = "normal"
[runners.puppet]
command = ["python3", "{}"]
dir = "puppet"
[agents.puppet]
runner = "plugin:test/puppet/main"
events = []
[agents.asking]
runner = "plugin:test/puppet/main"
events = []
delivery = "hook"
grant = {{ actions = {{ "message.send" = "ask" }} }}
[surfaces.hook]
kind = "webhook"
url = "{hook}"
allow_private = true
actions = ["message.send"]
[tokens.ci]
role = "reader"
token = {{ file = "secrets/ci" }}
"#,
        puppet.display()
    )
}

/// A host that is not started yet, with what its configuration names.
pub(crate) fn prepare(config: &str) -> TestHost {
    let host = TestHost::prepare(PROGRAM, config);
    std::fs::create_dir_all(host.folder().join("puppet")).unwrap();
    std::fs::create_dir_all(host.folder().join("secrets")).unwrap();
    std::fs::write(host.folder().join("secrets/ci"), "ci-token-0123456789abcdef").unwrap();
    host
}

pub(crate) fn event(agent: &str, conversation: &str, text: &str) -> Value {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    json!({"event_type": "message.received", "agent": agent, "conversation_id": conversation,
        "event_id": format!("{conversation}-{plain}"),
        "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text}})
}

pub(crate) fn upload(bytes: Vec<u8>) -> Request {
    let mut request = Request::post("/v1/artifacts?name=notes.bin", bytes);
    request.headers.clear();
    request.header("content-type", "application/octet-stream")
}

/// A contact that an actor keeps.
pub(crate) fn contact(id: &str, name: &str) -> Request {
    let body = json!({"op": "put", "module": "contacts", "id": id, "body": {"name": name}});
    Request::post("/v1/tool-runtime/records", body.to_string()).header("x-greenroom-actor", "ann")
}

pub(crate) fn contact_of(id: &str) -> Request {
    let body = json!({"op": "get", "module": "contacts", "id": id});
    Request::post("/v1/tool-runtime/records", body.to_string()).header("x-greenroom-actor", "ann")
}

/// A backup of a host, as its own file.
pub(crate) async fn back_up(host: &TestHost, name: &str) -> PathBuf {
    let file = host.folder().join(name);
    let told = run(create(host, &file)).await;
    assert_eq!(told.json()["file"], file.to_str().unwrap(), "{told:?}");
    file
}

pub(crate) fn create(host: &TestHost, file: &Path) -> Vec<String> {
    let args = ["backup", "create", "--json", "--data"].map(str::to_owned);
    let config = host.folder().join("greenroom.toml");
    let rest = [&host.data(), Path::new("--config"), &config, Path::new("--to"), file]
        .map(|part: &Path| part.to_str().unwrap().to_owned());
    args.into_iter().chain(rest).collect()
}

/// Restores into the folder of a host that was not started yet.
pub(crate) async fn restore(file: &Path, host: &TestHost, more: &[&str]) -> Told {
    let (file, data) = (file.to_str().unwrap(), host.data());
    let args = ["backup", "restore", file, "--data", data.to_str().unwrap(), "--json"];
    run(args.into_iter().chain(more.iter().copied())).await
}
