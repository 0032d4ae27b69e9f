//! Runners that connect from elsewhere, over WebSocket (CONTRACT §2 `/v1/runners/connect`, §3).
//!
//! Invariant: the client is a library of others, so that both ends cannot share a mistake.

use crate::PROGRAM;
use crate::stage::{PATIENCE, Stage, TOKEN, event, outcome, runners};
use greenroom_protocol::RunStatus::{Cancelled, Completed, Failed, Running};
use greenroom_testkit::wait::wait_for;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const REMOTE: &str = r#"
[runners.remote]
token = { file = "token" }
[agents.remote]
runner = "plugin:test/remote/main"
events = []
"#;

/// A process that ends with the test.
struct Process(Child);

impl Process {
    #[expect(clippy::disallowed_methods, reason = "a runner that the host does not start")]
    fn start(program: impl AsRef<Path>, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program.as_ref());
        command.args(args).envs(env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// What it said, once it is over.
    async fn said(&mut self) -> String {
        wait_for("the end of a remote runner", PATIENCE, async || self.0.try_wait().unwrap()).await;
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        said.trim().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Python that has `websockets`: the one that is given, or an environment made once for all tests.
#[expect(clippy::disallowed_methods, reason = "the tests' settings and tools are found here")]
fn python() -> PathBuf {
    if let Some(given) = std::env::var_os("GREENROOM_TEST_VENV") {
        return PathBuf::from(given).join("bin/python");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = File::create(folder.join("websockets.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let (venv, python) = (folder.join("websockets"), folder.join("websockets/bin/python"));
    let run = |program: &Path, args: &[&str]| {
        let status = Command::new(program).args(args).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{} {args:?}: {status}", program.display());
    };
    let made = folder.join("websockets/made");
    if !made.exists() {
        run(Path::new("python3"), &["-m", "venv", "--clear", venv.to_str().unwrap()]);
        run(&python, &["-m", "pip", "install", "--quiet", "websockets>=14"]);
        File::create(made).unwrap();
    }
    python
}

fn url(stage: &Stage, scheme: &str) -> String {
    let file = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    file["url"].as_str().unwrap().replace("http", scheme)
}

async fn connect(stage: &Stage, token: &str) -> Process {
    let python = tokio::task::spawn_blocking(python).await.unwrap();
    let script = runners().join("remote.py");
    let url = format!("{}/v1/runners/connect", url(stage, "ws"));
    Process::start(python, &[script.to_str().unwrap(), &url, token], &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_runner_streams_its_answer() {
    let stage = Stage::open(REMOTE).await;
    // The run waits for the runner, within the time that runners have to start.
    let run_id = stage.send(&event("remote", "c", "hello from elsewhere")).await;
    let _remote = connect(&stage, TOKEN).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Completed, ""));
    assert_eq!(run.isolation.as_deref(), Some("remote"));
    assert_eq!(stage.api.answers("c").await, ["hello from elsewhere "]);
    assert_eq!(stage.api.results(&run_id).await.len(), 4);
    assert_eq!(stage.api.ready_runner("remote").await["plugin"], "test/remote");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused() {
    let stage = Stage::open(REMOTE).await;
    let admin = std::fs::read_to_string(stage.host.data().join("admin-token")).unwrap();
    for token in ["wrong", admin.trim()] {
        assert_eq!(connect(&stage, token).await.said().await, "refused 401");
    }
    assert_eq!(stage.api.runner("remote").await["status"], "disconnected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_connection_under_the_same_name_is_refused_and_the_first_goes_on() {
    let stage = Stage::open(REMOTE).await;
    let _first = connect(&stage, TOKEN).await;
    stage.api.ready_runner("remote").await;
    let second = connect(&stage, TOKEN).await.said().await;
    assert_eq!(second, "lost 1008 runner `remote` is connected already");
    let run_id = stage.send(&event("remote", "c", "still here")).await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(stage.api.answers("c").await, ["still here "]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_another_plugin_than_configured_is_told_so() {
    let pinned =
        REMOTE.replacen("[runners.remote]\n", "[runners.remote]\nplugin = \"acme/other\"\n", 1);
    let stage = Stage::open(&pinned).await;
    let told = connect(&stage, TOKEN).await.said().await;
    assert!(
        told.starts_with("lost 1008 runner `remote` ") && told.contains("test/remote"),
        "{told}"
    );
    let runner = stage.api.runner("remote").await;
    let error = runner["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("test/remote") && error.contains("acme/other"), "{runner}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_in_the_middle_is_a_crash_and_the_next_one_serves() {
    let stage = Stage::open(REMOTE).await;
    let mut first = connect(&stage, TOKEN).await;
    stage.api.ready_runner("remote").await;
    let beside = stage.start_waiting().await;
    let waiting = stage.send(&event("remote", "waiting", "wait for me")).await;
    let dropped = stage.send(&event("remote", "dropped", "drop it")).await;
    for (run_id, conversation, text) in
        [(waiting, "waiting", "wait for me "), (dropped, "dropped", "drop it ")]
    {
        assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Failed, "runner.crashed"));
        let answers = stage.api.answers(conversation).await;
        assert!(answers.is_empty() || answers == [text], "{answers:?}");
    }
    first.said().await;
    let _second = connect(&stage, TOKEN).await;
    let run_id = stage.send(&event("remote", "c", "back")).await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(stage.api.run(&beside).await.status, Running);
    stage.finish_waiting(&beside).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_long_is_the_fault_of_its_run_alone() {
    let stage = Stage::open(REMOTE).await;
    let _remote = connect(&stage, TOKEN).await;
    stage.api.ready_runner("remote").await;
    let beside = stage.send(&event("remote", "beside", "wait for me")).await;
    let huge = stage.send(&event("remote", "huge", "huge")).await;
    let run = stage.api.ended_run(&huge).await;
    assert_eq!(outcome(&run), (Failed, "runner.protocol_error"));
    assert_eq!(run.error.map(|error| error.retryable), Some(false));
    assert_eq!(stage.api.run(&beside).await.status, Running);
    assert_eq!(outcome(&stage.cancel(&beside).await), (Cancelled, "cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_runner_has_not_connected_can_be_cancelled() {
    let stage = Stage::open(REMOTE).await;
    let run_id = stage.send(&event("remote", "c", "hello?")).await;
    assert_eq!(outcome(&stage.cancel(&run_id).await), (Cancelled, "cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_runner_does_not_connect_fails_in_time() {
    let stage = Stage::open_with("runner_start_s = 1", REMOTE).await;
    let run_id = stage.send(&event("remote", "c", "hello?")).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (Failed, "runner.unavailable"));
    let message = run.error.unwrap().message;
    assert!(message.contains("no runner offers"), "{message}");
    assert!(message.ends_with("runner `remote` is not connected"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_runner_cannot_be_what_another_one_is() {
    let stage = Stage::open(REMOTE).await;
    stage.api.ready_runner("greenroom-echo").await;
    let (url, token) = (url(&stage, "ws"), TOKEN);
    let env = [("GREENROOM_URL", url.as_str()), ("GREENROOM_RUNNER_TOKEN", token)];
    let _impostor = Process::start(PROGRAM, &["runner-process", "echo"], &env);
    let log = wait_for("a complaint", PATIENCE, async || {
        Some(stage.host.log()).filter(|log| log.contains("rejected a runner connection"))
    })
    .await;
    assert!(
        log.contains("declares itself `greenroom/echo`, which is runner `greenroom-echo`"),
        "{log}"
    );
    let run_id = stage.send(&event("echo", "c", "the real one")).await;
    assert_eq!(
        stage.api.ended_run(&run_id).await.isolation.as_deref().map(|it| it == "remote"),
        Some(false)
    );
}
