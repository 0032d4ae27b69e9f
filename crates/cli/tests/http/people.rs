//! Whose data it is: a person is an actor of one source, and a token names its own people only (seed 004 §11, §12;
//! decision 028). On both databases.

use crate::stage::{ANN, BRIDGE, LIMITED, READER, Reply, SENDER, Stage};
use greenroom_testkit::http::Request;
use greenroom_testkit::postgres::Database;
use serde_json::{Value, json};
use std::time::Duration;

/// The built-in agent executes commands without a model.
const TOKENS: &str = r#"
[tokens.ann]
role = "sender"
actors = "ann"
token = { file = "ann" }

[tokens.bridge]
role = "sender"
actors = "any"
token = { file = "bridge" }
"#;

macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::stage::Stage::with(super::TOKENS).await).await;
            })*
        }
        mod postgresql {
            $(#[tokio::test]
            async fn $case() {
                let database = tokio::task::spawn_blocking(super::Database::fresh).await.unwrap();
                let store = format!("[store]\nurl = \"{}\"\n{}", database.url, super::TOKENS);
                super::$case(crate::stage::Stage::with(&store).await).await;
            })*
        }
    };
}

on_both!(
    two_people_keep_the_same_key,
    equal_ids_of_two_sources_are_two_people,
    an_event_is_shared_within_a_source_only,
    a_token_names_people_of_its_own,
    a_replay_acts_for_the_same_person,
    a_token_of_one_actor_is_that_person_and_expires,
);

/// Sends a command and gives what its tool returned: the data, or the error.
async fn command(stage: &Stage, token: &str, event: &Value) -> Value {
    let reply = stage.ask_as(Some(token), Request::post("/v1/events", event.to_string())).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    result(stage, reply.body["run_id"].as_str().unwrap()).await
}

async fn result(stage: &Stage, run_id: &str) -> Value {
    stage.api().ended_run(run_id).await;
    let results = stage.api().results(run_id).await;
    let results = results.iter().map(|result| serde_json::to_value(result).unwrap());
    let done: Vec<Value> = results.filter(|one| one["type"] == "tool.call.completed").collect();
    let [done] = done.as_slice() else { panic!("{done:?}\n{}", stage.host.log()) };
    match &done["data"]["error"] {
        Value::Null => done["data"]["result"]["data"].clone(),
        error => error.clone(),
    }
}

fn says(actor: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "agent": "assistant",
        "actor": {"actor_type": "user", "actor_id": actor}, "input": {"text": text}})
}

fn from(source: &str, mut event: Value) -> Value {
    event["source"] = source.into();
    event
}

const READ: &str = r#"/memory.read {"keys": ["tea"]}"#;

fn set(value: &str) -> String {
    format!("/memory.update {}", json!({"set": {"tea": value}}))
}

/// What a person remembers as `tea`; nothing if there is none.
async fn tea(stage: &Stage, token: &str, event: &Value) -> Option<String> {
    let read = command(stage, token, event).await;
    match read["items"].as_array().unwrap_or_else(|| panic!("{read}")).as_slice() {
        [] => {
            assert_eq!(read["missing"], json!(["tea"]), "{read}");
            None
        }
        [item] => Some(item["value"].as_str().unwrap().to_owned()),
        _ => panic!("{read}"),
    }
}

async fn two_people_keep_the_same_key(stage: Stage) {
    let admin = stage.admin.clone();
    let first = command(&stage, &admin, &says("ann", &set("green"))).await;
    assert_eq!(first["set"][0]["version"], 1, "{first}");
    // It is not told that the key is in use.
    let second = command(&stage, &admin, &says("bob", &set("black"))).await;
    assert_eq!(second["set"][0]["version"], 1, "{second}");
    assert_eq!(tea(&stage, &admin, &says("ann", READ)).await.as_deref(), Some("green"));
    assert_eq!(tea(&stage, &admin, &says("bob", READ)).await.as_deref(), Some("black"));
    let forget = r#"/memory.update {"delete": ["tea"]}"#;
    let gone = command(&stage, &admin, &says("bob", forget)).await;
    assert_eq!(gone["deleted"], json!(["tea"]), "{gone}");
    assert_eq!(tea(&stage, &admin, &says("bob", READ)).await, None);
    assert_eq!(tea(&stage, &admin, &says("ann", READ)).await.as_deref(), Some("green"));
}

