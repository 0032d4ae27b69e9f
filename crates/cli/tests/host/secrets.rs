//! A runner that knows a secret and its run token and tells both wherever it can: nobody hears them.
//!
//! Invariant: what must not be found is written down by the runner itself, with encoders of its own.

mod control;
mod cut;

use crate::PROGRAM;
use crate::stage::{PATIENCE, event, outcome, runners};
use greenroom_protocol::RunStatus::{Completed, Failed};
use greenroom_protocol::result::kind;
use greenroom_store::sql::Tx;
use greenroom_store::{Location, Options, Store, StoreError, Sync};
use greenroom_testkit::api::Failure;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::postgres::Database;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// With everything that has a form of its own in JSON, in addresses and in base64.
const SECRET: &str = "s3cr3t/+\"key\"-ünïque~42?>";

/// How the runner comes to know it: as a secret.
const AS_A_SECRET: &str = r#"{ file = "secret" }"#;

fn config(store: &str, the_secret: &str) -> String {
    let leaky = runners().join("leaky.py");
    format!(
        r#"
[store]
sync = "normal"
{store}
[limits]
cancel_grace_s = 1
stderr_lines_per_s = 100000
[runners.leaky]
command = ["python3", "{}"]
dir = "leaky"
env = {{ THE_SECRET = {the_secret}, PYTHONIOENCODING = "utf-8" }}
[agents.leaky]
runner = "plugin:test/leaky/main"
events = []
[agents.leaky.grant]
actions = {{ "message.send" = "ask" }}
[tokens.other]
role = "reader"
token = {{ file = "token" }}
"#,
        leaky.display()
    )
}

async fn start() -> TestHost {
    start_with(&config("", AS_A_SECRET)).await
}

async fn start_with(config: &str) -> TestHost {
    let mut host = TestHost::prepare(PROGRAM, config);
    std::fs::create_dir(host.folder().join("leaky")).unwrap();
    std::fs::write(host.folder().join("secret"), format!("{SECRET}\n")).unwrap();
    std::fs::write(host.folder().join("token"), "the-token-of-a-reader").unwrap();
    host.start_again().await;
    host
}

/// What must not be found, as far as runs have told it.
fn forbidden(host: &TestHost) -> Vec<String> {
    let told = std::fs::read_to_string(host.folder().join("leaky/forbidden")).unwrap();
    let mut forms: Vec<String> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    forms.sort();
    forms.dedup();
    assert!(forms.len() > 15, "{forms:?}");
    forms
}

fn assert_clean(what: &str, bytes: &[u8], forbidden: &[String]) {
    for form in forbidden {
        let place = bytes.windows(form.len()).position(|window| window == form.as_bytes());
        if let Some(place) = place {
            let around = &bytes[place.saturating_sub(200)..(place + 200).min(bytes.len())];
            panic!("{what} tells `{form}`: …{}…", String::from_utf8_lossy(around));
        }
    }
}

/// Every string of a value, as it is meant.
fn assert_clean_value(what: &str, value: &Value, forbidden: &[String]) {
    match value {
        Value::String(text) => assert_clean(what, text.as_bytes(), forbidden),
        Value::Array(items) => {
            items.iter().for_each(|item| assert_clean_value(what, item, forbidden));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            assert_clean(what, name.as_bytes(), forbidden);
            assert_clean_value(what, value, forbidden);
        }),
        _ => {}
    }
}

fn assert_clean_files(folder: &Path, forbidden: &[String]) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += assert_clean_files(&path, forbidden);
        } else if let Ok(bytes) = std::fs::read(&path) {
            assert_clean(&path.display().to_string(), &bytes, forbidden);
            count += 1;
        }
    }
    count
}

/// The texts of messages as a reader puts them together from their deltas.
fn folded(sse: &str) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let data = sse.lines().filter_map(|line| line.strip_prefix("data: "));
    for result in data.filter_map(|data| serde_json::from_str::<Value>(data).ok()) {
        if result["type"] == kind::MESSAGE_DELTA {
            let chunk = &result["data"]["chunk"];
            let id = chunk["message_id"].as_str().unwrap_or_default().to_owned();
            texts.entry(id).or_default().push_str(chunk["content"].as_str().unwrap());
        }
    }
    texts
}

/// Everything the API tells about the conversation `c`, its runs and the host.
async fn everything(host: &TestHost, runs: &[String]) -> Vec<(String, Value)> {
    let api = host.api();
    let mut targets: Vec<String> = [
        "/v1/runs",
        "/v1/conversations",
        "/v1/events?limit=200",
        "/v1/runners",
        "/v1/agents",
        "/v1/audit?limit=200",
        "/v1/approvals",
        "/v1/conversations/c/history?limit=200",
        "/v1/conversations/c/search?q=redacted",
    ]
    .map(str::to_owned)
    .to_vec();
    for run in runs {
        targets.push(format!("/v1/runs/{run}"));
        targets.push(format!("/v1/runs/{run}/results?limit=200"));
    }
    let mut told = Vec::new();
    for first in targets {
        let mut target = first.clone();
        loop {
            let (_, page) = api.json(Request::get(&target)).await.unwrap();
            let next = page["next_cursor"].as_str().map(str::to_owned);
            told.push((target, page));
            let Some(cursor) = next else { break };
            let joint = if first.contains('?') { '&' } else { '?' };
            target = format!("{first}{joint}cursor={cursor}");
        }
    }
    told
}

