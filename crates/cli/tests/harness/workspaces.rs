//! Workspaces: what a harness makes is an artifact, and people list, compare and remove them.

use crate::stage::Stage;
use greenroom_protocol::RunStatus;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, SystemTime};

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "the repository of a test")]
fn git(dir: &Path, args: &[&str]) -> String {
    let settings = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let mut command = std::process::Command::new("git");
    let output = command.args(settings).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Name and content of the files that a run made.
async fn files(stage: &Stage, run_id: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for created in stage.data(run_id, "artifact.created").await {
        let id = created["artifact_id"].as_str().unwrap();
        let request = greenroom_testkit::http::Request::get(format!("/v1/artifacts/{id}"));
        let bytes = stage.api.send(request).await.unwrap().body().await.unwrap();
        let name = created["name"].as_str().unwrap().to_owned();
        files.push((name, String::from_utf8(bytes).unwrap()));
    }
    files
}

#[tokio::test]
async fn files_that_a_harness_made_are_artifacts_of_the_run() {
    let stage = Stage::open("", "", "").await;
    let run = stage.play("c", "write out/report.txt").await;
    let expected = [("report.txt".to_owned(), "content\n".to_owned())];
    assert_eq!(files(&stage, &run.run_id).await, expected);
    let created = &stage.data(&run.run_id, "artifact.created").await[0];
    assert_eq!(created["metadata"]["path"], "out/report.txt");
    let run = stage.play("c", "two").await;
    assert_eq!(files(&stage, &run.run_id).await, []);
    let run = stage.play("c", "write .hidden").await;
    assert_eq!(files(&stage, &run.run_id).await, []);
}

#[tokio::test]
async fn a_workspace_is_listed_shown_and_removed() {
    let stage = Stage::open("", "", "").await;
    stage.ask("c", "write a.txt").await;
    stage.ask("d", "one").await;
    let list = stage.printed(&["workspace", "list", "--json"]);
    let of = |conversation: &str| {
        let items = list["items"].as_array().unwrap().iter();
        items.filter(|one| one["conversation_id"] == conversation).cloned().collect::<Vec<Value>>()
    };
    assert_eq!((of("c").len(), of("d").len(), list["items"].as_array().unwrap().len()), (1, 1, 2));
    let one = &of("c")[0];
    assert_eq!(
        (&one["runner"], &one["agent"], &one["kind"]),
        (&json!("fake"), &json!("fake"), &json!("conversation"))
    );
    assert!(
        one["size_bytes"].as_u64().unwrap() > 8 && one["used_at"].as_str().unwrap().ends_with('Z'),
        "{one}"
    );
    let id = one["id"].as_str().unwrap();
    let text = String::from_utf8(stage.command(&["workspace", "list"]).stdout).unwrap();
    assert!(text.starts_with("ID") && text.contains(id) && text.contains("conversation"), "{text}");
    let shown = stage.printed(&["workspace", "show", &id[..8]]);
    assert_eq!((&shown["id"], &shown["path"]), (&one["id"], &one["path"]));
    let diff = stage.command(&["workspace", "diff", id]);
    let problem = String::from_utf8(diff.stderr).unwrap();
    assert!(
        diff.status.code() == Some(2) && problem.contains("is no `git` workspace"),
        "{problem}"
    );
    // Not while a run uses it.
    let run_id = stage.send("c", "wait").await;
    stage.said(&run_id, "waiting").await;
    let refused = stage.command(&["workspace", "remove", id]);
    let problem = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && problem.contains("a run uses workspace"), "{problem}");
    let cancel = format!("/v1/runs/{run_id}/cancel");
    stage.api.json(greenroom_testkit::http::Request::post(cancel, "")).await.unwrap();
    assert_eq!(stage.api.ended_run(&run_id).await.status, RunStatus::Cancelled);
    wait_for("the removal", PATIENCE, async || {
        stage.command(&["workspace", "remove", id]).status.success().then_some(())
    })
    .await;
    let missing = stage.command(&["workspace", "show", id]);
    assert_eq!(missing.status.code(), Some(3), "{missing:?}");
    // The conversation continues in an empty one, though its session is still open.
    let text = stage.ask("c", "read a.txt").await;
    assert!(text.starts_with("The workspace of this conversation was removed."), "{text}");
    assert!(text.ends_with("missing"), "{text}");
    assert_eq!(stage.ask("d", "two").await, "one | two");
}

