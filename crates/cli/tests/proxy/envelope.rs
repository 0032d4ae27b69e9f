//! What a run is told about its event (seed 000 §§5.3–5.8; issue 23, points 8, 9 and 14).

use crate::stage::{ALL, Stage, agent, event, on_both_databases};
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

on_both_databases!(
    times_languages_and_places_are_filled_in,
    a_cut_snapshot_names_what_it_left_out,
    what_needs_a_conversation_is_not_offered_without_one,
    a_delivery_names_whom_it_answers,
);

fn now_s() -> i64 {
    i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap()
}

async fn times_languages_and_places_are_filled_in(postgres: Option<&str>) {
    let agents = agent("all", "plugin:test/first/main", "", ALL);
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let before = now_s();
    let run = stage.start(&wire, &event("all", "c1")).await;
    let time = run.context["event"]["event_time"].as_i64().unwrap();
    assert!((before..=now_s()).contains(&time), "{time}");
    assert_eq!(run.context["trigger"]["timestamp"], time);
    assert_eq!(run.context["trigger"]["source"], "api");
    assert_eq!(run.context["runtime"]["locale"], Value::Null);
    let conversation = &run.context["conversation"];
    assert_eq!(
        (&conversation["launcher_type"], &conversation["launcher_id"]),
        (&json!("person"), &json!("u1"))
    );
    stage.end(&wire, &run).await;
    // An event without a conversation that says more about itself.
    let given = json!({"event_type": "member.joined", "agent": "all", "event_time": 1_700_000_000,
        "source_event_type": "chat_member_updated", "locale": "zh-CN", "bot_id": "b1",
        "workspace_id": "w1", "actor": {"actor_type": "user", "actor_id": "u1"},
        "subject": {"subject_type": "group", "subject_id": "g1"},
        "data": {"trigger": {"source": "platform"}}});
    stage.api.send_event(&given).await;
    let run = wire.next_run().await;
    assert_eq!(run.context["event"]["event_time"], 1_700_000_000);
    assert_eq!(run.context["trigger"]["timestamp"], 1_700_000_000);
    assert_eq!(run.context["event"]["source_event_type"], "chat_member_updated");
    assert_eq!(run.context["runtime"]["locale"], "zh-CN");
    let conversation = &run.context["conversation"];
    assert_eq!(
        (&conversation["bot_id"], &conversation["workspace_id"]),
        (&json!("b1"), &json!("w1"))
    );
    assert_eq!(conversation["conversation_id"], Value::Null);
    assert_eq!(
        (&conversation["launcher_type"], &conversation["launcher_id"]),
        (&json!("group"), &json!("g1"))
    );
    stage.end(&wire, &run).await;
    // The actor's language, and that of the request.
    let mut spoken = event("all", "c2");
    spoken["actor"]["metadata"] = json!({"locale": "de"});
    let run = stage.start(&wire, &spoken).await;
    assert_eq!(run.context["runtime"]["locale"], "de");
    stage.end(&wire, &run).await;
    let mut request = Request::post("/v1/events", event("all", "c3").to_string());
    request.headers = vec![
        ("content-type", "application/json".to_owned()),
        ("accept-language", "pt-BR,pt;q=0.9,en;q=0.8".to_owned()),
    ];
    assert_eq!(stage.api.json(request).await.unwrap().0, 202);
    let run = wire.next_run().await;
    assert_eq!(run.context["runtime"]["locale"], "pt-BR");
    stage.end(&wire, &run).await;
}

async fn a_cut_snapshot_names_what_it_left_out(postgres: Option<&str>) {
    let agents = agent("all", "plugin:test/first/main", "", ALL);
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let run = stage.start(&wire, &event("all", "c")).await;
    assert_eq!(run.context["state"].get("left_out"), None);
    for key in ["a", "b", "c"] {
        let value = "x".repeat(200_000);
        let params = json!({"scope": "conversation", "key": key, "value": value});
        wire.call_for(&run.id, "state.set", params).await.unwrap();
    }
    stage.end(&wire, &run).await;
    let run = stage.start(&wire, &event("all", "c")).await;
    let state = &run.context["state"];
    let keys: Vec<&String> = state["conversation"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["a"]);
    assert_eq!(state["left_out"], json!({"conversation": {"keys": ["b", "c"], "has_more": false}}));
    let params = json!({"scope": "conversation", "key": "c"});
    let value = wire.call_for(&run.id, "state.get", params).await.unwrap();
    assert_eq!(value["value"].as_str().unwrap().len(), 200_000);
    stage.end(&wire, &run).await;
}

