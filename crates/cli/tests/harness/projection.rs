//! What a harness gets of a run: the context, skills and files that it was granted, and nothing else.

use crate::stage::Stage;
use greenroom_testkit::host::TestHost;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
const SKILLS: &str = "[tools.know_how]\nkind = \"skills\"\ndir = \"skills\"\n";

#[tokio::test]
async fn the_workspace_has_the_context_of_the_run_without_its_token() {
    let stage = Stage::open("", "", "").await;
    let run = stage.play("c", "environment").await;
    let environment: Value = serde_json::from_str(&stage.text(&run.run_id).await).unwrap();
    let home = environment["HOME"].as_str().unwrap();
    let work = std::path::Path::new(home).with_file_name("work");
    let context = std::fs::read_to_string(work.join(".greenroom/agent-context.json")).unwrap();
    let context: Value = serde_json::from_str(&context).unwrap();
    assert_eq!(context["schema"], "langbot.agent_runner.external_harness_context.v1");
    assert_eq!(
        (&context["run_id"], &context["input"]["text"]),
        (&json!(run.run_id), &json!("environment"))
    );
    assert!(context["runtime"]["metadata"].get("run_token").is_none());
    let summary = std::fs::read_to_string(work.join(".greenroom/LANGBOT_CONTEXT.md")).unwrap();
    assert!(
        summary.contains("- from: user u1") && summary.contains("- conversation: c"),
        "{summary}"
    );
    let state = stage.api.get("/v1/state?limit=50").await.to_string();
    assert!(
        state.contains("external.session_id") && state.contains("external.working_directory"),
        "{state}"
    );
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn granted_skills_and_files_are_there_while_they_are_granted() {
    let host = TestHost::prepare(PROGRAM, "");
    let folder = host.folder().to_owned();
    for name in ["booking", "hidden"] {
        let dir = folder.join("skills").join(name);
        let text = format!("---\nname: {name}\ndescription: About {name}\n---\nHow to {name}\n");
        write(&dir.join("SKILL.md"), &text);
        write(&dir.join("more/rooms.md"), "the rooms\n");
    }
    write(&folder.join("docs/handbook.md"), "the handbook\n");
    let grant = "skills = [\"booking\"], files = [\"docs/handbook.md\"]";
    let mut stage = Stage::with(host, "", "", grant, SKILLS).await;
    let skill = "read ~/.agents/skills/booking/SKILL.md";
    assert!(stage.ask("c", skill).await.ends_with("How to booking"));
    assert_eq!(stage.ask("c", "read ~/.agents/skills/booking/more/rooms.md").await, "the rooms");
    assert_eq!(stage.ask("c", "read ~/.agents/skills/hidden/SKILL.md").await, "missing");
    assert_eq!(stage.ask("c", "read .greenroom/granted/handbook.md").await, "the handbook");
    let summary = stage.ask("c", "read .greenroom/LANGBOT_CONTEXT.md").await;
    for line in ["- skills: booking", "- files to read, beside this one: granted/handbook.md"] {
        assert!(summary.contains(line), "{summary}");
    }
    let context = stage.ask("c", "read .greenroom/agent-context.json").await;
    let context: Value = serde_json::from_str(&context).unwrap();
    let keys: BTreeSet<&str> = context.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "schema",
        "run_id",
        "event",
        "actor",
        "subject",
        "input",
        "delivery",
        "resources",
        "context",
        "state",
        "runtime",
    ];
    assert_eq!(keys, BTreeSet::from(expected));
    let file = &context["resources"]["files"][0];
    assert_eq!(
        (&file["name"], &file["metadata"]["path"]),
        (&json!("handbook.md"), &json!("granted/handbook.md"))
    );
    assert_eq!(
        context["resources"]["skills"],
        json!([{"name": "booking", "description": "About booking"}])
    );
    assert_eq!(
        context["state"]["conversation"]["external.working_directory"]
            .as_str()
            .map(|it| it.ends_with("/work")),
        Some(true)
    );
    // A skill that the user has under its own name stays as it is, also with the name of a granted one.
    stage.ask("c", "write ~/.agents/skills/mine/SKILL.md").await;
    // A changed skill is there in the next run.
    write(&folder.join("skills/booking/more/rooms.md"), "other rooms\n");
    assert_eq!(stage.ask("c", "read ~/.agents/skills/booking/more/rooms.md").await, "other rooms");
    stage.regrant("", SKILLS).await;
    assert_eq!(stage.ask("c", skill).await, "missing");
    assert_eq!(stage.ask("c", "read .greenroom/granted/handbook.md").await, "missing");
    assert_eq!(stage.ask("c", "read ~/.agents/skills/mine/SKILL.md").await, "content");
    let summary = stage.ask("c", "read .greenroom/LANGBOT_CONTEXT.md").await;
    assert!(!summary.contains("booking") && !summary.contains("handbook"), "{summary}");
}
