//! Calls by the hundred thousand, near to proper ones: each gets a proper answer, and none gets past the grant.
//!
//! Invariant: a failure names its seed, and the seed brings the same calls back. `GREENROOM_CALLS` says how many
//! there are, `GREENROOM_SEED` which.

mod generate;

use crate::facts::{MARK, seed, seen, seen_by};
use crate::setting;
use crate::stage::{ALL, PATIENCE, Stage, agent, event};
use crate::wire::{TAPPED, Wire, reply_in};
use generate::{Claim, Generator, Names};
use greenroom_protocol::ErrorCode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use tokio::sync::mpsc;

const CALLS: u64 = 100_000;
/// Calls under way at once, below what a connection may have.
const WINDOW: usize = 768;
const BATCH: usize = 256;

/// Raised as far as they go: what is looked for here is not the meter.
const LIMITS: &str = "calls_per_s_run = 100000000\ncalls_per_s_plugin = 100000000\nrun_deadline_s = 3600\ncall_bytes = 65536";
/// Some of everything, so that there is a border on each side.
const SOME: &str = r#"state = ["conversation", "actor"], storage = ["plugin"], actions = { "message.send" = "always" }"#;

/// What the fuzzed calls may not reach: those of another runner, agent, conversation, actor and workspace.
struct Others {
    events: Vec<(Value, Value)>,
}

#[tokio::test(flavor = "multi_thread")]
async fn fuzzed_calls_get_proper_answers_and_never_more_than_was_granted() {
    let random_seed = setting("GREENROOM_SEED").unwrap_or(20_261_115);
    let calls = setting("GREENROOM_CALLS").unwrap_or(CALLS);
    eprintln!("GREENROOM_SEED={random_seed} GREENROOM_CALLS={calls}");
    let agents = agent("fuzzed", "plugin:test/alpha/main", "queue = \"parallel\"", SOME)
        + &agent("full", "plugin:test/alpha/main", "queue = \"parallel\"", ALL)
        + &agent("other", "plugin:test/beta/main", "queue = \"parallel\"", ALL);
    let mut stage = Stage::open(&["alpha", "beta"], LIMITS, &agents).await;
    let (alpha, beta) = (stage.connect("alpha").await, stage.connect("beta").await);
    let (names, others) = furnish(&stage, &alpha, &beta).await;
    let own = names.own.clone();
    let seen_codes = Fuzz { wire: &alpha, names, random_seed }.run(calls).await;
    // What is near to proper is sometimes proper, and sometimes improper in each way there is.
    for code in ["ok", "unauthorized", "not_found", "invalid_argument", "payload_too_large"] {
        assert!(seen_codes.get(code).is_some_and(|count| *count > 0), "{code}: {seen_codes:?}");
    }
    for (event, before) in &others.events {
        let wire = if event["agent"] == "other" { &beta } else { &alpha };
        let mut after = seen(&stage, wire, event).await;
        after["outside"] = before["outside"].clone();
        // The plugin's own area is one that the fuzzed run was granted.
        if wire_is_shared(event) {
            after["storage"]["plugin"] = before["storage"]["plugin"].clone();
        }
        assert_eq!(after, *before, "{event}");
    }
    for delivered in stage.receiver.received() {
        let payload = &delivered.payload;
        assert_eq!(
            (&payload["agent"], &payload["conversation_id"]),
            (&json!("fuzzed"), &json!("mine"))
        );
    }
    assert_eq!(stage.api.get("/v1/approvals").await["items"], json!([]));
    assert!(stage.api.run(&own).await.status.is_open(), "calls do not end a run");
    let proper = json!({"scope": "conversation", "key": "last", "value": 1});
    alpha.call_for(&own, "state.set", proper).await.unwrap();
    stage.assert_sound();
}

/// Whether the event's run has the fuzzed run's plugin, in its workspace.
fn wire_is_shared(event: &Value) -> bool {
    event["agent"] != "other" && event["workspace_id"].is_null()
}