async fn equal_ids_of_two_sources_are_two_people(stage: Stage) {
    let admin = stage.admin.clone();
    command(&stage, &admin, &from("telegram", says("7", &set("green")))).await;
    assert_eq!(tea(&stage, &admin, &from("discord", says("7", READ))).await, None);
    command(&stage, &admin, &from("discord", says("7", &set("black")))).await;
    let of = async |source: &str| tea(&stage, &admin, &from(source, says("7", READ))).await;
    assert_eq!(of("telegram").await.as_deref(), Some("green"));
    assert_eq!(of("discord").await.as_deref(), Some("black"));
    assert_eq!(of("api").await, None);
    // An operator names the source as well.
    let list = json!({"op": "list", "module": "memory"}).to_string();
    let records = async |source: &str| {
        let request = Request::post("/v1/tool-runtime/records", list.clone())
            .header("x-greenroom-actor", "7")
            .header("x-greenroom-source", source);
        stage.ask(request).await.body["items"].clone()
    };
    assert_eq!(records("telegram").await[0]["body"], json!({"value": "green"}));
    assert_eq!(records("irc").await, json!([]));
}

async fn an_event_is_shared_within_a_source_only(stage: Stage) {
    let admin = stage.admin.clone();
    let meeting = r#"/calendar.create {"title": "Sync", "start_at": "2026-04-21T10:00:00+08:00", "end_at": "2026-04-21T12:00:00+08:00"}"#;
    let made = command(&stage, &admin, &from("telegram", says("ann", meeting))).await;
    let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}"));
    let share = format!("/calendar.share {}", json!({"event_id": id, "with": ["bob"]}));
    let shared = command(&stage, &admin, &from("telegram", says("ann", &share))).await;
    assert_eq!(shared["invited"][0]["actor_id"], "bob", "{shared}");
    let accept = format!("/calendar.accept_invite {}", json!({"event_id": id}));
    let stranger = command(&stage, &admin, &from("discord", says("bob", &accept))).await;
    assert_eq!(stranger["code"], "NOT_FOUND", "{stranger}");
    let accepted = command(&stage, &admin, &from("telegram", says("bob", &accept))).await;
    assert_eq!(accepted["status"], "accepted", "{accepted}");
}

async fn a_token_names_people_of_its_own(stage: Stage) {
    command(&stage, BRIDGE, &says("ann", &set("green"))).await;
    // Another token that names the actor is not that actor's, and neither is the one whose actor has the same id.
    assert_eq!(tea(&stage, SENDER, &says("ann", READ)).await, None);
    assert_eq!(tea(&stage, ANN, &says("ann", READ)).await, None);
    command(&stage, SENDER, &says("ann", &set("black"))).await;
    assert_eq!(tea(&stage, SENDER, &says("ann", READ)).await.as_deref(), Some("black"));
    // The admin is trusted with every actor of a source, as the bridge is.
    let admin = stage.admin.clone();
    assert_eq!(tea(&stage, &admin, &says("ann", READ)).await.as_deref(), Some("green"));
    assert_eq!(tea(&stage, BRIDGE, &says("ann", READ)).await.as_deref(), Some("green"));
    // The same through AG-UI.
    let agui = async |token: &str, id: &str| {
        let input = json!({"threadId": id, "runId": id, "state": {}, "tools": [], "context": [],
            "messages": [{"id": "m1", "role": "user", "content": READ}],
            "forwardedProps": {"actor": {"actor_id": "ann"}}});
        let request = Request::post("/v1/agui/assistant", input.to_string());
        stage.ask_as(Some(token), request).await.body.to_string()
    };
    command(&stage, BRIDGE, &from("agui", says("ann", &set("oolong")))).await;
    let own = agui(BRIDGE, "bridge").await;
    assert!(own.contains("oolong"), "{own}");
    let other = agui(SENDER, "sender").await;
    assert!(other.contains("missing") && !other.contains("oolong"), "{other}");
}

async fn a_replay_acts_for_the_same_person(stage: Stage) {
    let event = from("telegram", says("7", &set("green")));
    let request = Request::post("/v1/events", event.to_string());
    let sent = stage.ask_as(Some(SENDER), request).await;
    let run_id = sent.body["run_id"].as_str().unwrap().to_owned();
    stage.api().ended_run(&run_id).await;
    let replay = Request::post(format!("/v1/runs/{run_id}/replay"), "{}");
    let again = stage.ask(replay).await;
    assert_eq!(again.status, 202, "{again:?}");
    let replayed = result(&stage, again.body["run_id"].as_str().unwrap()).await;
    assert_eq!(replayed["set"][0]["version"], 2, "{replayed}");
}

async fn mint(stage: &Stage, token: &str, body: Value) -> Reply {
    stage.ask_as(Some(token), Request::post("/v1/tokens/actor", body.to_string())).await
}

