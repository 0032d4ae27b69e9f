//! Deliveries that are retried for long, given up, shown, sent again and discarded.

mod reload;

use crate::stage::{PROGRAM, READER, SENDER, Stage};
use crate::webhook::{outcome, settled, surface, tell, texts};
use greenroom_testkit::http::Request;
use greenroom_testkit::receiver::{Reaction, Received, Receiver};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::process::Output;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver that answers with a status which can be changed, and knows what it took.
struct Hook {
    receiver: Receiver,
    status: Arc<AtomicU16>,
    taken: Arc<Mutex<Vec<Received>>>,
}

impl Hook {
    async fn answering(status: u16) -> Self {
        let (status, taken) = (Arc::new(AtomicU16::new(status)), Arc::<Mutex<Vec<_>>>::default());
        let (answer, noted) = (Arc::clone(&status), Arc::clone(&taken));
        let receiver = Receiver::reacting(move |_, request| {
            let status = answer.load(Ordering::SeqCst);
            if status < 300 {
                noted.lock().unwrap().push(request.clone());
            }
            Reaction::Answer(status)
        })
        .await;
        Self { receiver, status, taken }
    }

    fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn config(&self, more: &str, limits: &str) -> String {
        let more = format!("allow_private = true\n{more}");
        format!("{}\n[limits]\n{limits}", surface(&self.receiver.url(), &more))
    }

    /// What was taken of a conversation, in order.
    fn taken(&self, conversation: &str) -> Vec<String> {
        let taken = self.taken.lock().unwrap().clone();
        let of_it = |it: &Received| it.payload["conversation_id"] == conversation;
        let taken: Vec<Received> = taken.into_iter().filter(of_it).collect();
        texts(&taken).into_iter().map(str::to_owned).collect()
    }
}

async fn delivery_of(stage: &Stage, run_id: &str) -> Value {
    wait_for("a delivery", PATIENCE, async || {
        let page = stage.get(&format!("/v1/deliveries?run_id={run_id}")).await.body;
        page["items"].get(0).cloned()
    })
    .await
}

/// The delivery of a run once it fits.
async fn until(stage: &Stage, run_id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    wait_for("a delivery that fits", PATIENCE, async || {
        Some(delivery_of(stage, run_id).await).filter(|delivery| fits(delivery))
    })
    .await
}

async fn ask_to(stage: &Stage, verb: &str, delivery: &Value) -> crate::stage::Reply {
    let id = delivery["delivery_id"].as_str().unwrap();
    stage.ask(Request::post(format!("/v1/deliveries/{id}/{verb}"), "")).await
}

fn pause_ms(delivery: &Value) -> i64 {
    let at = |key: &str| {
        let text = delivery[key].as_str().unwrap();
        greenroom_host::ids::parse_rfc3339(text).unwrap()
    };
    at("next_attempt_at") - at("updated_at")
}

/// Runs the program against the host, as a person would.
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
async fn greenroom(stage: &Stage, args: &[&str]) -> (Output, String) {
    let data = stage.host.data();
    let output = Command::new(PROGRAM)
        .args(args)
        .args(["--data", data.to_str().unwrap()])
        .current_dir(stage.host.folder())
        .output()
        .await
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), &output.stderr);
    let text = format!("{out}{}", String::from_utf8_lossy(err));
    (output, text)
}

/// An hour passes in a second. The host is killed once on the way.
#[cfg(feature = "faults")]
#[tokio::test]
async fn a_receiver_that_is_down_for_six_hours_gets_everything_in_order() {
    let hook = Hook::answering(503).await;
    // Nothing is `unknown` by the kill.
    let mut stage = Stage::with(&hook.config("idempotent = true", "")).await;
    stage.host.stop().await;
    stage.host.set_fault(Some("delivery_clock:3600".to_owned()));
    let mut stage = stage.restart().await;
    let began = std::time::Instant::now();
    let mut runs = Vec::new();
    for number in 0..3 {
        for conversation in ["one", "two", "three"] {
            runs.push(tell(&stage, conversation, &format!("number {number}")).await);
        }
    }
    until(&stage, &runs[0], |delivery| delivery["attempts"].as_i64() >= Some(12)).await;
    stage.host.kill();
    let stage = stage.restart().await;
    for conversation in ["one", "two", "three"] {
        runs.push(tell(&stage, conversation, "number 3").await);
    }
    let six_hours = Duration::from_secs(6);
    wait_for("six hours", PATIENCE, async || (began.elapsed() >= six_hours).then_some(())).await;
    for run_id in &runs {
        let delivery = delivery_of(&stage, run_id).await;
        assert!(["pending", "claimed"].contains(&delivery["status"].as_str().unwrap()));
    }
    let first = delivery_of(&stage, &runs[0]).await;
    assert!(first["attempts"].as_i64() > Some(8), "as many as earlier versions made: {first}");
    assert_eq!(hook.taken("one"), [""; 0]);
    hook.answer(204);
    for run_id in &runs {
        assert_eq!(settled(&stage, run_id).await[0]["status"], "done");
    }
    for conversation in ["one", "two", "three"] {
        let expected = ["number 0", "number 1", "number 2", "number 3"];
        assert_eq!(hook.taken(conversation), expected, "in order, and each once");
    }
}

