//! Deliveries to a webhook: in order, signed, tried again where that is safe and never where it is not.

use crate::stage::{Stage, message};
use greenroom_testkit::receiver::{Reaction, Received, Receiver};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;

const PATIENCE: Duration = Duration::from_secs(30);

/// An agent `told` whose answers go to `url`.
pub(crate) fn surface(url: &str, more: &str) -> String {
    format!(
        r#"
[agents.told]
runner = "plugin:greenroom/echo/default"
events = []
delivery = "hook"
queue = "serial"
config = {{ modes = true }}

[surfaces.hook]
kind = "webhook"
url = "{url}"
{more}
"#
    )
}

pub(crate) async fn staged(receiver: &Receiver, more: &str) -> Stage {
    Stage::with(&surface(&receiver.url(), &format!("allow_private = true\n{more}"))).await
}

pub(crate) async fn tell(stage: &Stage, conversation: &str, text: &str) -> String {
    let mut event = message(conversation, text);
    event["agent"] = "told".into();
    let reply = stage.post(event.to_string()).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.body["run_id"].as_str().unwrap().to_owned()
}

/// The deliveries of a run once all of them are settled.
pub(crate) async fn settled(stage: &Stage, run_id: &str) -> Vec<Value> {
    wait_for("settled deliveries", PATIENCE, async || {
        let run = stage.get(&format!("/v1/runs/{run_id}")).await.body;
        let deliveries = run["deliveries"].as_array().unwrap().clone();
        let is_open = |delivery: &Value| {
            ["pending", "claimed"].contains(&delivery["status"].as_str().unwrap())
        };
        let over = run["finished_at"].is_string() && !deliveries.iter().any(is_open);
        (over && !deliveries.is_empty()).then_some(deliveries)
    })
    .await
}

pub(crate) fn outcome(delivery: &Value) -> (&str, i64) {
    (delivery["status"].as_str().unwrap(), delivery["attempts"].as_i64().unwrap())
}

/// Types of the host's own facts about deliveries, oldest first.
async fn logged(stage: &Stage) -> Vec<(String, Value)> {
    let events = stage.api().events().await;
    let own = events.into_iter().rev().filter(|event| event["source"] == "host");
    own.map(|event| (event["event_type"].as_str().unwrap().to_owned(), event["event"].clone()))
        .filter(|(kind, _)| kind.starts_with("delivery."))
        .collect()
}

pub(crate) fn texts(received: &[Received]) -> Vec<&str> {
    received.iter().map(|it| it.payload["message"]["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_answer_is_delivered_once_and_its_delivery_is_a_fact() {
    let receiver = Receiver::start().await;
    let stage = staged(&receiver, "").await;
    let run_id = tell(&stage, "c", "hello there").await;
    let deliveries = settled(&stage, &run_id).await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!(outcome(&deliveries[0]), ("done", 1));
    assert_eq!(
        (&deliveries[0]["surface"], &deliveries[0]["error"]),
        (&json!("hook"), &json!(null))
    );
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    let event_id = stage.api().run(&run_id).await.event_id;
    let expected = json!({"type": "message.completed", "run_id": run_id, "event_id": event_id,
        "agent": "told", "conversation_id": "c", "sequence": deliveries[0]["sequence"],
        "message": {"role": "assistant", "content": "hello there", "segments": [],
            "metadata": null},
        "part": 1, "parts": 1, "reply_target": {"message_id": event_id, "conversation_id": "c",
            "actor_id": "u1"}});
    assert_eq!(received[0].payload, expected);
    assert_eq!(deliveries[0]["delivery_id"], received[0].delivery_id);
    let log = logged(&stage).await;
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].0.as_str(), &log[0].1["run_id"]), ("delivery.done", &json!(run_id)));
}

#[tokio::test]
async fn a_failed_run_is_told_to_its_surface() {
    let receiver = Receiver::start().await;
    let stage = staged(&receiver, "").await;
    let run_id = tell(&stage, "c", "/fail code=my.code message=oops").await;
    settled(&stage, &run_id).await;
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].payload["type"], "run.failed");
    assert_eq!(received[0].payload["error"]["code"], "my.code");
}

