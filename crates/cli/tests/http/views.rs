//! What an interface for people asks for: stories of runs, filters, replays, the overview, and lists over a whole
//! workspace; on both databases.

use crate::stage::{LIMITED, READER, SENDER, Stage, message};
use greenroom_testkit::http::Request;
use greenroom_testkit::postgres::Database;
use serde_json::{Value, json};

pub(crate) const AGENTS: &str = r#"
[agents.desk]
runner = "plugin:greenroom/echo/default"
events = ["message.*"]
config = { modes = true, key = "secret-of-the-desk" }

[agents.vip]
runner = "plugin:greenroom/echo/default"
events = ["message.*"]
scope = { actor = "vip" }
filters = { "input.text" = ["hello", "bye"] }
queue = "parallel"
deadline_s = 42
"#;

macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&crate::stage::Stage::with(super::AGENTS).await).await;
            })*
        }
        mod postgresql {
            $(#[tokio::test]
            async fn $case() {
                let database = tokio::task::spawn_blocking(super::Database::fresh).await.unwrap();
                let store = format!("[store]\nurl = \"{}\"\n{}", database.url, super::AGENTS);
                super::$case(&crate::stage::Stage::with(&store).await).await;
            })*
        }
    };
}

on_both!(
    a_story_tells_why_an_agent_had_an_event_and_what_it_was_allowed,
    a_replay_is_a_run_of_its_own_that_is_found_from_the_first,
    runs_are_found_by_what_they_were,
    an_overview_counts_what_ended_and_what_waits,
    state_of_all_owners_is_listed_by_whose_it_is,
    artifacts_are_listed_newest_first,
    a_search_goes_through_all_conversations,
);

/// Sends an event and waits for its run.
pub(crate) async fn ended(stage: &Stage, event: &Value) -> String {
    let reply = stage.post(event.to_string()).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let run_id = reply.body["run_id"].as_str().unwrap().to_owned();
    stage.api().ended_run(&run_id).await;
    run_id
}

pub(crate) fn unnamed(conversation: &str, actor: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "conversation_id": conversation,
        "actor": {"actor_type": "user", "actor_id": actor}, "input": {"text": text}})
}

async fn story(stage: &Stage, token: &str, run_id: &str) -> crate::stage::Reply {
    stage.ask_as(Some(token), Request::get(format!("/v1/runs/{run_id}/story"))).await
}

async fn a_story_tells_why_an_agent_had_an_event_and_what_it_was_allowed(stage: &Stage) {
    let run_id = ended(stage, &unnamed("c1", "vip", "hello")).await;
    let told = story(stage, READER, &run_id).await.body;
    let waited = told["binding"]["waited_ms"].as_i64().unwrap();
    let binding = json!({"agent": "vip", "reason": "narrower_scope",
        "beside": ["desk", "assistant"], "queue": "parallel", "deadline_s": 42,
        "on_interrupt": "fail", "delivery": null, "steers": false, "waited_ms": waited});
    assert_eq!(told["binding"], binding);
    assert_eq!(told["event"]["event"]["input"]["text"], "hello");
    assert_eq!(told["run"]["status"], "completed");
    assert_eq!(told["run"]["model_calls"]["calls"], 0);
    let grant = &told["grant"];
    assert_eq!(grant["hash"].as_str().unwrap().len(), 64, "{grant}");
    assert_eq!((&grant["agent"], &grant["config"]), (&json!("vip"), &json!({})));
    assert_eq!(grant["state"], json!(["conversation", "actor", "runner"]));
    assert_eq!(grant["risks"]["destructive"], "ask");
    let runner = &told["runner"];
    assert_eq!((&runner["plugin"], &runner["status"]), (&json!("greenroom/echo"), &json!("ready")));
    assert_eq!(runner["isolation"], told["run"]["isolation"]);
    for list in ["model_calls", "deliveries", "approvals", "diagnostics", "replays"] {
        assert_eq!((&told[list], &told["truncated"][list]), (&json!([]), &json!(false)), "{list}");
    }
    assert_eq!((&told["replay_of"], &told["truncated"]["event"]), (&Value::Null, &json!(false)));

    let named = ended(stage, &message("c2", "by name")).await;
    let told = story(stage, SENDER, &named).await.body;
    assert_eq!(
        (&told["binding"]["reason"], &told["binding"]["beside"]),
        (&json!("named"), &json!([]))
    );
    // Whoever only sends does not read how the agent is configured.
    assert_eq!(told["grant"]["config"], Value::Null);
    let operator = story(stage, &stage.admin, &named).await.body;
    assert_eq!(operator["grant"]["config"], json!({"modes": true}));
    story(stage, LIMITED, &named).await.refused(404, "not_found");
    story(stage, READER, "run_nothing").await.refused(404, "not_found");
}