/// Four hours pass in a second.
#[cfg(feature = "faults")]
#[tokio::test]
async fn a_receiver_that_is_down_for_more_than_a_day_is_given_up() {
    let hook = Hook::answering(503).await;
    let mut stage = Stage::with(&hook.config("", "")).await;
    stage.host.stop().await;
    stage.host.set_fault(Some("delivery_clock:14400".to_owned()));
    let stage = stage.restart().await;
    let run_id = tell(&stage, "c", "x").await;
    let delivery = settled(&stage, &run_id).await.remove(0);
    assert_eq!(delivery["status"], "failed");
    let error = delivery["error"].as_str().unwrap();
    let attempts = delivery["attempts"].as_i64().unwrap();
    let expected = format!(
        "given up after {attempts} attempts in 24 h: the surface answered 503 Service Unavailable"
    );
    assert_eq!(error, expected);
    assert!(attempts > 8, "{attempts}");
}

/// Longer than the eight attempts of earlier versions, on a clock that is not hastened.
#[tokio::test]
async fn a_delivery_is_tried_for_as_long_as_the_configuration_says() {
    let hook = Hook::answering(503).await;
    let limits = "delivery_retry_s = 600\ndelivery_pause_max_s = 1";
    let stage = Stage::with(&hook.config("", limits)).await;
    let runs = [tell(&stage, "c", "first").await, tell(&stage, "c", "second").await];
    until(&stage, &runs[0], |delivery| delivery["attempts"].as_i64() >= Some(10)).await;
    assert_eq!(delivery_of(&stage, &runs[1]).await["attempts"], 0, "it waits for its turn");
    hook.answer(204);
    for run_id in &runs {
        assert_eq!(settled(&stage, run_id).await[0]["status"], "done");
    }
    assert_eq!(hook.taken("c"), ["first", "second"]);
    let log = stage.host.log();
    let warnings = log.lines().filter(|line| line.contains("delivery failed, will retry"));
    assert_eq!(warnings.count(), 1, "not one for each attempt: {log}");
    assert!(log.contains("surface accepts deliveries again"), "{log}");
}

