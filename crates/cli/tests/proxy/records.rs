//! Audit records say which runner called and how far the method reaches, for every method (seed 000 §11; issue 23,
//! point 4).

use crate::stage::{ALL, Stage, agent, event};
use greenroom_protocol::api::Method;
use greenroom_testkit::wait::wait_for;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_record_has_its_runner_and_scope() {
    let agents = agent("all", "plugin:test/first/main", "", ALL)
        + &agent("none", "plugin:test/first/bare", "", ALL);
    let stage = Stage::open(&["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    for (name, runner_id) in [("all", "plugin:test/first/main"), ("none", "plugin:test/first/bare")]
    {
        let run = stage.start(&wire, &event(name, "c")).await;
        let file = json!({"content_base64": "d2hhbGVz"});
        let created = wire.call_for(&run.id, "artifacts.create", file).await.ok();
        let id = created.map(|it| it["artifact_id"].clone()).unwrap_or_else(|| json!("art_no"));
        for method in Method::ALL {
            let params = json!({"artifact_id": id, "event_id": "e", "scope": "conversation",
                "area": "plugin", "key": "k", "value": "dg==", "query": "q"});
            let _ = wire.call_for(&run.id, method.as_str(), params).await;
        }
        stage.end(&wire, &run).await;
        let calls = Method::ALL.len() + 1;
        let records = wait_for("the records", Duration::from_secs(30), async || {
            let records = stage.audit("default").await;
            let own = records.into_iter().filter(|record| record["run_id"] == run.id.as_str());
            let own: Vec<_> = own.collect();
            (own.len() == calls).then_some(own)
        })
        .await;
        let mut scopes = BTreeMap::new();
        for record in &records {
            assert_eq!(record["runner_id"], runner_id, "{record}");
            let scope = record["scope"].as_str();
            let method = record["method"].as_str().unwrap().to_owned();
            scopes.insert(method, scope.unwrap_or_else(|| panic!("{record}")).to_owned());
        }
        // Handlers say more than the table of methods, never less.
        if name == "all" {
            assert_eq!(scopes["artifacts.create"], "conversation");
            assert_eq!(scopes["artifacts.metadata"], "conversation");
            assert_eq!(scopes["history.page"], "conversation");
            assert_eq!(scopes["state.set"], "conversation");
            assert_eq!(scopes["storage.set"], "plugin");
        }
    }
}
