//! What a runner can reach of the host, seen from inside one.
//!
//! Invariant: expectations are DESIGN §3 ("a runner is not the host"); each spy also shows that it can work.

use crate::stage::{Stage, event, outcome, runners};
use greenroom_protocol::{RunStatus, RunView};
use serde_json::{Value, json};

/// A host with a spy beside the puppet.
async fn stage(interpreter: &str, script: &str, more: &str) -> Stage {
    let script = runners().join(script);
    let config = format!(
        "[runners.spy]\ncommand = [\"{interpreter}\", \"{}\"]\ndir = \"other\"\n{more}\n\
         [agents.spy]\nrunner = \"plugin:test/spy/main\"\nevents = []\n",
        script.display()
    );
    Stage::open(&config).await
}

/// Lets the spy try everything and says what came of each.
async fn tried(stage: &Stage, deeds: &Value) -> (Vec<(String, String)>, RunView) {
    let run_id = stage.send(&event("spy", "spying", &deeds.to_string())).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}");
    let told = stage.api.answers("spying").await.pop().unwrap();
    let told: Vec<String> = serde_json::from_str(&told).unwrap();
    let deeds = deeds.as_array().unwrap().iter().map(Value::to_string);
    (deeds.zip(told).collect(), run)
}

async fn secrets(stage: &Stage) -> Value {
    let (data, folder, host) = (stage.host.data(), stage.host.folder(), stage.host.pid());
    let other = stage.api.ready_runner("puppet").await["pid"].as_u64().unwrap();
    std::fs::write(folder.join("puppet/notes"), "secret").unwrap();
    json!([
        ["read", data.join("admin-token")],
        ["through", data.join("admin-token")],
        ["read", data.join("greenroom.db")],
        ["read", data.join("greenroom.db-wal")],
        ["read", data.join("host.json")],
        ["list", data],
        ["write", data.join("new")],
        ["read", folder.join("puppet/notes")],
        ["list", folder.join("puppet")],
        ["write", folder.join("puppet/new")],
        ["read", folder.join("greenroom.toml")],
        ["write", folder.join("greenroom.toml")],
        ["read", format!("/proc/{host}/environ")],
        ["read", format!("/proc/{host}/mem")],
        ["read", format!("/proc/{host}/maps")],
        ["list", format!("/proc/{host}/fd")],
        ["list", format!("/proc/{host}/task")],
        ["signal", host.to_string()],
        ["read", format!("/proc/{other}/environ")],
        ["read", format!("/proc/{other}/mem")],
        ["signal", other.to_string()],
    ])
}

fn work(stage: &Stage) -> Value {
    let own = stage.host.folder().join("other");
    json!([
        ["write", own.join("mine")],
        ["read", own.join("mine")],
        ["list", own],
        ["read", "/etc/passwd"],
        ["child", "1"],
        ["temp", "x"],
        ["tls", ""],
        ["variable", "HOME"],
    ])
}

async fn nothing_but_its_own(stage: Stage) {
    stage.api.ready_runner("spy").await;
    let (worked, run) = tried(&stage, &work(&stage)).await;
    let failed: Vec<_> = worked.iter().filter(|(_, told)| told != "done").collect();
    assert!(failed.is_empty(), "{failed:?}");
    let isolation = run.isolation.unwrap();
    assert_eq!(stage.api.runner("spy").await["isolation"], isolation.as_str());
    if !isolation.starts_with("landlock:") {
        // A matter of the kernel: where it is missing, that is what the run says.
        assert_eq!(isolation, "unavailable");
        return;
    }
    let (spied, _) = tried(&stage, &secrets(&stage).await).await;
    let leaked: Vec<_> = spied.iter().filter(|(_, told)| told != "refused").collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    let hidden = json!([["variable", "CARGO_MANIFEST_DIR"], ["variable", "GREENROOM_DATA"]]);
    let (hidden, _) = tried(&stage, &hidden).await;
    assert!(hidden.iter().all(|(_, told)| told == "KeyError"), "{hidden:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_runner_works_and_reaches_nothing_of_the_host() {
    nothing_but_its_own(stage("python3", "spy.py", "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_runner_works_and_reaches_nothing_of_the_host() {
    nothing_but_its_own(stage("node", "spy.js", "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn further_paths_are_open_when_the_configuration_says_so() {
    let stage = stage("python3", "spy.py", "paths = [\"puppet\"]").await;
    let notes = stage.host.folder().join("puppet/notes");
    std::fs::write(&notes, "shared").unwrap();
    let (spied, _) = tried(&stage, &json!([["read", notes]])).await;
    assert_eq!(spied[0].1, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_without_a_sandbox_is_said_to_have_none() {
    let stage =
        stage("python3", "spy.py", "sandbox = \"off\"\nenv = { PYTHONDONTWRITEBYTECODE = \"1\" }")
            .await;
    let (_, run) = tried(&stage, &work(&stage)).await;
    assert_eq!(run.isolation.as_deref(), Some("off"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_without_a_network_reaches_the_port_of_its_host_and_no_other() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = other.local_addr().unwrap().port().to_string();
    let stage = stage("python3", "spy.py", "network = false").await;
    let place = std::fs::read(stage.host.data().join("host.json")).unwrap();
    let place: Value = serde_json::from_slice(&place).unwrap();
    let (_, host) = place["url"].as_str().unwrap().rsplit_once(':').unwrap();
    let deeds = json!([["connect", host], ["connect", other], ["resolve", "example.com"]]);
    let (tried, run) = tried(&stage, &deeds).await;
    let told: Vec<&str> = tried.iter().map(|(_, told)| told.as_str()).collect();
    assert_eq!(told, ["done", "ConnectionRefusedError", "gaierror"]);
    let isolation = run.isolation.unwrap();
    assert!(isolation.contains(&format!("+netns:{host}+")), "{isolation}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_holds_three_gigabytes_in_a_nameless_file_is_stopped() {
    let stage = stage("python3", "spy.py", "memory_mb = 200").await;
    stage.api.ready_runner("spy").await;
    let run_id = stage.send(&event("spy", "spying", "[[\"hold\", \"3000\"]]")).await;
    let run = stage.api.ended_run(&run_id).await;
    let message = "runner `spy` was stopped: it used more than 200 MB of memory (`memory_mb`)";
    let error = run.error.unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("runner.crashed", message));
}