/// Every first try is turned away, so that later messages would overtake if they could.
#[tokio::test]
async fn deliveries_keep_their_order_per_conversation_through_failures() {
    let receiver =
        Receiver::reacting(|number, _| Reaction::Answer(if number % 2 == 0 { 503 } else { 204 }))
            .await;
    let stage = staged(&receiver, "").await;
    let mut runs = Vec::new();
    for number in 0..4 {
        runs.push(tell(&stage, "c", &format!("number {number}")).await);
    }
    for run_id in &runs {
        assert_eq!(outcome(&settled(&stage, run_id).await[0]), ("done", 2));
    }
    let received = receiver.received();
    let expected: Vec<String> = (0..8).map(|number| format!("number {}", number / 2)).collect();
    assert_eq!(texts(&received), expected);
    for pair in received.chunks(2) {
        assert_eq!(pair[0].delivery_id, pair[1].delivery_id, "the same id on every try");
    }
}

#[tokio::test]
async fn a_conversation_that_is_stuck_keeps_no_other_waiting() {
    let receiver = Receiver::reacting(|_, request| match &request.payload["conversation_id"] {
        stuck if *stuck == "stuck" => Reaction::Hang,
        _ => Reaction::Answer(204),
    })
    .await;
    let stage = staged(&receiver, "idempotent = true").await;
    tell(&stage, "stuck", "one").await;
    wait_for("the stuck one", PATIENCE, async || (!receiver.received().is_empty()).then_some(()))
        .await;
    let run_id = tell(&stage, "free", "two").await;
    assert_eq!(outcome(&settled(&stage, &run_id).await[0]), ("done", 1));
}

#[tokio::test]
async fn what_was_certainly_not_taken_is_tried_again() {
    for status in [429, 503] {
        let receiver = Receiver::reacting(move |number, _| {
            Reaction::Answer(if number == 0 { status } else { 200 })
        })
        .await;
        let stage = staged(&receiver, "").await;
        let run_id = tell(&stage, "c", "again").await;
        assert_eq!(outcome(&settled(&stage, &run_id).await[0]), ("done", 2), "{status}");
        assert_eq!(logged(&stage).await.len(), 1, "a try is not an outcome");
    }
}

#[tokio::test]
async fn a_receiver_that_is_away_is_tried_again_until_it_is_back() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    // Bound but not listening: every connection is refused.
    let url = format!("http://{address}/hook");
    let stage = Stage::with(&surface(&url, "allow_private = true")).await;
    let run_id = tell(&stage, "c", "are you there").await;
    wait_for("a failed try", PATIENCE, async || {
        let run = stage.get(&format!("/v1/runs/{run_id}")).await.body;
        run["deliveries"][0]["error"].is_string().then_some(())
    })
    .await;
    let listener: TcpListener = socket.listen(16).unwrap();
    let receiver = Receiver::serving(listener, |_, _| Reaction::Answer(204));
    let deliveries = settled(&stage, &run_id).await;
    assert_eq!(deliveries[0]["status"], "done", "{deliveries:?}");
    assert_eq!(texts(&receiver.received()), ["are you there"]);
}

#[tokio::test]
async fn a_receiver_that_stays_away_fails_the_delivery_in_the_end() {
    let receiver = Receiver::reacting(|_, _| Reaction::Answer(503)).await;
    let config = format!(
        "{}\n[limits]\ndelivery_retry_s = 1",
        surface(&receiver.url(), "allow_private = true")
    );
    let stage = Stage::with(&config).await;
    let run_id = tell(&stage, "c", "x").await;
    let delivery = settled(&stage, &run_id).await.remove(0);
    assert_eq!(delivery["status"], "failed");
    assert!(delivery["attempts"].as_i64() >= Some(2), "{delivery}");
    assert!(delivery["error"].as_str().unwrap().starts_with("given up after "), "{delivery}");
    assert_eq!(logged(&stage).await[0].0, "delivery.failed");
}