async fn what_needs_a_conversation_is_not_offered_without_one(postgres: Option<&str>) {
    let agents = agent("all", "plugin:test/first/main", "", ALL)
        + &agent("lone", "plugin:test/first/main", "", "state = [\"conversation\", \"actor\"]");
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let mut lone = json!({"event_type": "schedule.triggered", "agent": "all"});
    let apis = async |event: &Value| {
        stage.api.send_event(event).await;
        let run = wire.next_run().await;
        stage.end(&wire, &run).await;
        let apis = run.context["context"]["available_apis"].clone();
        ["history_page", "history_search", "event_page", "event_get", "state", "storage"]
            .map(|api| apis[api].as_bool().unwrap())
    };
    assert_eq!(apis(&lone).await, [false, false, false, true, true, true]);
    lone["agent"] = "lone".into();
    assert_eq!(apis(&lone).await, [false, false, false, true, false, true]);
    assert_eq!(apis(&event("all", "c")).await, [true; 6]);
}

async fn a_delivery_names_whom_it_answers(postgres: Option<&str>) {
    let grant = ALL.replace("\"message.react\" = \"ask\"", "\"message.edit\" = \"ask\"");
    let agents = agent("all", "plugin:test/first/main", "", &grant);
    let stage = Stage::open_on(postgres, &["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let mut asked = event("all", "c");
    asked["thread_id"] = "t1".into();
    asked["bot_id"] = "b1".into();
    asked["metadata"] = json!({"message_id": "m-77"});
    let run = stage.start(&wire, &asked).await;
    let target = json!({"message_id": "m-77", "thread_id": "t1", "conversation_id": "c",
        "actor_id": "u1", "bot_id": "b1"});
    let delivery = &run.context["delivery"];
    assert_eq!(delivery["surface"], "hook");
    assert_eq!(delivery["reply_target"], target);
    assert_eq!(
        delivery["platform_capabilities"],
        json!({"streaming": false, "files": true, "actions": ["message.react", "message.send"],
            "text_max": {"size": 2000, "unit": "characters"}})
    );
    // `message.edit` is granted, but this surface refuses it.
    let offered = run.context["resources"]["platform_capabilities"].as_object().unwrap();
    assert_eq!(offered.keys().collect::<Vec<_>>(), ["message.send"]);
    let message = json!({"message": {"role": "assistant", "content": "here"}});
    wire.result(&run, "message.completed", message).await;
    let send = json!({"action": "message.send", "payload": {"text": "and here"}});
    wire.call_for(&run.id, "platform.request_action", send).await.unwrap();
    stage.end(&wire, &run).await;
    let received = wait_for("both deliveries", Duration::from_secs(30), async || {
        let received = stage.receiver.received();
        (received.len() == 2).then_some(received)
    })
    .await;
    for one in received {
        assert_eq!(
            (&one.payload["thread_id"], &one.payload["bot_id"]),
            (&json!("t1"), &json!("b1"))
        );
        assert_eq!(one.payload["reply_target"], target);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_that_a_runner_gives_is_kept() {
    let agents = agent("all", "plugin:test/first/main", "", ALL);
    let stage = Stage::open(&["first"], "", &agents).await;
    let wire = stage.connect("first").await;
    let run = stage.start(&wire, &event("all", "c")).await;
    let line = |kind: &str, data: Value, timestamp: Value| {
        let params = json!({"run_id": run.id, "type": kind, "data": data, "timestamp": timestamp});
        format!("{}\n", json!({"jsonrpc": "2.0", "method": "run.result", "params": params}))
    };
    let chunk = |text: &str| json!({"chunk": {"role": "assistant", "content": text}});
    for (text, timestamp) in [("a", json!(1_700_000_000)), ("b", json!(1_700_000_001))] {
        wire.write(line("message.delta", chunk(text), timestamp).as_bytes()).await;
    }
    let message = json!({"message": {"role": "assistant", "content": "ab"}});
    wire.write(line("message.completed", message, json!(1_700_000_002)).as_bytes()).await;
    wire.write(line("x.log", json!({}), Value::Null).as_bytes()).await;
    let before = now_s() - 60;
    stage.end(&wire, &run).await;
    let results = stage.api.results(&run.id).await;
    let times: Vec<i64> = results.iter().map(|result| result.timestamp.unwrap()).collect();
    assert_eq!(times[..3], [1_700_000_000, 1_700_000_001, 1_700_000_002]);
    assert!(times[3..].iter().all(|time| *time > before), "{times:?}");
    assert!(results.iter().all(|result| result.created_at.is_some()));
}
