//! The wall between the sessions of one runner, and what happens where there is none.

use super::stage::Stage;
use greenroom_protocol::RunStatus;
use greenroom_testkit::host::TestHost;
use serde_json::Value;
use std::path::PathBuf;

/// Parts of the kernel to do without: the host of these tests has the feature `faults`.
async fn stage(without: &str, sessions: &str) -> Stage {
    let mut host = TestHost::prepare(env!("CARGO_BIN_EXE_greenroom"), "");
    host.set_env("GREENROOM_WITHOUT", without);
    Stage::with(host, sessions, "", "", "").await
}

/// The folder of a conversation.
fn root(stage: &Stage, conversation: &str) -> PathBuf {
    let folders = std::fs::read_dir(stage.host.data().join("harness/fake/workspaces")).unwrap();
    let is_its = |folder: &PathBuf| {
        let record = std::fs::read(folder.join("workspace.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        record["owner"]["conversation_id"] == conversation
    };
    folders.map(|folder| folder.unwrap().path()).find(is_its).unwrap()
}

#[tokio::test]
async fn a_session_finds_nothing_of_another_one_with_namespaces_and_without() {
    for (without, part) in [("", "sessions:view"), ("namespaces", "sessions:landlock")] {
        let stage = stage(without, "").await;
        stage.ask("c", "write secret").await;
        stage.ask("d", "write own").await;
        let runners = stage.api.get("/v1/runners").await.to_string();
        assert!(runners.contains(part), "{runners}");
        let (other, own) = (root(&stage, "c"), root(&stage, "d"));
        let path = |of: &PathBuf, name: &str| of.join(name).display().to_string();
        for (word, name) in [
            ("read", "work/secret"),
            ("append", "work/secret"),
            ("list", "work"),
            ("list", "home"),
            ("read", "home/sessions.json"),
            ("chmod", "work/secret"),
        ] {
            let control = path(&own, &name.replace("secret", "own"));
            let allowed = stage.ask("d", &format!("try {word} {control}")).await;
            // Without a view nobody may change modes.
            let is_allowed = word != "chmod" || without.is_empty();
            assert_eq!(allowed == "ok", is_allowed, "{word} {control}: {allowed}");
            let refused = stage.ask("d", &format!("try {word} {}", path(&other, name))).await;
            let errors = ["FileNotFoundError", "PermissionError", "OSError"];
            assert!(errors.contains(&&*refused), "{without} {word} {name}: {refused}");
        }
        for name in ["../workspace.json", "../new", "../../new"] {
            let refused = stage.ask("d", &format!("try append {name}")).await;
            assert_ne!(refused, "ok", "{without} {name}");
        }
        assert_eq!(std::fs::read_to_string(other.join("work/secret")).unwrap(), "content\n");
    }
}

#[tokio::test]
async fn a_runner_whose_sessions_cannot_be_apart_starts_only_if_they_may_be_together() {
    let none = "namespaces,landlock:3";
    let apart = stage(none, "").await;
    let run = apart.play("c", "one").await;
    assert_eq!(run.status, RunStatus::Failed);
    let runners = apart.api.get("/v1/runners").await.to_string();
    assert!(
        runners.contains("cannot keep its sessions apart")
            && runners.contains("sessions = { apart = false }"),
        "{runners}"
    );
    let together = stage(none, "apart = false").await;
    assert_eq!(together.ask("c", "one").await, "one");
    let runners = together.api.get("/v1/runners").await.to_string();
    assert!(!runners.contains("sessions:"), "{runners}");
}
