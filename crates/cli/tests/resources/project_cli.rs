//! The project CLI end to end: a runner asks, the host checks, a child of its own carries it out (seed 004).

use crate::stage::{Stage, outcome};
use crate::{AGENT, call, data, play};
use greenroom_protocol::{RunStatus, TranscriptRole};
use serde_json::{Value, json};

/// A meeting of two hours in Shanghai, on the morning of the 21st.
fn meeting(title: &str) -> Value {
    json!({"title": title, "start_at": "2026-04-21T10:00:00+08:00",
        "end_at": "2026-04-21T12:00:00+08:00", "timezone": "Asia/Shanghai"})
}

fn day(date: &str, timezone: &str) -> Value {
    json!({"mode": "day", "date": date, "timezone": timezone})
}

fn titles(data: &Value) -> Vec<&str> {
    data["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_event_is_created_read_shared_and_accepted() {
    let stage = Stage::open(AGENT).await;
    play(&stage, "ann", "c1", vec![call("made", "calendar", "create", meeting("Sync"))]).await;
    let made = data(&stage, "made").await;
    let id = made["id"].as_str().unwrap().to_owned();
    let range = json!({"mode": "range", "start_at": "2026-04-21T00:00:00+08:00",
        "end_at": "2026-04-22T00:00:00+08:00"});
    let steps = vec![
        call("day", "calendar", "read", day("2026-04-21", "Asia/Shanghai")),
        // In New York it is still the 20th.
        call("there", "calendar", "read", day("2026-04-20", "America/New_York")),
        call("other_day", "calendar", "read", day("2026-04-22", "Asia/Shanghai")),
        call("range", "calendar", "read", range),
        call("one", "calendar", "read", json!({"mode": "event", "event_id": id})),
        call("shared", "calendar", "share", json!({"event_id": id, "with": ["bob"]})),
    ];
    play(&stage, "ann", "c1", steps).await;
    for (name, expected) in [
        ("day", vec!["Sync"]),
        ("there", vec!["Sync"]),
        ("other_day", vec![]),
        ("range", vec!["Sync"]),
    ] {
        assert_eq!(titles(&data(&stage, name).await), expected, "{name}");
    }
    assert_eq!(data(&stage, "one").await["id"], id.as_str());
    data(&stage, "shared").await;
    let steps = vec![
        call("accepted", "calendar", "accept_invite", json!({"event_id": id})),
        call("mine", "calendar", "read", day("2026-04-21", "Asia/Shanghai")),
    ];
    play(&stage, "bob", "c2", steps).await;
    data(&stage, "accepted").await;
    assert_eq!(titles(&data(&stage, "mine").await), ["Sync"]);
    // Somebody else sees nothing of it, and cannot tell that it exists.
    let steps = vec![
        call("theirs", "calendar", "read", json!({"mode": "event", "event_id": id})),
        call("invented", "calendar", "read", json!({"mode": "event", "event_id": "rec_none"})),
    ];
    play(&stage, "eve", "c3", steps).await;
    let theirs = stage.told("theirs").await["result"]["error"].to_string();
    let invented = stage.told("invented").await["result"]["error"].to_string();
    assert!(invented.contains("NOT_FOUND"), "{invented}");
    assert_eq!(theirs.replace(&id, "rec_none"), invented);
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_answered_with_the_contract() {
    let stage = Stage::open(AGENT).await;
    let steps = vec![
        call("wrong_mode", "calendar", "read", json!({"mode": "week"})),
        call("extra", "memory", "read", json!({"mode": "day"})),
        call(
            "no_zone",
            "calendar",
            "create",
            json!({"title": "x",
            "start_at": "2026-04-21T10:00:00", "end_at": "2026-04-21T12:00:00"}),
        ),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    for (name, method) in
        [("wrong_mode", "calendar.read"), ("extra", "memory.read"), ("no_zone", "calendar.create")]
    {
        let told = stage.told(name).await;
        let answer = &told["result"];
        assert_eq!(answer["metadata"]["status"], "failure", "{told}");
        assert_eq!(answer["error"]["code"], "INVALID_ACTION_INPUT", "{told}");
        let (module, method) = method.split_once('.').unwrap();
        assert_eq!(
            (&answer["error"]["module"], &answer["error"]["method"]),
            (&json!(module), &json!(method))
        );
        assert!(answer["error"]["input_schema"].is_object(), "{told}");
        let content: Value = serde_json::from_str(answer["content"].as_str().unwrap()).unwrap();
        assert_eq!(content, json!({"status": "failure", "error": answer["error"]}));
    }
    assert_eq!(
        stage.told("wrong_mode").await["result"]["error"]["input_schema"]["mode"],
        "string enum(day|range|event)"
    );
}

#[tokio::test]
async fn nobody_is_asked_about_an_input_that_could_only_fail() {
    let stage = Stage::open(AGENT).await;
    let steps = vec![
        call("nothing", "calendar", "delete", json!({})),
        call("extra", "calendar", "delete", json!({"event_id": "e", "sure": true})),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    for (name, field) in [("nothing", "event_id"), ("extra", "sure")] {
        let error = stage.told(name).await["result"]["error"].clone();
        assert_eq!(
            (&error["code"], &error["field"]),
            (&json!("INVALID_ACTION_INPUT"), &json!(field)),
            "{error}"
        );
        assert_eq!(error["input_schema"]["event_id"], "string, id of the event");
    }
    assert_eq!(stage.api.get("/v1/approvals").await["items"], json!([]));
}

#[tokio::test]
async fn a_method_outside_the_grant_is_refused_by_the_policy_and_leaves_a_trace() {
    let config = AGENT.replace("\"calendar.*\", ", "\"calendar.read\", ");
    let stage = Stage::open(&config).await;
    let steps = vec![
        call("create", "calendar", "create", meeting("Sync")),
        call("shell", "shell", "run", json!({"command": "id"})),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    for name in ["create", "shell"] {
        let told = stage.told(name).await;
        assert_eq!(told["result"]["error"]["code"], "METHOD_NOT_ALLOWED", "{told}");
        let allowed = &told["result"]["error"]["allowed_methods"];
        assert_eq!(
            *allowed,
            json!(["calendar.read", "contacts.read", "memory.read", "memory.update"])
        );
    }
    let audit = stage.api.get(&format!("/v1/audit?run_id={}&denied=true", run.run_id)).await;
    let calls = audit["items"].as_array().unwrap().iter();
    let told: Vec<[&str; 3]> = calls
        .map(|call| ["method", "scope", "code"].map(|key| call[key].as_str().unwrap()))
        .collect();
    let refused = |scope| ["tools.call", scope, "unauthorized"];
    assert_eq!(told, [refused("shell.run"), refused("calendar.create")]);
}

#[tokio::test]
async fn an_event_without_an_actor_has_nobody_to_act_for() {
    let stage = Stage::open(AGENT).await;
    let step = call("read", "memory", "read", json!({}));
    let mut event = crate::event("clerk", "c1", &json!([step, ["end"]]).to_string());
    event.as_object_mut().unwrap().remove("actor");
    let run_id = stage.send(&event).await;
    stage.api.ended_run(&run_id).await;
    assert_eq!(stage.told("read").await["result"]["error"]["code"], "NO_ACTOR");
}

#[tokio::test]
async fn history_shows_each_call_once_with_its_card_also_after_a_restart() {
    let mut stage = Stage::open(AGENT).await;
    play(&stage, "ann", "c1", vec![call("made", "calendar", "create", meeting("Sync"))]).await;
    let made = data(&stage, "made").await;
    let result = stage.told("made").await["result"]["result"].clone();
    // The runner tells of the call as well: that adds nothing to what the host has recorded.
    let completed =
        json!({"tool_call_id": "again", "tool_name": "project_cli", "result": "forged"});
    let steps = vec![
        call("again", "calendar", "read", json!({"mode": "event", "event_id": made["id"]})),
        json!(["result", "tool.call.completed", completed]),
    ];
    play(&stage, "ann", "c1", steps).await;
    for _ in 0..2 {
        let items = stage.api.history("c1").await;
        let tools: Vec<_> = items.iter().filter(|item| item.role == TranscriptRole::Tool).collect();
        assert_eq!(tools.len(), 2);
        let content: Value = serde_json::from_str(tools[0].content.as_deref().unwrap()).unwrap();
        assert_eq!(content, result);
        let output = &tools[0].metadata["tool_agent_output"];
        assert_eq!(output["tool_name"], "project_cli");
        assert_eq!(
            (&output["tool_call_id"], &output["status"]),
            (&json!("made"), &json!("success"))
        );
        assert_eq!(output["tool_call_args"]["input"], meeting("Sync"));
        assert_eq!(output["result"], result);
        assert_eq!(output.get("ui_hints"), None);
        for tool in &tools {
            let schema = &tool.metadata["ui_schema"];
            assert_eq!((&schema["format"], &schema["version"]), (&json!("a2ui"), &json!("v0.9")));
            assert!(!schema["operations"].as_array().unwrap().is_empty());
        }
        stage.host.kill();
        stage.host.start_again().await;
        stage.api = stage.host.api();
    }
}

#[tokio::test]
async fn the_same_call_again_is_answered_as_before_and_acts_once() {
    let stage = Stage::open(AGENT).await;
    let create = call("made", "calendar", "create", meeting("Sync"));
    let mut again = create.clone();
    again[3] = "again".into();
    let mut other = call("made", "calendar", "create", meeting("Other"));
    other[3] = "other".into();
    let read = call("day", "calendar", "read", day("2026-04-21", "Asia/Shanghai"));
    play(&stage, "ann", "c1", vec![create, again, other, read]).await;
    assert_eq!(stage.told("made").await, stage.told("again").await);
    let refused = stage.told("other").await;
    assert_eq!(refused["error"]["data"]["code"], "invalid_argument");
    assert_eq!(refused["error"]["data"]["details"]["reason"], "repeated_id");
    assert_eq!(titles(&data(&stage, "day").await), ["Sync"]);
}

#[tokio::test]
async fn memory_and_contacts_are_the_actors_own() {
    let stage = Stage::open(AGENT).await;
    let contact = json!({"op": "put", "module": "contacts", "id": "con_1",
        "body": {"name": "Bob 李", "email": "bob@example.com"}});
    let request =
        greenroom_testkit::http::Request::post("/v1/tool-runtime/records", contact.to_string())
            .header("x-greenroom-actor", "ann");
    assert_eq!(stage.api.json(request).await.unwrap().0, 200);
    let steps = vec![
        call("kept", "memory", "update", json!({"set": {"city": "台北"}})),
        call("known", "memory", "read", json!({"keys": ["city"]})),
        call("people", "contacts", "read", json!({"query": "bob"})),
    ];
    play(&stage, "ann", "c1", steps).await;
    data(&stage, "kept").await;
    assert!(data(&stage, "known").await.to_string().contains("台北"));
    assert!(data(&stage, "people").await.to_string().contains("bob@example.com"));
    let steps = vec![
        call("other", "memory", "read", json!({})),
        call("nobody", "contacts", "read", json!({})),
    ];
    play(&stage, "eve", "c1", steps).await;
    assert_eq!(data(&stage, "other").await["count"], 0);
    assert_eq!(data(&stage, "nobody").await["count"], 0);
}
