//! The host is killed between every two commit points: at each named place, at its first pass, its second,
//! and so on until the scenario gets by without being hit.

use crate::PROGRAM;
use crate::facts::{self, Agent, OnInterrupt, Queue, Story};
use crate::senders::{Ids, Log, Sender, Sent};
use greenroom_protocol::RunStatus;
use greenroom_testkit::api::{Api, PATIENCE};
use greenroom_testkit::host::{Started, TestHost};
use greenroom_testkit::reader::{Meanings, follow};
use greenroom_testkit::receiver::{Received, Receiver};
use greenroom_testkit::wait::wait_for;
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::task::JoinSet;

/// More passes than any place has in the scenario.
const PASSES_MAX: usize = 60;

macro_rules! places {
    ($($place:ident)+) => {$(
        mod $place {
            use super::{OnInterrupt, kill_at_every_pass};

            #[tokio::test]
            async fn runs_that_are_not_tried_again_survive_a_kill() {
                kill_at_every_pass(stringify!($place), OnInterrupt::Fail).await;
            }

            #[tokio::test]
            async fn runs_that_are_tried_again_survive_a_kill() {
                kill_at_every_pass(stringify!($place), OnInterrupt::Retry).await;
            }
        }
    )+};
}

places! {
    before_commit after_commit before_run_agent after_run_agent before_publish after_publish
    after_delivery
}

async fn kill_at_every_pass(place: &str, on_interrupt: OnInterrupt) {
    for pass in 1..=PASSES_MAX {
        let fault = format!("{place}:{pass}");
        eprintln!("GREENROOM_FAULT={fault}");
        if !has_died(&fault, on_interrupt).await {
            assert!(pass > 1, "the scenario never passes {place}");
            return;
        }
    }
    panic!("the scenario passes {place} more than {PASSES_MAX} times");
}

/// Plays the scenario under a fault and says whether it struck.
async fn has_died(fault: &str, on_interrupt: OnInterrupt) -> bool {
    let receiver = Receiver::start().await;
    let mut host = TestHost::prepare(PROGRAM, &config(on_interrupt, &receiver.url()));
    let meanings = Meanings::default();
    host.set_fault(Some(fault.to_owned()));
    let mut has_died = matches!(host.try_start().await, Started::Died(_));
    if has_died {
        host.set_fault(None);
        host.start_again().await;
    }
    let log = tokio::select! {
        log = scenario(host.api(), meanings.clone()) => log,
        never = restart_after_the_fault(&mut host, &mut has_died) => match never {},
    };
    let agent = agent(on_interrupt);
    let stories = facts::check(&host.api(), &[agent], &log, &meanings).await;
    check_deliveries(&log, &stories, &receiver.received(), on_interrupt);
    if !has_died {
        let statuses = stories.values().map(|story| story.run.status);
        assert!(statuses.eq([RunStatus::Completed; 2]), "{}", host.log());
    }
    host.stop().await;
    wait_for("the end of every runner", Duration::from_secs(10), async || {
        host.leftovers().is_empty().then_some(())
    })
    .await;
    has_died
}

async fn restart_after_the_fault(host: &mut TestHost, has_died: &mut bool) -> Infallible {
    loop {
        host.died().await;
        assert!(!*has_died, "the host died without a fault\n{}", host.log());
        *has_died = true;
        host.set_fault(None);
        host.start_again().await;
        assert_eq!(host.leftovers(), [""; 0], "runners of an earlier host live on");
    }
}

/// The surface that drops repeated ids goes with the agent that is tried again.
fn config(on_interrupt: OnInterrupt, url: &str) -> String {
    let (word, idempotent) = match on_interrupt {
        OnInterrupt::Fail => ("fail", false),
        OnInterrupt::Retry => ("retry", true),
    };
    format!(
        r#"
[agents.counting]
runner = "plugin:greenroom/echo/default"
events = []
on_interrupt = "{word}"
delivery = "hook"
config = {{ mode = "count", n = 4, delay_ms = 35 }}

[surfaces.hook]
kind = "webhook"
url = "{url}"
allow_private = true
idempotent = {idempotent}
"#
    )
}

fn agent(on_interrupt: OnInterrupt) -> Agent {
    let answer = "1 2 3 4 ".to_owned();
    Agent { name: "counting", queue: Queue::Serial, on_interrupt, answer }
}

/// Two events in one conversation, the second while the first one's run is under way; a reader on either;
/// over when everything is answered and delivered.
async fn scenario(api: Api, meanings: Meanings) -> Log {
    let sender = Sender {
        name: "sender".to_owned(),
        agent: Some("counting"),
        conversation: "c1".to_owned(),
        ids: Ids::Own,
    };
    let mut log = Log::default();
    let mut readers = JoinSet::new();
    for number in 0..2 {
        let event = sender.event(number);
        let answer = api.send_event(&event).await;
        let run_id = answer.run_id.clone().unwrap();
        readers.spawn(follow(api.clone(), run_id, meanings.clone()));
        log.sent.push(Sent {
            event_id: answer.event_id,
            run_id: answer.run_id,
            conversation: sender.conversation.clone(),
            text: event["input"]["text"].as_str().unwrap().to_owned(),
        });
    }
    log.readings = readers.join_all().await;
    for run_id in log.sent.iter().filter_map(|sent| sent.run_id.as_ref()) {
        wait_for("settled deliveries", PATIENCE, async || {
            let run = api.run(run_id).await;
            let open = ["pending", "claimed"].map(Value::from);
            let is_open = |delivery: &Value| open.contains(&delivery["status"]);
            let deliveries = run.extra["deliveries"].as_array().unwrap();
            (!deliveries.iter().any(is_open)).then_some(())
        })
        .await;
    }
    log
}

/// Every end of a run is told to the surface once, in the order of events; an outcome that is not known is
/// shown as unknown and not sent again, unless the surface drops repeats.
fn check_deliveries(
    log: &Log,
    stories: &BTreeMap<String, Story>,
    received: &[Received],
    on_interrupt: OnInterrupt,
) {
    let runs = log.sent.iter().map(|sent| &stories[sent.run_id.as_ref().unwrap()]);
    let runs: Vec<&Story> = runs.collect();
    let mut first_arrivals: Vec<&Received> = Vec::new();
    for request in received {
        let is_repeat = first_arrivals.iter().any(|first| first.delivery_id == request.delivery_id);
        assert!(!is_repeat || on_interrupt == OnInterrupt::Retry, "sent twice: {received:#?}");
        if !is_repeat {
            first_arrivals.push(request);
        }
    }
    let place = |request: &&Received| {
        let run = runs.iter().position(|story| story.run.run_id == request.payload["run_id"]);
        (run.unwrap(), request.payload["sequence"].as_i64().unwrap())
    };
    let places: Vec<(usize, i64)> = first_arrivals.iter().map(place).collect();
    assert!(places.is_sorted_by(|one, next| one < next), "out of order: {received:#?}");
    for (at, story) in runs.iter().enumerate() {
        let arrived: Vec<&Value> = first_arrivals
            .iter()
            .filter(|request| place(request).0 == at)
            .map(|request| &request.payload["type"])
            .collect();
        let expected: &[&str] = match story.run.status {
            RunStatus::Completed => &["message.completed"],
            _ if story.fold.messages.is_empty() => &["run.failed"],
            _ => &["message.completed", "run.failed"],
        };
        let told = format!("{:#?}\n{received:#?}", story.run);
        assert!(arrived.len() <= expected.len(), "{told}");
        if on_interrupt == OnInterrupt::Retry {
            assert_eq!(arrived, expected, "{told}");
        }
    }
}
