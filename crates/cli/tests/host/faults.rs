//! The host is killed between every two commit points: at each named place, at its first pass, its second,
//! and so on until the scenario gets by without being hit.

use crate::PROGRAM;
use crate::facts::{self, Agent, OnInterrupt, Queue, Story};
use crate::senders::{Ids, Log, Sender};
use greenroom_protocol::RunStatus;
use greenroom_testkit::api::{Api, PATIENCE};
use greenroom_testkit::host::{Started, TestHost};
use greenroom_testkit::reader::{SeenResults, follow};
use greenroom_testkit::receiver::{Received, Receiver};
use greenroom_testkit::wait::wait_for;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt;
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
                kill_at_every_pass(stringify!($place), OnInterrupt::Fail, &[]).await;
            }

            #[tokio::test]
            async fn runs_that_are_tried_again_survive_a_kill() {
                kill_at_every_pass(stringify!($place), OnInterrupt::Retry, &[]).await;
            }

            #[tokio::test]
            async fn runs_that_are_not_tried_again_survive_a_kill_of_the_host_that_recovers() {
                kill_at_every_pass(stringify!($place), OnInterrupt::Fail, &["before_publish:1"]).await;
            }

            #[tokio::test]
            async fn runs_that_are_tried_again_survive_a_kill_of_the_host_that_recovers() {
                kill_at_every_pass(stringify!($place), OnInterrupt::Retry, &["before_publish:1"]).await;
            }
        }
    )+};
}

places! {
    before_commit after_commit before_run_agent after_run_agent before_publish after_publish
    after_delivery
}

/// Kills earlier hosts as told, and the next one at every pass of a place.
async fn kill_at_every_pass(place: &str, on_interrupt: OnInterrupt, earlier: &[&str]) {
    for pass in 1..=PASSES_MAX {
        let fault = format!("{place}:{pass}");
        eprintln!("GREENROOM_FAULT={fault}");
        let faults = earlier.iter().copied().chain([fault.as_str()]);
        if play(faults.collect(), on_interrupt).await == earlier.len() {
            assert!(pass > 1, "the scenario never passes {place}");
            return;
        }
    }
    panic!("the scenario passes {place} more than {PASSES_MAX} times");
}

/// Plays the scenario, each start of the host under the next fault, and says how many of them struck.
async fn play(faults: VecDeque<&str>, on_interrupt: OnInterrupt) -> usize {
    let receiver = Receiver::start().await;
    let host = TestHost::prepare(PROGRAM, &config(on_interrupt, &receiver.url()));
    let mut lives = Lives { host, faults, deaths: 0 };
    lives.next().await;
    let seen = SeenResults::default();
    let log = tokio::select! {
        log = scenario(lives.host.api(), seen.clone()) => log,
        never = lives.go_on() => match never {},
    };
    let Lives { mut host, deaths, .. } = lives;
    // What is checked next may pass the place as well.
    host.stop().await;
    host.set_fault(None);
    host.start_again().await;
    let agent = agent(on_interrupt);
    let stories = facts::check(&host.api(), &[agent], &log, &seen).await;
    check_deliveries(&host.api(), &log, &stories, &receiver.received(), on_interrupt).await;
    if deaths == 0 {
        let statuses = stories.values().map(|story| story.run.status);
        assert!(statuses.eq([RunStatus::Completed; 2]), "{}", host.log());
    }
    host.stop().await;
    wait_for("the end of every runner", Duration::from_secs(10), async || {
        host.leftovers().is_empty().then_some(())
    })
    .await;
    deaths
}

/// A host that is started again whenever a fault has struck.
pub(crate) struct Lives<'a> {
    pub(crate) host: TestHost,
    pub(crate) faults: VecDeque<&'a str>,
    pub(crate) deaths: usize,
}