/// The runner was not just refused: what it did is kept.
fn assert_was_done(told: &[(String, Value)]) {
    let items = |target: &str| {
        let pages = told.iter().filter(|(it, _)| it.starts_with(target)).map(|(_, page)| page);
        pages.flat_map(|page| page["items"].as_array().unwrap().clone()).collect::<Vec<_>>()
    };
    let calls = items("/v1/audit");
    for method in ["state.set", "state.get", "storage.set", "artifacts.create", "history.search"] {
        let done = |call: &&Value| call["method"] == method && call["code"] == "ok";
        assert!(calls.iter().any(|call| done(&call)), "{method}");
    }
    let events = items("/v1/events");
    for kind in ["artifact.created", "action.requested", "tool.call.completed", "run.failed"] {
        assert!(events.iter().any(|event| event["event_type"] == kind), "{kind}");
    }
}

/// What became of a runner that told everything everywhere.
struct Told {
    streams: Vec<String>,
    /// Everything that the API tells, by its address.
    pages: Vec<(String, Value)>,
}

async fn tell_everything(host: &TestHost) -> Told {
    let api = host.api();
    let mut runs = Vec::new();
    let mut streams = Vec::new();
    for way in ["tell", "fail"] {
        let event = event("leaky", "c", &format!("{way} me {SECRET}"));
        let request =
            Request::post("/v1/events", event.to_string()).header("accept", "text/event-stream");
        let answer = api.send(request).await.unwrap();
        assert_eq!(answer.status, 200);
        let bytes = answer.body().await.unwrap();
        let accepted = String::from_utf8(bytes.clone()).unwrap();
        let accepted = accepted.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let accepted: Value = serde_json::from_str(accepted).unwrap();
        runs.push(accepted["run_id"].as_str().unwrap().to_owned());
        streams.push(String::from_utf8(bytes).unwrap());
    }
    for way in ["error", "garbage", "crash"] {
        let run = api.send_event(&event("leaky", "c", way)).await.run_id.unwrap();
        assert_eq!(api.ended_run(&run).await.status, Failed, "{way}");
        runs.push(run);
    }
    assert_eq!(outcome(&api.ended_run(&runs[0]).await), (Completed, ""));
    assert_eq!(outcome(&api.ended_run(&runs[1]).await), (Failed, "acme.failed"));
    wait_for("last words in the log", PATIENCE, async || {
        host.log().contains("last words").then_some(())
    })
    .await;
    let pages = everything(host, &runs).await;
    assert_was_done(&pages);
    Told { streams, pages }
}

