//! Settings of a plugin and of its agents: where they come from, what is checked, and what an event runner reads
//! about the event.

use crate::stage::{PATIENCE, Stage, agent, event, greenroom};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const MODEL: &str =
    "[models.main]\nprovider = \"scripted\"\n[models.other]\nprovider = \"scripted\"\n";

fn agents() -> String {
    let one = agent("one", "settings", "show", "grant = { models = [\"main\"] }");
    let two = agent("two", "settings", "show", "grant = { models = [\"main\", \"other\"] }");
    let own = agent(
        "own",
        "settings",
        "show",
        "config = { model = { primary = \"other\", fallbacks = [\"main\"] }, rounds = 2 }\n\
         grant = { models = [\"main\", \"other\"] }",
    );
    [one, two, own, MODEL.to_owned()].concat()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_plugin_gets_its_settings_and_the_defaults_of_its_form() {
    let settings = "[runners.settings.config]\napi-key = { file = \"key.txt\" }\n";
    let host = greenroom_testkit::host::TestHost::prepare(
        crate::PROGRAM,
        &crate::stage::config(&["settings"], &format!("{settings}{}", agents())),
    );
    std::fs::write(host.folder().join("key.txt"), "a-very-long-secret-key\n").unwrap();
    crate::stage::copy(
        &crate::stage::plugins_folder().join("settings"),
        &host.folder().join("settings"),
    );
    let stage = Stage::start(host).await;
    let shown = stage.answer("one", "c1", "settings").await;
    // The plugin has the key, and what it says of it is redacted.
    assert!(!shown.contains("a-very-long-secret-key"), "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["plugin"]["region"], "eu");
    assert_eq!(shown["plugin"], shown["at_start"]);
    assert!(shown["plugin"]["api-key"].as_str().unwrap().contains("redacted"), "{shown}");
    let runner = stage.api.ready_runner("settings").await;
    assert_eq!(runner["warnings"], json!([]), "{runner}");
}

#[tokio::test]
async fn the_only_granted_model_is_chosen_where_none_is() {
    let stage = Stage::open(&["settings"], &agents()).await;
    let shown = |answer: String| serde_json::from_str::<Value>(&answer).unwrap()["runner"].clone();
    assert_eq!(
        shown(stage.answer("one", "c1", "settings").await),
        json!({"model": {"primary": "main", "fallbacks": []}, "rounds": 5})
    );
    // Of two models none is chosen.
    assert_eq!(
        shown(stage.answer("two", "c2", "settings").await),
        json!({"model": {"primary": "", "fallbacks": []}, "rounds": 5})
    );
    assert_eq!(
        shown(stage.answer("own", "c3", "settings").await),
        json!({"model": {"primary": "other", "fallbacks": ["main"]}, "rounds": 2})
    );
}

#[tokio::test]
async fn missing_and_unknown_settings_are_told_by_check_list_and_doctor() {
    let settings = "[runners.settings.config]\nregoin = \"us\"\nregion = \"mars\"\n";
    let stage = Stage::open(&["settings"], &format!("{settings}{}", agents())).await;
    let runner = stage.api.ready_runner("settings").await;
    let expected = [
        "`[runners.settings.config]`: `regoin` is not a setting of the plugin",
        "`[runners.settings.config]`: `api-key` is required and empty",
        "`[runners.settings.config]`: `region` has no option `mars`; there are `eu`, `us`",
    ];
    assert_eq!(runner["warnings"], json!(expected));
    let (folder, data) = (stage.host.folder().to_owned(), stage.host.data());
    let data = data.to_str().unwrap();
    let listed = text(&greenroom(&folder, &["runner", "list", "--data", data]).stderr);
    assert!(listed.contains(expected[1]), "{listed}");
    let model = "agent `two`: in its `config` `model` is required and empty";
    let doctor = greenroom(&folder, &["doctor", "--data", data]);
    let doctor = text(&doctor.stdout) + &text(&doctor.stderr);
    assert!(doctor.contains(model) && doctor.contains(expected[0]), "{doctor}");
    assert!(!doctor.contains("agent `one`: in its") && !doctor.contains("agent `own`: in its"));
    // `check` reads the manifests alone.
    let checked = text(&greenroom(&folder, &["check"]).stderr);
    for problem in [
        "runner `settings`: in `[runners.settings.config]` `api-key` is required and empty",
        "runner `settings`: in `[runners.settings.config]` `regoin` is not a setting of the plugin",
        model,
    ] {
        assert!(checked.contains(problem), "{problem}\n{checked}");
    }
    assert!(!checked.contains("agent `one`: in its") && !checked.contains("agent `own`: in its"));
}

#[tokio::test]
async fn changed_settings_reach_the_plugin() {
    let stage = Stage::open(&["settings"], &agents()).await;
    let region = async || {
        let answer = stage.answer("one", "c1", "settings").await;
        serde_json::from_str::<Value>(&answer).unwrap()["plugin"]["region"].clone()
    };
    assert_eq!(region().await, "eu");
    let settings = "[runners.settings.config]\nregion = \"us\"\n";
    let config = crate::stage::config(&["settings"], &format!("{settings}{}", agents()));
    stage.host.configure(&config);
    wait_for("the new settings", PATIENCE, async || (region().await == "us").then_some(())).await;
}

#[tokio::test]
async fn an_event_runner_reads_the_parties_of_its_event_and_no_one_else() {
    let stage = Stage::open(&["settings"], &agents()).await;
    let mut group = event("one", "c1", "parties");
    group["subject"] =
        json!({"subject_type": "group", "subject_id": "g1", "data": {"name": "Team"}});
    let run_id = stage.api.send_event(&group).await.run_id.unwrap();
    stage.api.ended_run(&run_id).await;
    let shown = stage.api.answers("c1").await.pop().unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        shown["listed"],
        json!(["event_get_actor", "event_get_group", "event_get_group_member", "event_reply"])
    );
    let user = json!({"id": "u1", "nickname": "Ann", "is_bot": false});
    assert_eq!(
        shown["read"],
        json!({"event_get_actor": ["event_get_actor", user],
            "event_get_group": ["event_get_group", {"id": "g1", "name": "Team"}],
            "event_get_group_member": ["event_get_group_member",
                {"user": user, "group_id": "g1", "role": "member", "display_name": "Ann"}],
            "event_kick_member": ["PermissionDeniedError"]})
    );
    // Without a group there is none to read.
    let alone = stage.answer("one", "c2", "parties").await;
    let alone: Value = serde_json::from_str(&alone).unwrap();
    assert_eq!(alone["listed"], json!(["event_get_actor", "event_reply"]));
    assert_eq!(alone["read"]["event_get_group"], json!(["PermissionDeniedError"]));
}