impl Lives<'_> {
    /// Starts the host under its next fault, again if it does not get as far as being ready.
    pub(crate) async fn next(&mut self) {
        loop {
            let fault = self.faults.pop_front();
            self.host.set_fault(fault.map(str::to_owned));
            match self.host.try_start().await {
                Started::Ready => break,
                Started::Died(status) => {
                    assert!(fault.is_some(), "ended with {status}\n{}", self.host.log());
                    self.deaths += 1;
                }
            }
        }
        let leftovers = self.host.leftovers();
        // A host that the fault has hit in this very moment leaves its own for a moment.
        let is_clean = leftovers.is_empty() || self.host.is_dead();
        assert!(is_clean, "runners of an earlier host live on: {leftovers:#?}");
    }

    pub(crate) async fn go_on(&mut self) -> Infallible {
        loop {
            let status = self.host.died().await;
            self.deaths += 1;
            // SIGABRT: the fault, and nothing else, ended it.
            assert_eq!(status.signal(), Some(6), "{}", self.host.log());
            self.next().await;
        }
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
async fn scenario(api: Api, seen: SeenResults) -> Log {
    let sender = Sender {
        name: "sender".to_owned(),
        agent: Some("counting"),
        conversation: "c1".to_owned(),
        ids: Ids::Own,
    };
    let mut log = Log::default();
    let mut readers = JoinSet::new();
    for number in 0..2 {
        let sent = sender.send(&api, number, &mut log.doubtful).await.unwrap();
        let run_id = sent.run_id.clone().unwrap();
        readers.spawn(follow(api.clone(), run_id, seen.clone()));
        log.sent.push(sent);
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

/// Every end of a run is told to the surface once, in the order of events. An outcome that is not known is
/// shown as unknown and not sent again, unless the surface drops repeats.
async fn check_deliveries(
    api: &Api,
    log: &Log,
    stories: &BTreeMap<String, Story>,
    received: &[Received],
    on_interrupt: OnInterrupt,
) {
    let mut arrived: Vec<&str> = received.iter().map(|it| it.delivery_id.as_str()).collect();
    if on_interrupt == OnInterrupt::Retry {
        let mut seen = BTreeSet::new();
        arrived.retain(|delivery_id| seen.insert(*delivery_id));
    }
    let mut intended = Vec::new();
    for run_id in log.sent.iter().filter_map(|sent| sent.run_id.as_ref()) {
        let story = &stories[run_id];
        let expected: &[&str] = match story.run.status {
            RunStatus::Completed => &["message.completed"],
            _ if story.fold.messages.is_empty() => &["run.failed"],
            _ => &["message.completed", "run.failed"],
        };
        let run = api.run(run_id).await;
        let deliveries = run.extra["deliveries"].as_array().unwrap().clone();
        assert_eq!(deliveries.len(), expected.len(), "{deliveries:#?}");
        for (delivery, kind) in deliveries.into_iter().zip(expected) {
            intended.push(delivery["delivery_id"].as_str().unwrap().to_owned());
            check_delivery(&delivery, kind, received, on_interrupt);
        }
    }
    let mut intended = intended.iter();
    let in_order = arrived.iter().all(|delivery_id| intended.any(|next| next == delivery_id));
    assert!(in_order, "sent twice or out of order: {received:#?}");
}

fn check_delivery(delivery: &Value, kind: &str, received: &[Received], on_interrupt: OnInterrupt) {
    let mut arrivals = received.iter().filter(|it| delivery["delivery_id"] == *it.delivery_id);
    let first = arrivals.next();
    assert!(first.is_none_or(|it| it.payload["type"] == kind), "{delivery}: {received:#?}");
    match delivery["status"].as_str().unwrap() {
        "done" => assert!(first.is_some(), "{delivery}: {received:#?}"),
        "unknown" => assert_eq!(on_interrupt, OnInterrupt::Fail, "{delivery}: {received:#?}"),
        _ => panic!("{delivery}: {received:#?}"),
    }
}
