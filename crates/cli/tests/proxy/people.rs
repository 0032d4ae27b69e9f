//! A person is a workspace and an id: without an id there is nobody, and no state for nobody (issue 23, point 1).

use crate::stage::{ALL, Stage, agent, event, on_both_databases};
use greenroom_protocol::ErrorCode;
use serde_json::{Value, json};

on_both_databases!(nobody_has_no_state);

async fn nobody_has_no_state(postgres: Option<&str>) {
    let agents = agent("all", "plugin:test/first/main", "", ALL);
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let nameless = |conversation: &str| {
        let mut event = event("all", conversation);
        event["actor"] = json!({"actor_type": "user"});
        event["subject"] = json!({"subject_type": "ticket"});
        event
    };
    let run = stage.start(&wire, &nameless("c1")).await;
    for scope in ["actor", "subject"] {
        for (method, more) in [
            ("state.set", json!({"key": "k", "value": "secret"})),
            ("state.get", json!({"key": "k"})),
            ("state.delete", json!({"key": "k"})),
            ("state.list", json!({})),
        ] {
            let mut params = more;
            params["scope"] = scope.into();
            let refused = wire.call_for(&run.id, method, params).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidArgument, "{method} {scope}: {refused:?}");
        }
        let data = json!({"scope": scope, "key": "k", "value": "secret"});
        wire.result(&run, "state.updated", data).await;
    }
    stage.end(&wire, &run).await;
    let diagnostics = stage.api.run(&run.id).await.extra["diagnostics"].clone();
    let kinds: Vec<&Value> = diagnostics.as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["refused_result"; 2], "{diagnostics}");
    let other = stage.start(&wire, &nameless("c2")).await;
    assert_eq!(other.context["state"]["actor"], json!({}));
    assert_eq!(other.context["state"]["subject"], json!({}));
    stage.end(&wire, &other).await;
    // Somebody has state, and keeps it in another conversation.
    let known = stage.start(&wire, &event("all", "c3")).await;
    let params = json!({"scope": "actor", "key": "k", "value": "mine"});
    wire.call_for(&known.id, "state.set", params).await.unwrap();
    stage.end(&wire, &known).await;
    let again = stage.start(&wire, &event("all", "c4")).await;
    assert_eq!(again.context["state"]["actor"], json!({"k": "mine"}));
    stage.end(&wire, &again).await;
}