#[tokio::test]
async fn a_git_workspace_has_a_branch_and_its_changes_are_an_artifact() {
    let host = TestHost::prepare(PROGRAM, "");
    let project = host.folder().join("project");
    std::fs::create_dir_all(&project).unwrap();
    git(&project, &["init", "--quiet", "-b", "main"]);
    std::fs::write(project.join("a.txt"), "one\n").unwrap();
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "first"]);
    let before = git(&project, &["for-each-ref"]);
    let config = format!(", workspace = \"git\", repository = {:?}", project.to_str().unwrap());
    let stage = Stage::with(host, "", &config, "", "").await;
    assert_eq!(stage.ask("c", "read a.txt").await, "one");
    stage.ask("c", "write a.txt").await;
    let run = stage.play("c", "write new.txt").await;
    let made = files(&stage, &run.run_id).await;
    assert_eq!((made.len(), made[0].0.as_str()), (1, "changes.diff"));
    let diff = &made[0].1;
    assert!(diff.contains("-one\n+content\n") && diff.contains("+++ b/new.txt"), "{diff}");
    // Another conversation does not see it.
    assert_eq!(stage.ask("d", "read a.txt").await, "one");
    let list = stage.printed(&["workspace", "list", "--json"]);
    let items = list["items"].as_array().unwrap();
    let one = items.iter().find(|one| one["conversation_id"] == "c").unwrap();
    let id = one["id"].as_str().unwrap();
    let head = git(&project, &["rev-parse", "HEAD"]);
    assert_eq!(
        (&one["branch"], &one["base"]),
        (&json!(format!("greenroom/{id}")), &json!(head.trim()))
    );
    let printed = stage.command(&["workspace", "diff", id]);
    assert_eq!(&String::from_utf8(printed.stdout).unwrap(), diff);
    // It applies to the repository, which nobody else has changed.
    std::fs::write(stage.host.folder().join("changes"), diff).unwrap();
    assert_eq!(git(&project, &["for-each-ref"]), before);
    git(&project, &["apply", "../changes"]);
    assert_eq!(std::fs::read_to_string(project.join("a.txt")).unwrap(), "content\n");
    assert!(stage.command(&["workspace", "remove", id]).status.success());
    assert!(stage.ask("c", "read a.txt").await.ends_with("one"));
}

#[tokio::test]
async fn a_given_folder_is_used_as_it_is_and_stays() {
    let host = TestHost::prepare(PROGRAM, "");
    let shared = host.folder().join("shared");
    std::fs::create_dir_all(&shared).unwrap();
    std::fs::write(shared.join("given.txt"), "given\n").unwrap();
    let config = format!(", workspace = \"folder\", folder = {:?}", shared.to_str().unwrap());
    let stage = Stage::with(host, "", &config, "", "").await;
    assert_eq!(stage.ask("c", "read given.txt").await, "given");
    let run = stage.play("c", "write made.txt").await;
    let expected = [("made.txt".to_owned(), "content\n".to_owned())];
    assert_eq!(files(&stage, &run.run_id).await, expected);
    let list = stage.printed(&["workspace", "list", "--json"]);
    assert_eq!(list["items"][0]["kind"], "folder");
    let id = list["items"][0]["id"].as_str().unwrap();
    let removed = stage.command(&["workspace", "remove", id]);
    let note = String::from_utf8(removed.stderr).unwrap();
    assert!(removed.status.success() && note.contains("itself is unchanged"), "{note}");
    assert!(shared.join("given.txt").exists() && shared.join("made.txt").exists());
}

#[tokio::test]
async fn a_workspace_that_nobody_uses_is_removed_after_the_time_of_its_retention() {
    for key in ["workspaces_days = 30", "transcript_days = 30"] {
        let host = TestHost::prepare(PROGRAM, "");
        let more = format!("[retention]\n{key}\ncollect_every_s = 1\n");
        let stage = Stage::with(host, "", "", "", &more).await;
        stage.ask("c", "one").await;
        stage.ask("d", "one").await;
        let list = stage.printed(&["workspace", "list", "--json"]);
        let root = |conversation: &str| {
            let items = list["items"].as_array().unwrap().iter();
            let mut of = items.filter(|one| one["conversation_id"] == conversation);
            let id = of.next().unwrap()["id"].as_str().unwrap().to_owned();
            stage.host.data().join("harness/fake/workspaces").join(id)
        };
        let (old, young) = (root("c"), root("d"));
        let age = |root: &Path, days: u64| {
            let record = std::fs::File::options().write(true).open(root.join("workspace.json"));
            let at = SystemTime::now() - Duration::from_secs(days * 86_400);
            record.unwrap().set_modified(at).unwrap();
        };
        age(&young, 29);
        age(&old, 31);
        wait_for("the removal of the old workspace", PATIENCE, async || {
            (!old.exists()).then_some(())
        })
        .await;
        assert!(young.join("work").is_dir(), "{key}");
        // It is gone with everything in it.
        let folder = old.parent().unwrap();
        wait_for("an empty place", PATIENCE, async || {
            (std::fs::read_dir(folder).unwrap().count() == 1).then_some(())
        })
        .await;
    }
}