/// The others with what is theirs, and the fuzzed run under way beside them.
async fn furnish(stage: &Stage, alpha: &Wire, beta: &Wire) -> (Names, Others) {
    let mut actor = event("full", "theirs");
    actor["actor"]["actor_id"] = "u2".into();
    let mut workspace = event("full", "mine");
    workspace["workspace_id"] = "w2".into();
    let theirs = [event("other", "theirs"), event("full", "theirs"), actor, workspace];
    let mut names = Names::default();
    let mut others = Others { events: Vec::new() };
    for event in theirs {
        let wire = if event["agent"] == "other" { beta } else { alpha };
        let seeds = seed(stage, wire, &event).await;
        names.ids.extend([seeds.artifact, seeds.event]);
        others.events.push((event, seeds.facts));
    }
    // Seen anew: each one's seeding has left something that the one before it may see as well.
    for (event, facts) in &mut others.events {
        let wire = if event["agent"] == "other" { beta } else { alpha };
        *facts = seen(stage, wire, event).await;
    }
    let ended = stage.start(alpha, &event("fuzzed", "mine")).await;
    stage.end(alpha, &ended).await;
    let foreign = stage.start(beta, &event("other", "theirs")).await;
    let own = stage.start(alpha, &event("fuzzed", "mine")).await;
    let _ = seen_by(stage, alpha, &own).await;
    let made = json!({"content_base64": "bWluZQ=="});
    let made = alpha.call_for(&own.id, "artifacts.create", made).await.unwrap();
    names.own_artifact = made["artifact_id"].as_str().unwrap().to_owned();
    names.own_event = own.context["event"]["event_id"].as_str().unwrap().to_owned();
    let cursor = foreign.context["context"]["latest_cursor"].as_str().unwrap();
    names.ids.extend([cursor.to_owned(), "theirs".to_owned(), "w2".to_owned(), "u2".to_owned()]);
    let own_cursor = own.context["context"]["latest_cursor"].as_str().unwrap();
    names.ids.extend([own_cursor.to_owned(), "mine".to_owned()]);
    names.not_own = vec![(Claim::Foreign, foreign.id), (Claim::Ended, ended.id)];
    names.own = own.id;
    (names, others)
}

struct Fuzz<'a> {
    wire: &'a Wire,
    names: Names,
    random_seed: u64,
}

impl Fuzz<'_> {
    /// Makes so many calls and checks every answer; gives back how often each code came.
    async fn run(self, calls: u64) -> BTreeMap<String, u64> {
        let mut generator = Generator::new(self.names, self.random_seed);
        let mut answers = self.wire.tap(WINDOW * 2);
        let mut under_way = HashMap::new();
        let mut codes = BTreeMap::new();
        let mut number = 0;
        while number < calls || !under_way.is_empty() {
            let mut batch = String::new();
            for _ in 0..BATCH.min(usize::try_from(calls - number).unwrap()) {
                let (claim, method, params) = generator.call();
                let id = format!("{TAPPED}{number}");
                batch += &format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":{},\"params\":{params}}}\n",
                    json!(method)
                );
                under_way.insert(id, (claim, method, params));
                number += 1;
            }
            self.wire.write(batch.as_bytes()).await;
            let left = if number < calls { WINDOW - BATCH } else { 0 };
            while under_way.len() > left {
                check_next(&mut answers, &mut under_way, &mut codes).await;
            }
        }
        codes
    }
}

type UnderWay = HashMap<String, (Claim, String, String)>;

async fn check_next(
    answers: &mut mpsc::Receiver<String>,
    under_way: &mut UnderWay,
    codes: &mut BTreeMap<String, u64>,
) {
    let line = tokio::time::timeout(PATIENCE, answers.recv()).await;
    let line = line.unwrap_or_else(|_| panic!("no answer to {:?}", under_way.values().next()));
    let line = line.expect("the wire is not cut");
    let answer: Value = serde_json::from_str(&line).unwrap();
    let call = under_way.remove(answer["id"].as_str().unwrap());
    let call = call.unwrap_or_else(|| panic!("an answer to nothing: {line}"));
    let reply = reply_in(&answer);
    let code = reply.as_ref().map_or_else(|error| error.code.as_str(), |_| "ok");
    assert!(!line.contains(MARK) && !line.contains("eHlsb3Bob25l"), "{call:?} tells {line}");
    assert_ne!(code, "runtime_error", "{call:?} was answered {line}");
    if !matches!(call.0, Claim::Own | Claim::Twice) {
        let refused = reply.as_ref().is_err_and(|error| error.code == ErrorCode::Unauthorized);
        assert!(refused, "{call:?} was answered {line}");
    }
    *codes.entry(code.to_owned()).or_default() += 1;
}