async fn a_replay_is_a_run_of_its_own_that_is_found_from_the_first(stage: &Stage) {
    let first = ended(stage, &unnamed("c1", "u1", "say it")).await;
    let replay = |token: String, run_id: String, body: &str| {
        let body = body.to_owned();
        async move {
            let target = format!("/v1/runs/{run_id}/replay");
            stage.ask_as(Some(&token), Request::post(target, body)).await
        }
    };
    let reply = replay(stage.admin.clone(), first.clone(), "").await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let second = reply.body["run_id"].as_str().unwrap().to_owned();
    assert_eq!(stage.api().ended_run(&second).await.agent, "desk");
    let reply = replay(SENDER.to_owned(), first.clone(), r#"{"agent":"game"}"#).await;
    let third = reply.body["run_id"].as_str().unwrap().to_owned();
    assert_eq!(stage.api().ended_run(&third).await.agent, "game");

    let original = story(stage, READER, &first).await.body;
    let replays = original["replays"].as_array().unwrap();
    let found: Vec<&Value> = replays.iter().map(|replay| &replay["run_id"]).collect();
    assert_eq!(found, [&json!(second), &json!(third)]);
    let told = story(stage, READER, &second).await.body;
    let origin = json!({"event_id": original["run"]["event_id"], "run_id": first});
    assert_eq!(told["replay_of"], origin);
    let event = &told["event"]["event"];
    assert_eq!((&event["input"]["text"], &event["agent"]), (&json!("say it"), &json!("desk")));
    assert_eq!(event["metadata"]["replay_of"], origin["event_id"]);

    replay(READER.to_owned(), first.clone(), "").await.refused(403, "unauthorized");
    replay(LIMITED.to_owned(), first.clone(), "").await.refused(404, "not_found");
    let admin = || stage.admin.clone();
    replay(admin(), "run_nothing".into(), "").await.refused(404, "not_found");
    replay(admin(), first.clone(), r#"{"agent":"nobody"}"#).await.refused(404, "not_found");
    for body in ["[]", "{\"x\":1}", "{", "{\"agent\":7}"] {
        replay(admin(), first.clone(), body).await.refused(400, "invalid_argument");
    }
}

async fn runs_are_found_by_what_they_were(stage: &Stage) {
    let good = ended(stage, &message("c1", "good")).await;
    let bad = ended(stage, &message("c1", "/fail code=desk.closed")).await;
    let mut other = message("c2", "other");
    other["event_type"] = "message.edited".into();
    let other = ended(stage, &other).await;
    let made = |run: &Value| run["created_at"].as_str().unwrap().to_owned();
    let second = made(&stage.get(&format!("/v1/runs/{bad}")).await.body);
    let later = made(&stage.get(&format!("/v1/runs/{other}")).await.body);
    let found = async |query: &str| -> Vec<String> {
        let reply = stage.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        assert_eq!(reply.body["has_more"], false, "{query}");
        let items = reply.body["items"].as_array().unwrap();
        items.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = vec![other.clone(), bad.clone(), good.clone()];
    assert_eq!(found("runner_id=plugin:greenroom/echo/default").await, all);
    assert!(found("runner_id=plugin:greenroom/echo/other").await.is_empty());
    assert_eq!(found("event_type=message.edited").await, std::slice::from_ref(&other));
    assert_eq!(found("error_code=desk.closed").await, std::slice::from_ref(&bad));
    assert!(found("error_code=desk").await.is_empty(), "a code is a whole word");
    assert_eq!(
        found("status=failed&agent=game&conversation_id=c1").await,
        std::slice::from_ref(&bad)
    );
    assert!(found("status=running").await.is_empty());
    assert!(found(&format!("since={later}")).await.contains(&other));
    assert!(!found(&format!("until={second}")).await.contains(&bad));
    assert_eq!(
        found(&format!("until={second}&since=2000-01-01T00:00:00Z")).await,
        found(&format!("until={second}")).await
    );
    assert!(found("since=2100-01-01T00:00:00Z").await.is_empty());
    assert_eq!(found("since=1900-01-01T00:00:00Z").await, all);
    assert!(found("until=1900-01-01T00:00:00Z").await.is_empty());
    for query in ["since=yesterday", "until=2026-01-01", "since=2026-13-01T00:00:00Z", "color=red"]
    {
        stage.get(&format!("/v1/runs?{query}")).await.refused(400, "invalid_argument");
    }
    let page = stage.get("/v1/runs?limit=1&runner_id=plugin:greenroom/echo/default").await.body;
    let cursor = page["next_cursor"].as_str().unwrap();
    let foreign = format!("/v1/runs?limit=1&cursor={cursor}");
    stage.get(&foreign).await.refused(400, "invalid_argument");
    // What comes meanwhile shifts nothing.
    ended(stage, &message("c3", "newer")).await;
    let next = format!("runner_id=plugin:greenroom/echo/default&cursor={cursor}");
    assert_eq!(found(&next).await, [bad, good]);
}

async fn an_overview_counts_what_ended_and_what_waits(stage: &Stage) {
    let empty = stage.get("/v1/overview").await.body;
    assert_eq!(empty["totals"]["runs"], 0);
    assert_eq!(empty["totals"]["p50_ms"], Value::Null);
    for text in ["one", "two", "/fail code=x"] {
        ended(stage, &message("c1", text)).await;
    }
    let hanging = stage.play("c2", "/hang").await;
    let queued = stage.play("c2", "after").await;
    for (minutes, step_s, steps) in [(60, 60, 60), (1440, 1200, 72), (10080, 7200, 84)] {
        let told = stage.get(&format!("/v1/overview?minutes={minutes}")).await.body;
        assert_eq!((&told["minutes"], &told["step_s"]), (&json!(minutes), &json!(step_s)));
        let totals = &told["totals"];
        let counts = ["runs", "completed", "failed", "cancelled"].map(|name| totals[name].clone());
        assert_eq!(counts, [3, 2, 1, 0].map(Value::from), "{totals}");
        assert!(totals["p95_ms"].as_i64() >= totals["p50_ms"].as_i64(), "{totals}");
        let series = told["series"].as_array().unwrap();
        let runs: i64 = series.iter().map(|step| step["runs"].as_i64().unwrap()).sum();
        assert_eq!((series.len(), runs), (steps, 3));
        assert!(series.windows(2).all(|pair| pair[0]["at"].as_str() < pair[1]["at"].as_str()));
        let queue = json!({"queued": 1, "running": 1, "waiting_approvals": 0,
            "deliveries_waiting": 0, "deliveries_failed": 0, "deliveries_unknown": 0});
        assert_eq!(told["queue"], queue);
        assert_eq!(told["store"]["ok"], true);
        assert!(told["store"]["size_bytes"].as_i64() > Some(10_000), "{}", told["store"]);
        assert!(told["host"]["memory_bytes"].as_i64() > Some(1_000_000), "{}", told["host"]);
    }
    for run_id in [queued, hanging] {
        let cancelled = stage.ask(Request::post(format!("/v1/runs/{run_id}/cancel"), "")).await;
        assert_eq!(cancelled.body["status"], "cancelled");
    }
    let told = stage.get("/v1/overview").await.body;
    assert_eq!((&told["totals"]["runs"], &told["totals"]["cancelled"]), (&json!(5), &json!(2)));
    assert_eq!((&told["queue"]["queued"], &told["queue"]["running"]), (&json!(0), &json!(0)));
    for query in ["minutes=61", "minutes=x", "hours=1"] {
        stage.get(&format!("/v1/overview?{query}")).await.refused(400, "invalid_argument");
    }
    let sender = stage.ask_as(Some(SENDER), Request::get("/v1/overview")).await;
    sender.refused(403, "unauthorized");
}

async fn state_of_all_owners_is_listed_by_whose_it_is(stage: &Stage) {
    for (conversation, text) in [
        ("c1", "/state key=note first"),
        ("c2", "/state key=note second"),
        ("c2", "/state scope=actor key=name Ada"),
        ("c2", "/state scope=runner key=shared all"),
    ] {
        ended(stage, &message(conversation, text)).await;
    }
    let list = async |query: &str| -> Vec<Value> {
        let reply = stage.get(&format!("/v1/state?{query}")).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        reply.body["items"].as_array().unwrap().clone()
    };
    let keys = async |query: &str| -> Vec<String> {
        let items = list(query).await;
        items.iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys("").await.len(), 4);
    assert_eq!(keys("scope=actor").await, ["name"]);
    assert_eq!(keys("actor_id=u1").await, ["name"]);
    assert_eq!(keys("scope=runner").await, ["shared"]);
    assert_eq!(keys("agent=game&prefix=no").await, ["note", "note"]);
    assert!(keys("agent=desk").await.is_empty());
    let mut item = list("conversation_id=c2").await.remove(0);
    assert!(item["updated_at"].as_str().unwrap().ends_with('Z'));
    item.as_object_mut().unwrap().remove("updated_at");
    let expected = json!({"scope": "conversation", "agent": "game",
        "runner_id": "plugin:greenroom/echo/default", "conversation_id": "c2", "actor": null,
        "subject": null, "key": "note", "value": "second", "value_truncated": false,
        "preview": null, "size_bytes": 8, "version": 1, "expires_at": null});
    assert_eq!(item, expected);
    assert_eq!(list("scope=actor").await[0]["actor"], json!({"type": "user", "id": "u1"}));
    let page = stage.get("/v1/state?limit=3").await.body;
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(keys(&format!("limit=3&cursor={cursor}")).await.len(), 1);
    stage
        .get(&format!("/v1/state?scope=actor&cursor={cursor}"))
        .await
        .refused(400, "invalid_argument");
    stage.get("/v1/state?scope=world").await.refused(400, "invalid_argument");
}

async fn artifacts_are_listed_newest_first(stage: &Stage) {
    for (query, kind, bytes) in [
        ("name=a.txt&conversation_id=c1", "text/plain", "one"),
        ("name=b.json&conversation_id=c2", "application/json", "{}"),
        ("name=c.txt&conversation_id=c2", "text/plain", "three"),
    ] {
        let mut request = Request::post(format!("/v1/artifacts?{query}"), bytes);
        request.headers.clear();
        let reply = stage.ask(request.header("content-type", kind)).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }
    let names = async |query: &str| -> Vec<String> {
        let reply = stage.get(&format!("/v1/artifacts?{query}")).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        let items = reply.body["items"].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let (mut all, mut sorted) = (names("").await, vec!["a.txt", "b.json", "c.txt"]);
    let page = stage.get("/v1/artifacts?limit=2").await.body;
    let times: Vec<&str> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["created_at"].as_str().unwrap())
        .collect();
    assert!(times[0] >= times[1], "{times:?}");
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(names(&format!("limit=2&cursor={cursor}")).await, all[2..]);
    all.sort();
    sorted.sort_unstable();
    assert_eq!(all, sorted);
    assert_eq!(names("conversation_id=c1").await, ["a.txt"]);
    assert_eq!(names("mime=application/json").await, ["b.json"]);
    assert_eq!(names("mime=text/*").await.len(), 2);
    assert_eq!(names("mime=text/*&conversation_id=c2").await, ["c.txt"]);
    assert!(names("mime=text").await.is_empty());
    assert!(names("run_id=run_nothing").await.is_empty());
    let sender = stage.ask_as(Some(SENDER), Request::get("/v1/artifacts")).await;
    sender.refused(403, "unauthorized");
}

async fn a_search_goes_through_all_conversations(stage: &Stage) {
    for (conversation, text) in [("c1", "the blue whale"), ("c2", "a blue door"), ("c3", "red")] {
        ended(stage, &message(conversation, text)).await;
    }
    let found = async |query: &str| -> Vec<String> {
        let reply = stage.get(&format!("/v1/search?{query}")).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        let mut found: Vec<String> = reply.body["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| {
                assert!(hit["snippet"].as_str().unwrap().contains("blue"), "{hit}");
                assert_eq!(hit["highlights"].as_array().unwrap().len(), 1, "{hit}");
                format!(
                    "{} {}",
                    hit["conversation_id"].as_str().unwrap(),
                    hit["role"].as_str().unwrap()
                )
            })
            .collect();
        found.sort();
        found
    };
    assert_eq!(found("q=blue").await, ["c1 assistant", "c1 user", "c2 assistant", "c2 user"]);
    assert_eq!(found("q=blue&role=user").await, ["c1 user", "c2 user"]);
    assert_eq!(found("q=blue&conversation_id=c2&role=user").await, ["c2 user"]);
    assert_eq!(found("q=blue&event_type=message.received").await, ["c1 user", "c2 user"]);
    assert!(found("q=blue&until=2000-01-01T00:00:00Z").await.is_empty());
    assert_eq!(found("q=blue&since=2000-01-01T00:00:00Z&actor_id=u1").await.len(), 2);
    for query in ["q=", "", "q=x&role=nobody", "q=x&since=x"] {
        stage.get(&format!("/v1/search?{query}")).await.refused(400, "invalid_argument");
    }
}