#[tokio::test]
async fn a_receiver_that_says_no_is_not_asked_again() {
    for status in [400, 401, 404, 410, 422] {
        let receiver = Receiver::reacting(move |_, _| Reaction::Answer(status)).await;
        let stage = staged(&receiver, "").await;
        let run_id = tell(&stage, "c", "x").await;
        let deliveries = settled(&stage, &run_id).await;
        assert_eq!(outcome(&deliveries[0]), ("failed", 1), "{status}");
        assert!(deliveries[0]["error"].as_str().unwrap().contains(&status.to_string()));
        assert_eq!(receiver.received().len(), 1);
        assert_eq!(logged(&stage).await[0].0, "delivery.failed");
        assert_eq!(stage.api().run(&run_id).await.status.as_str(), "completed");
    }
}

#[tokio::test]
async fn an_outcome_that_is_not_known_is_shown_and_not_sent_again() {
    for reaction in [Reaction::Drop, Reaction::Hang, Reaction::Answer(500), Reaction::Answer(502)] {
        let first = reaction.clone();
        let receiver = Receiver::reacting(move |number, _| match number {
            0 => first.clone(),
            _ => Reaction::Answer(204),
        })
        .await;
        let stage = staged(&receiver, "timeout_s = 1").await;
        let run_id = tell(&stage, "c", "once").await;
        let deliveries = settled(&stage, &run_id).await;
        assert_eq!(outcome(&deliveries[0]), ("unknown", 1), "{reaction:?}");
        assert_eq!(logged(&stage).await[0].0, "delivery.unknown");
        // The next of the lane goes out, the unknown one does not.
        let next = tell(&stage, "c", "twice").await;
        assert_eq!(outcome(&settled(&stage, &next).await[0]), ("done", 1));
        assert_eq!(texts(&receiver.received()), ["once", "twice"], "{reaction:?}");
    }
}

#[tokio::test]
async fn a_receiver_that_drops_repeats_is_sent_the_same_id_again() {
    for reaction in [Reaction::Drop, Reaction::Hang, Reaction::Answer(500)] {
        let first = reaction.clone();
        let receiver = Receiver::reacting(move |number, _| match number {
            0 => first.clone(),
            _ => Reaction::Answer(204),
        })
        .await;
        let stage = staged(&receiver, "idempotent = true\ntimeout_s = 1").await;
        let run_id = tell(&stage, "c", "x").await;
        assert_eq!(outcome(&settled(&stage, &run_id).await[0]), ("done", 2), "{reaction:?}");
        let received = receiver.received();
        assert_eq!(received.len(), 2);
        assert_eq!(received[0].delivery_id, received[1].delivery_id);
        assert_eq!(received[0].payload, received[1].payload);
    }
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_host_that_dies_between_sending_and_noting_it_does_not_send_again() {
    for (more, expected, sent) in [("", ("unknown", 2), 1), ("idempotent = true", ("done", 2), 2)] {
        let receiver = Receiver::start().await;
        let mut stage = staged(&receiver, more).await;
        stage.host.stop().await;
        stage.host.set_fault(Some("after_delivery:1".to_owned()));
        let mut stage = stage.restart().await;
        let run_id = tell(&stage, "c", "x").await;
        stage.host.died().await;
        assert_eq!(receiver.received().len(), 1);
        stage.host.set_fault(None);
        let stage = stage.restart().await;
        let deliveries = settled(&stage, &run_id).await;
        assert_eq!(outcome(&deliveries[0]), expected, "{deliveries:?}");
        assert_eq!(receiver.received().len(), sent);
        assert_eq!(logged(&stage).await.len(), 1);
    }
}

#[tokio::test]
async fn a_host_that_is_asked_to_stop_waits_for_the_delivery_under_way() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let receiver = Receiver::reacting(move |_, _| Reaction::Held(Arc::clone(&held))).await;
    let mut stage = staged(&receiver, "").await;
    let run_id = tell(&stage, "c", "x").await;
    wait_for("the request", PATIENCE, async || (!receiver.received().is_empty()).then_some(()))
        .await;
    let log = stage.host.folder().join("log");
    let release = async {
        wait_for("a host that is stopping", PATIENCE, async || {
            let log = std::fs::read_to_string(&log).unwrap();
            log.contains("stopping").then_some(())
        })
        .await;
        gate.add_permits(1);
    };
    tokio::join!(stage.host.stop(), release);
    let stage = stage.restart().await;
    assert_eq!(outcome(&settled(&stage, &run_id).await[0]), ("done", 1));
    assert_eq!(receiver.received().len(), 1);
}
