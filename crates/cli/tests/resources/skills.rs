//! Skills: cards in the context, bodies on demand, nothing granted by them.

use crate::play;
use crate::stage::Stage;
use serde_json::{Value, json};

#[tokio::test]
async fn a_run_sees_the_cards_of_its_skills_and_reads_their_bodies() {
    let config = r#"
[tools.know_how]
kind = "skills"
dir = "skills"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
grant = { skills = ["booking"] }
"#;
    let host = greenroom_testkit::host::TestHost::prepare(
        crate::PROGRAM,
        &crate::stage::config("cancel_grace_s = 1", config),
    );
    for (name, about) in [("booking", "Book a room"), ("hidden", "Not for everyone")] {
        let dir = host.folder().join("skills").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let text = format!("---\nname: {name}\ndescription: {about}\n---\n# How to {name}\n");
        std::fs::write(dir.join("SKILL.md"), text).unwrap();
    }
    let stage = Stage::with(host).await;
    let read = |skill: &str, name: &str| {
        let params = json!({"tool_name": "skill.read", "parameters": {"skill": skill}});
        json!(["call", "tools.call", params, name])
    };
    let steps = vec![json!(["tell", "resources"]), read("booking", "one"), read("hidden", "two")];
    let run = play(&stage, "ann", "c1", steps).await;
    let resources: Value = serde_json::from_str(&stage.answers_of(&run).await[0]).unwrap();
    let card = json!([{"name": "booking", "description": "Book a room"}]);
    assert_eq!(resources["skills"], card);
    let names: Vec<&Value> =
        resources["tools"].as_array().unwrap().iter().map(|tool| &tool["tool_name"]).collect();
    assert_eq!(names, ["skill.read"]);
    let one = stage.told("one").await;
    assert!(one["result"]["result"]["content"].as_str().unwrap().ends_with("# How to booking\n"));
    assert_eq!(stage.told("two").await["result"]["error"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn a_built_in_module_is_explained_before_its_first_call() {
    let config = r#"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
grant = { modules = ["calendar.create", "calendar.read"], skills = ["calendar"] }
"#;
    let stage = Stage::open(config).await;
    let read = |path: &str, name: &str| {
        let parameters = json!({"skill": "calendar", "path": path});
        let params = json!({"tool_name": "skill.read", "parameters": parameters});
        json!(["call", "tools.call", params, name])
    };
    let steps = vec![
        json!(["tell", "resources"]),
        read("SKILL.md", "overview"),
        read("create.md", "create"),
        read("delete.md", "delete"),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    let resources: Value = serde_json::from_str(&stage.answers_of(&run).await[0]).unwrap();
    assert_eq!(resources["skills"][0]["name"], "calendar");
    let overview = stage.told("overview").await["result"]["result"]["content"].to_string();
    assert!(overview.contains("`create`") && !overview.contains("`delete`"), "{overview}");
    let create = stage.told("create").await["result"]["result"]["content"].to_string();
    for field in ["title", "start_at", "end_at", "timezone", "location", "notes"] {
        assert!(create.contains(&format!("`{field}`")), "{field}: {create}");
    }
    let delete = stage.told("delete").await;
    assert_eq!(delete["result"]["error"]["code"], "NOT_FOUND", "{delete}");
}
