//! More tools than a prompt should hold, and a block of tools that stays as it is.

use crate::checks::{is_paired, offered, results};
use crate::scene::{Scene, Setting};
use crate::stage::{Stage, config, event};
use crate::yard::{FOLDER, yard};
use greenroom_testkit::host::TestHost;
use serde_json::{Value, json};

/// What the agent offers beside the granted tools.
const OWN: [&str; 3] = ["search_tools", "search_history", "artifact_read"];

async fn crowded(script: &str) -> Scene {
    let (more, grant) = (yard(60), "tools = [\"yard.*\"]");
    let config = "{ tools_in_prompt = 8 }";
    Setting { script, more: &more, grant, config, files: &[FOLDER], ..Setting::default() }
        .open()
        .await
}

fn granted(request: &Value) -> Vec<String> {
    offered(request).into_iter().filter(|name| !OWN.contains(&name.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_that_fit_the_input_are_offered_in_a_stable_order_with_a_search() {
    let scene = crowded("[[rule]]\nanswer = \"I see.\"\n").await;
    for conversation in ["c1", "c2"] {
        scene.answer(conversation, "look at my invoice please").await;
    }
    scene.answer("c3", "what is the weather like?").await;
    let requests = scene.requests();
    let names = granted(&requests[0]);
    assert!(!names.is_empty() && names.len() <= 8, "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("yard_invoice")), "{names:?}");
    assert!(names.is_sorted(), "{names:?}");
    assert!(offered(&requests[0]).contains(&"search_tools".to_owned()));
    // The same input gives the same block, byte for byte.
    assert_eq!(requests[0]["tools"].to_string(), requests[1]["tools"].to_string());
    let weather = granted(&requests[2]);
    assert!(weather.iter().any(|name| name.starts_with("yard_weather")), "{weather:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_search_finds_is_offered_and_what_was_used_stays() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "search_tools", args = { query = "parcel", top_k = 2 } }]
[[rule]]
when = { round = 2, offers = "yard_parcel_008" }
answer = [{ call = "yard_parcel_008", args = { name = "x" } }]
[[rule]]
when.round = 3
answer = [{ call = "search_tools", args = { top_k = 2 } }]
[[rule]]
answer = "Done."
"#;
    let scene = crowded(script).await;
    assert_eq!(scene.answer("c1", "look at my invoice").await, "Done.");
    let requests = scene.requests();
    assert_eq!(requests.len(), 4);
    let tools = |request: usize| requests[request]["tools"].as_array().unwrap();
    // Only the end grows, so that what a provider has cached stays good.
    for (before, after) in [(0, 1), (1, 2), (2, 3)] {
        assert!(tools(after).starts_with(tools(before)));
    }
    assert_eq!(tools(1).len(), tools(0).len() + 2);
    assert!(offered(&requests[3]).contains(&"yard_parcel_008".to_owned()));
    let asked = scene.asked();
    asked.iter().for_each(|messages| is_paired(messages));
    let found = results(&asked[1]).remove(0);
    assert_eq!(found["tools"].as_array().unwrap().len(), 2);
    assert!(found["tools"][0]["parameters"]["properties"]["name"].is_object(), "{found}");
    let used = results(&asked[2]).remove(0);
    assert_eq!(used, json!({"tool": "parcel_008", "given": {"name": "x"}}));
    let refused = results(&asked[3]).remove(0);
    assert_eq!(refused["error"]["details"]["field"], "query", "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_tool_that_was_not_offered_is_executed_all_the_same() {
    let script = r#"
[[rule]]
when.round = 1
answer = [
  { call = "yard.photo_002", args = { name = "exact" } },
  { call = "yard_photo_012", args = { name = "as the wire writes it" } },
]
[[rule]]
answer = "Done."
"#;
    let scene = crowded(script).await;
    assert_eq!(scene.answer("c1", "look at my invoice").await, "Done.");
    let requests = scene.requests();
    let before = offered(&requests[0]);
    assert!(!before.iter().any(|name| name.starts_with("yard_photo")), "{before:?}");
    let told = results(&scene.asked()[1]);
    assert_eq!(told[0], json!({"tool": "photo_002", "given": {"name": "exact"}}));
    assert_eq!(told[1]["tool"], "photo_012", "{told:?}");
    // Used once, offered from then on.
    let after = offered(&requests[1]);
    for name in ["yard_photo_002", "yard_photo_012"] {
        assert!(after.contains(&name.to_owned()), "{after:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_tools_as_fit_are_all_offered_and_nothing_is_searched() {
    let (more, grant) = (yard(0), "tools = [\"yard.*\"]");
    let setting = Setting { more: &more, grant, files: &[FOLDER], ..Setting::default() };
    let scene = setting.open().await;
    for conversation in ["c1", "c2"] {
        scene.answer(conversation, "hello").await;
    }
    let requests = scene.requests();
    let names = offered(&requests[0]);
    assert_eq!(granted(&requests[0]).len(), 10, "{names:?}");
    assert!(!names.contains(&"search_tools".to_owned()), "{names:?}");
    assert_eq!(requests[0]["tools"].to_string(), requests[1]["tools"].to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_block_of_tools_has_a_hash_that_changes_with_the_tools_alone() {
    let agent = |name: &str, tools: &str| {
        format!(
            "[agents.{name}]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n\
             grant = {{ tools = [{tools}] }}\n"
        )
    };
    let tables = yard(0) + &agent("all", "\"yard.*\"") + &agent("few", "\"yard.meet\"");
    let host = TestHost::prepare(crate::PROGRAM, &config("", &tables));
    std::fs::create_dir(host.folder().join("yard")).unwrap();
    let stage = Stage::with(host).await;
    let mut hashes = Vec::new();
    for (agent, conversation) in [("all", "c1"), ("all", "c2"), ("few", "c3")] {
        let steps = json!([["tell", "runtime"], ["end"]]).to_string();
        let run_id = stage.send(&event(agent, conversation, &steps)).await;
        stage.api.ended_run(&run_id).await;
        let runtime: Value =
            serde_json::from_str(&stage.api.answers(conversation).await[0]).unwrap();
        let tools = &runtime["static_refs"]["tools"];
        assert_eq!(tools["kind"], "tools", "{runtime}");
        hashes.push(tools["hash"].as_str().unwrap().to_owned());
    }
    assert!(hashes[0].starts_with("sha256:"), "{hashes:?}");
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_a_plugin_that_is_slow_to_tell_its_tools() {
    let more = yard(0).replace("env = {", "env = { LATE_S = \"1\",");
    let grant = "tools = [\"yard.*\"]";
    let scene = Setting { more: &more, grant, files: &[FOLDER], ..Setting::default() }.open().await;
    scene.answer("c1", "hello").await;
    assert!(offered(&scene.requests()[0]).contains(&"yard_meet".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_choice_of_tools_grows_at_its_end_from_turn_to_turn() {
    let script = r#"
[[rule]]
when = { text = "parcel", tool_result = false }
answer = [{ call = "search_tools", args = { query = "garden", top_k = 1 } }]
[[rule]]
answer = "I see."
"#;
    let scene = crowded(script).await;
    for text in ["look at my invoice", "send the parcel", "thanks", "and what is the weather like?"]
    {
        scene.answer("c1", text).await;
    }
    let requests = scene.requests();
    assert_eq!(requests.len(), 5);
    for pair in requests.windows(2) {
        let (first, second) = (offered(&pair[0]), offered(&pair[1]));
        assert_eq!(first, second[..first.len()]);
    }
    let last = offered(&requests[4]);
    for word in ["invoice", "parcel", "garden", "weather"] {
        assert!(last.iter().any(|name| name.contains(word)), "{word}: {last:?}");
    }
}