/// Nothing that the host has said tells a secret; what it keeps is looked at elsewhere.
fn assert_clean_words(host: &TestHost, told: &Told, forbidden: &[String]) {
    for stream in &told.streams {
        assert_clean("a stream", stream.as_bytes(), forbidden);
        let texts = folded(stream);
        assert!(texts.len() > 100, "{}", texts.len());
        for (id, text) in &texts {
            assert_clean(&format!("message {id}"), text.as_bytes(), forbidden);
            if id.contains("-whole-") || id.contains("-cut-") || id.contains("-characters-") {
                assert!(text.starts_with("before ") && text.ends_with(" after. "), "{id}: {text}");
                assert!(text.contains("[redacted]"), "{id}: {text}");
            }
        }
        assert_eq!(texts["secret-beside"], " the other one  the other one ");
    }
    for (target, page) in &told.pages {
        assert_clean(target, page.to_string().as_bytes(), forbidden);
        assert_clean_value(target, page, forbidden);
    }
    let calls = told.pages.iter().filter(|(target, _)| target.starts_with("/v1/audit"));
    let mut calls = calls.flat_map(|(_, page)| page["items"].as_array().unwrap());
    assert!(calls.any(|call| call["method"] == "[redacted]"), "a method that is a secret");
    let log = host.log();
    assert_clean("the log", log.as_bytes(), forbidden);
    assert!(log.contains("stderr says [redacted]"), "{log:.2000}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_and_a_run_token_are_found_nowhere() {
    let mut host = start().await;
    let told = tell_everything(&host).await;
    let forbidden = forbidden(&host);
    assert_clean_words(&host, &told, &forbidden);
    host.kill();
    assert!(assert_clean_files(&host.data(), &forbidden) > 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_and_a_run_token_are_found_nowhere_in_postgresql() {
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    let url = format!("url = \"{}\"", database.url);
    let mut host = start_with(&config(&url, AS_A_SECRET)).await;
    let told = tell_everything(&host).await;
    let forbidden = forbidden(&host);
    assert_clean_words(&host, &told, &forbidden);
    assert!(host.stop().await.success(), "{}", host.log());
    assert!(assert_clean_files(&host.data(), &forbidden) > 1);
    let location = Location::Postgres(database.url.clone());
    let store = Store::open(&Options { location, sync: Sync::Normal }).unwrap();
    let kept = store.read(|tx| everything_kept(tx)).await.unwrap();
    store.close();
    assert!(kept.len() > 1000, "{}", kept.len());
    for (place, bytes) in &kept {
        assert_clean(place, bytes, &forbidden);
    }
}

/// Every value of every column, with the name of its place.
fn everything_kept(tx: &mut dyn Tx) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    let columns = tx.query(
        "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT), CAST(data_type AS TEXT)
         FROM information_schema.columns WHERE table_schema = current_schema()",
        &[],
    )?;
    let mut kept = Vec::new();
    for mut column in columns {
        let (table, name, kind) = (column.text()?, column.text()?, column.text()?);
        let place = format!("{table}.{name}");
        let is_blob = kind == "bytea";
        let value = if is_blob { name.clone() } else { format!("CAST({name} AS TEXT)") };
        // Drivers keep statements.
        let sql = format!("SELECT {value} FROM {table} WHERE {name} IS NOT NULL").leak();
        for mut row in tx.query(sql, &[])? {
            let bytes = if is_blob { row.blob()? } else { row.text()?.into_bytes() };
            kept.push((place.clone(), bytes));
        }
    }
    Ok(kept)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_holds_a_secret_is_kept_without_it_and_known_again() {
    let host = start().await;
    let api = host.api();
    let mut told = event("echo", "c", &format!("my key is {SECRET}, is that bad?"));
    told["event_id"] = "e1".into();
    told["data"] = json!({"list": [SECRET], "token_like": "sk-a1B2c3D4e5F6g7H8i9J0k1L2"});
    let run = api.send_event(&told).await.run_id.unwrap();
    api.ended_run(&run).await;
    let item = &api.history("c").await[0];
    assert_eq!(item.text.as_deref(), Some("my key is [redacted], is that bad?"));
    let kept = api.get("/v1/events/e1").await;
    assert_eq!(kept["event"]["data"]["list"], json!(["[redacted]"]));
    // What people say is theirs, unless it is a secret of this very host.
    assert_eq!(kept["event"]["data"]["token_like"], "sk-a1B2c3D4e5F6g7H8i9J0k1L2");
    let (status, again) = api.post_event(&told).await.unwrap();
    assert_eq!((status, again.run_id), (200, Some(run)));
    let request = Request::post("/v1/events", event("echo", SECRET, "hi").to_string());
    let Err(Failure::Refused { status, body }) = api.json(request).await else {
        panic!("an id that is a secret was taken");
    };
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_argument")));
    assert_clean_value("the refusal", &body, &[SECRET.to_owned()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_token_opens_no_door_of_the_api() {
    let host = start().await;
    let api = host.api();
    let run = api.send_event(&event("leaky", "c", "wait")).await.run_id.unwrap();
    let file = host.folder().join("leaky/token");
    let token = wait_for("the token", PATIENCE, async || {
        std::fs::read_to_string(&file).ok().filter(|token| token.len() == 68)
    })
    .await;
    assert!(token.starts_with("grt_"), "a run token tells what it is");
    let url = std::fs::read_to_string(host.data().join("host.json")).unwrap();
    let url: Value = serde_json::from_str(&url).unwrap();
    let address = url["address"].as_str().unwrap().parse().unwrap();
    for target in ["/v1/runs", &format!("/v1/runs/{run}"), "/v1/events", "/v1/runners/connect"] {
        let request = Request::get(target).header("authorization", format!("Bearer {token}"));
        let answer = greenroom_testkit::http::send(address, &request).await.unwrap();
        assert_eq!(answer.status, 401, "{target}");
    }
    std::fs::write(host.folder().join("leaky/go"), "").unwrap();
    assert_eq!(outcome(&api.ended_run(&run).await), (Completed, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_comes_with_a_reload_is_one_from_then_on() {
    let mut host = start().await;
    let api = host.api();
    let fresh = "a-fresh-secret-0815";
    let said = async |text: &str| {
        let run = api.send_event(&event("echo", "c", text)).await.run_id.unwrap();
        api.ended_run(&run).await;
        api.history("c").await.last().unwrap().text.clone().unwrap()
    };
    assert!(said(&format!("one {fresh}")).await.contains(fresh));
    std::fs::write(host.folder().join("token"), fresh).unwrap();
    host.configure(&format!("{}\n# changed", config("", AS_A_SECRET)));
    let request = || Request::get("/v1/runs").header("authorization", format!("Bearer {fresh}"));
    let file = std::fs::read_to_string(host.data().join("host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let address = file["address"].as_str().unwrap().parse().unwrap();
    wait_for("the new token", PATIENCE, async || {
        let answer = greenroom_testkit::http::send(address, &request()).await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await;
    let text = said(&format!("two {fresh} the-token-of-a-reader")).await;
    assert!(text.contains("two [redacted] [redacted]"), "{text}");
    host.stop().await;
}