#[tokio::test]
async fn what_was_given_up_is_shown_everywhere_and_sent_again_once() {
    let hook = Hook::answering(503).await;
    let stage = Stage::with(&hook.config("", "delivery_retry_s = 0")).await;
    let run_id = tell(&stage, "c", "hello").await;
    let delivery = settled(&stage, &run_id).await.remove(0);
    assert_eq!(outcome(&delivery), ("failed", 1));
    let id = delivery["delivery_id"].as_str().unwrap();
    // HTTP: list, one, overview.
    let page = stage.get("/v1/deliveries?status=failed&surface=hook").await.body;
    assert_eq!(page, json!({"items": [delivery], "next_cursor": null, "has_more": false}));
    let one = stage.get(&format!("/v1/deliveries/{id}")).await.body;
    assert_eq!(one["payload"]["message"]["content"], "hello");
    assert_eq!((&one["conversation_id"], &one["run_id"]), (&json!("c"), &json!(run_id)));
    let queue = &stage.get("/v1/overview").await.body["queue"];
    assert_eq!((&queue["deliveries_failed"], &queue["deliveries_waiting"]), (&json!(1), &json!(0)));
    // The log, once.
    let log = stage.host.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("delivery given up")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    for part in [id, &run_id, "hook", "503", "WARN"] {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
    // The command line.
    let (output, text) = greenroom(&stage, &["doctor"]).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("`greenroom deliveries retry --failed` sends them again"), "{text}");
    let (_, text) = greenroom(&stage, &["runs", "show", &run_id]).await;
    let hint = format!("hint: `greenroom deliveries retry {id}");
    assert!(text.contains(&hint) && text.contains("given up after 1 attempt"), "{text}");
    let (_, text) = greenroom(&stage, &["deliveries", "list", "--status", "failed"]).await;
    assert!(text.contains(id) && text.contains(&hint), "{text}");
    // Sent again, once.
    hook.answer(204);
    let (output, text) = greenroom(&stage, &["deliveries", "retry", "--failed"]).await;
    assert_eq!(
        (output.status.code(), text),
        (Some(0), format!("delivery {id} will be sent again\n"))
    );
    assert_eq!(outcome(&settled(&stage, &run_id).await[0]), ("done", 2));
    assert_eq!(hook.taken("c"), ["hello"]);
    let sent = hook.receiver.received();
    assert_eq!(sent[0].delivery_id, sent[1].delivery_id, "the same id");
    let (output, text) = greenroom(&stage, &["deliveries", "retry", id]).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("this delivery was already sent"), "{text}");
    let log = stage.api().events().await;
    let asked: Vec<&Value> =
        log.iter().filter(|event| event["event_type"] == "delivery.retried").collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (&asked[0]["event"]["by"], &asked[0]["event"]["delivery_id"]),
        (&json!("admin"), &json!(id))
    );
    let queue = &stage.get("/v1/overview").await.body["queue"];
    assert_eq!((&queue["deliveries_failed"], &queue["deliveries_unknown"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn of_two_that_ask_for_a_retry_at_once_one_is_answered_with_a_conflict() {
    let hook = Hook::answering(404).await;
    let stage = Stage::with(&hook.config("", "")).await;
    let run_id = tell(&stage, "c", "x").await;
    let delivery = settled(&stage, &run_id).await.remove(0);
    // Held back, so that the first retry is not settled before the second is asked for.
    hook.answer(503);
    let (one, other) =
        tokio::join!(ask_to(&stage, "retry", &delivery), ask_to(&stage, "retry", &delivery));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{one:?} {other:?}");
    let late = if one.status == 409 { one } else { other };
    late.refused(409, "invalid_argument");
}

/// The first is refused for good, the second waits; sent again, the first goes before the second.
#[tokio::test]
async fn a_retry_goes_before_what_waits_for_the_same_target() {
    let hook = Hook::answering(400).await;
    let stage = Stage::with(&hook.config("", "")).await;
    let first = tell(&stage, "c", "first").await;
    let delivery = settled(&stage, &first).await.remove(0);
    hook.answer(503);
    let second = tell(&stage, "c", "second").await;
    // By now the pause is long enough for the order to be no accident.
    until(&stage, &second, |it| it["next_attempt_at"].is_string() && pause_ms(it) > 1_500).await;
    let retried = ask_to(&stage, "retry", &delivery).await;
    assert_eq!((retried.status, &retried.body["delivery_id"]), (200, &delivery["delivery_id"]));
    until(&stage, &first, |it| it["attempts"].as_i64() >= Some(2)).await;
    hook.answer(204);
    for run_id in [&first, &second] {
        assert_eq!(settled(&stage, run_id).await[0]["status"], "done");
    }
    assert_eq!(hook.taken("c"), ["first", "second"]);
}

#[tokio::test]
async fn what_is_discarded_lets_the_next_go_at_once() {
    let receiver = Receiver::reacting(|_, request| {
        let is_poison = request.payload["message"]["content"] == "poison";
        Reaction::Answer(if is_poison { 503 } else { 204 })
    })
    .await;
    let stage = Stage::with(&surface(&receiver.url(), "allow_private = true")).await;
    let poison = tell(&stage, "c", "poison").await;
    let next = tell(&stage, "c", "next").await;
    let waiting = until(&stage, &poison, |it| {
        it["next_attempt_at"].is_string() && it["attempts"].as_i64() >= Some(3)
    })
    .await;
    ask_to(&stage, "retry", &waiting).await.refused(409, "invalid_argument");
    let discarded = wait_for("a moment in which it is not sent", PATIENCE, async || {
        let reply = ask_to(&stage, "discard", &waiting).await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    assert_eq!(discarded.body["status"], "discarded");
    assert_eq!(outcome(&settled(&stage, &next).await[0]), ("done", 1));
    ask_to(&stage, "discard", &waiting).await.refused(409, "invalid_argument");
    ask_to(&stage, "retry", &waiting).await.refused(409, "invalid_argument");
    let log = stage.api().events().await;
    let decided = log.iter().find(|event| event["event_type"] == "delivery.discarded").unwrap();
    assert_eq!(decided["event"]["by"], "admin");
    assert_eq!(decided["conversation_id"], "c");
}

#[tokio::test]
async fn an_unknown_outcome_is_shown_and_can_be_sent_again() {
    let hook = Hook::answering(500).await;
    let stage = Stage::with(&hook.config("", "")).await;
    let run_id = tell(&stage, "c", "maybe").await;
    let delivery = settled(&stage, &run_id).await.remove(0);
    assert_eq!(outcome(&delivery), ("unknown", 1));
    assert_eq!(stage.get("/v1/overview").await.body["queue"]["deliveries_unknown"], 1);
    let log = stage.host.log();
    assert!(log.contains("delivery outcome unknown"), "{log}");
    let (output, text) = greenroom(&stage, &["doctor"]).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("1 with an unknown outcome"), "{text}");
    hook.answer(200);
    let (_, text) = greenroom(&stage, &["deliveries", "retry", "--failed"]).await;
    assert_eq!(text, "nothing found\n", "what may have arrived is not swept along");
    assert_eq!(ask_to(&stage, "retry", &delivery).await.status, 200);
    assert_eq!(outcome(&settled(&stage, &run_id).await[0]), ("done", 2));
}

#[tokio::test]
async fn one_success_wakes_the_other_conversations_of_its_surface() {
    let hook = Hook::answering(503).await;
    let stage = Stage::with(&hook.config("", "")).await;
    let first = tell(&stage, "one", "x").await;
    let waits = |it: &Value| it["next_attempt_at"].is_string() && pause_ms(it) > 3_000;
    let waiting = until(&stage, &first, waits).await;
    hook.answer(204);
    let second = tell(&stage, "two", "y").await;
    assert_eq!(outcome(&settled(&stage, &second).await[0]), ("done", 1));
    let done = settled(&stage, &first).await.remove(0);
    assert!(done["updated_at"].as_str() < waiting["next_attempt_at"].as_str(), "{done} {waiting}");
}

#[tokio::test]
async fn a_receiver_says_when_to_try_again() {
    for (asked_s, limits, expected_ms) in
        [(2, "", 2_000), (3_600, "delivery_pause_max_s = 3", 3_000)]
    {
        let receiver = Receiver::reacting(move |number, _| match number {
            0 => Reaction::Later(asked_s),
            _ => Reaction::Answer(204),
        })
        .await;
        let surface = surface(&receiver.url(), "allow_private = true");
        let stage = Stage::with(&format!("{surface}\n[limits]\n{limits}")).await;
        let run_id = tell(&stage, "c", "x").await;
        let waiting = until(&stage, &run_id, |it| it["next_attempt_at"].is_string()).await;
        let pause = pause_ms(&waiting);
        assert!((expected_ms - 50..expected_ms + 500).contains(&pause), "{pause}");
        let done = settled(&stage, &run_id).await.remove(0);
        assert_eq!(outcome(&done), ("done", 2));
        assert!(done["updated_at"].as_str() >= waiting["next_attempt_at"].as_str(), "{done}");
    }
}

#[tokio::test]
async fn deliveries_are_read_by_readers_and_changed_by_admins() {
    let hook = Hook::answering(404).await;
    let stage = Stage::with(&hook.config("", "")).await;
    let run_id = tell(&stage, "c", "x").await;
    let delivery = settled(&stage, &run_id).await.remove(0);
    let id = delivery["delivery_id"].as_str().unwrap();
    let read = ["/v1/deliveries".to_owned(), format!("/v1/deliveries/{id}")];
    for target in &read {
        let reader = stage.ask_as(Some(READER), Request::get(target.as_str())).await;
        assert_eq!(reader.status, 200, "{reader:?}");
        let sender = stage.ask_as(Some(SENDER), Request::get(target.as_str())).await;
        sender.refused(403, "unauthorized");
    }
    for verb in ["retry", "discard"] {
        for token in [READER, SENDER] {
            let request = Request::post(format!("/v1/deliveries/{id}/{verb}"), "");
            stage.ask_as(Some(token), request).await.refused(403, "unauthorized");
        }
        let request = Request::post(format!("/v1/deliveries/dlv_none/{verb}"), "");
        stage.ask(request).await.refused(404, "not_found");
        let request = Request::post(format!("/v1/deliveries/{id}/{verb}?workspace_id=w"), "");
        stage.ask(request).await.refused(404, "not_found");
    }
    stage.get("/v1/deliveries/dlv_none").await.refused(404, "not_found");
    for query in ["status=lost", "cursor=abc", "limit=0", "agent=a"] {
        stage.get(&format!("/v1/deliveries?{query}")).await.refused(400, "invalid_argument");
    }
    assert_eq!(delivery_of(&stage, &run_id).await["status"], "failed", "nothing was changed");
}