async fn a_token_of_one_actor_is_that_person_and_expires(stage: Stage) {
    command(&stage, SENDER, &says("ann", &set("green"))).await;
    let minted = mint(&stage, SENDER, json!({"actor_id": "ann"})).await;
    assert_eq!(minted.status, 201, "{minted:?}");
    assert_eq!(minted.header("cache-control"), Some("no-store"));
    let token = minted.body["token"].as_str().unwrap();
    // It is the application's `ann`, without naming her.
    let mut nameless = says("", READ);
    nameless.as_object_mut().unwrap().remove("actor");
    assert_eq!(tea(&stage, token, &nameless).await.as_deref(), Some("green"));
    assert_eq!(tea(&stage, token, &from("agui", nameless.clone())).await.as_deref(), Some("green"));
    let other = Request::post("/v1/events", says("bob", READ).to_string());
    stage.ask_as(Some(token), other).await.refused(403, "unauthorized");
    // It reaches its own conversations only, and still does with the next token.
    let said = json!({"event_type": "message.received", "agent": "echo", "conversation_id": "home",
        "input": {"text": "hello"}});
    let sent = stage.ask_as(Some(token), Request::post("/v1/events", said.to_string())).await;
    stage.api().ended_run(sent.body["run_id"].as_str().unwrap()).await;
    let next = mint(&stage, SENDER, json!({"actor_id": "ann", "expires_in_s": 60})).await;
    let next = next.body["token"].as_str().unwrap();
    let lists = async |token: &str| {
        let list = stage.ask_as(Some(token), Request::get("/v1/conversations")).await;
        let items = list.body["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["conversation_id"].as_str().unwrap().to_owned()).collect()
    };
    let own: Vec<String> = lists(next).await;
    assert_eq!(own, ["home"]);
    let bob = mint(&stage, SENDER, json!({"actor_id": "bob"})).await;
    let of_bob: Vec<String> = lists(bob.body["token"].as_str().unwrap()).await;
    assert_eq!(of_bob, [""; 0]);
    for target in ["/v1/runs", "/v1/state", "/v1/audit"] {
        stage.ask_as(Some(token), Request::get(target)).await.refused(403, "unauthorized");
    }
    // It mints no others, an altered one is none, and it expires.
    mint(&stage, token, json!({"actor_id": "ann"})).await.refused(403, "unauthorized");
    let altered = token.replace('0', "1");
    stage
        .ask_as(Some(&altered), Request::get("/v1/conversations"))
        .await
        .refused(401, "unauthorized");
    let short = mint(&stage, SENDER, json!({"actor_id": "ann", "expires_in_s": 1})).await;
    let short = short.body["token"].as_str().unwrap().to_owned();
    let expired = async || {
        let list = stage.ask_as(Some(&short), Request::get("/v1/conversations")).await;
        (list.status == 401).then_some(())
    };
    greenroom_testkit::wait::wait_for("the end of a token", Duration::from_secs(20), expired).await;
}

#[tokio::test]
async fn a_token_is_minted_by_one_that_may_name_the_actor() {
    let mut stage = Stage::with(TOKENS).await;
    let ann = json!({"actor_id": "ann"});
    assert_eq!(mint(&stage, ANN, ann.clone()).await.status, 201);
    assert_eq!(mint(&stage, BRIDGE, ann.clone()).await.status, 201);
    mint(&stage, ANN, json!({"actor_id": "bob"})).await.refused(403, "unauthorized");
    mint(&stage, READER, ann.clone()).await.refused(403, "unauthorized");
    let agents = json!({"actor_id": "ann", "agents": ["assistant"]});
    mint(&stage, LIMITED, agents).await.refused(403, "unauthorized");
    let answers = json!({"actor_id": "ann", "answers": true});
    mint(&stage, SENDER, answers).await.refused(403, "unauthorized");
    for wrong in [
        json!({}),
        json!({"actor_id": ""}),
        json!({"actor_id": "a\nb"}),
        json!({"actor_id": "a".repeat(500)}),
        json!({"actor_id": "a", "source": "a/b"}),
        json!({"actor_id": "a", "expires_in_s": 0}),
        json!({"actor_id": "a", "expires_in_s": 86_400}),
        json!({"actor_id": "a", "name": "Ann"}),
    ] {
        mint(&stage, SENDER, wrong).await.refused(400, "invalid_argument");
    }
    // Minted by a limited token, it reaches that token's agents.
    let minted = mint(&stage, LIMITED, ann).await;
    let token = minted.body["token"].as_str().unwrap();
    let request = Request::post("/v1/events", says("ann", "hi").to_string());
    stage.ask_as(Some(token), request).await.refused(404, "not_found");
    // It survives a restart of the host and not a change of the token that minted it.
    let token = token.to_owned();
    stage.host.kill();
    let mut stage = stage.restart().await;
    let list = async |stage: &Stage| {
        stage.ask_as(Some(&token), Request::get("/v1/conversations")).await.status
    };
    assert_eq!(list(&stage).await, 200);
    std::fs::write(stage.host.folder().join("limited"), "another-token-0123456789abcdef").unwrap();
    stage.host.kill();
    let stage = stage.restart().await;
    assert_eq!(list(&stage).await, 401);
}
